/** One measurement of one build, in its own process: `measure.js <request as JSON>`; prints the figures as JSON. */
import { loadLibrary } from "./builds.js";
import { type Surroundings, WORKLOADS, type WorkloadName } from "./workloads.js";

export interface MeasureRequest extends Omit<Surroundings, "library"> {
  /** Of the build. */
  readonly folder: string;
  readonly workload: WorkloadName;
}

const request: MeasureRequest = JSON.parse(process.argv[2] ?? "");
const library = await loadLibrary(request.folder);
console.log(JSON.stringify(await WORKLOADS[request.workload]({ ...request, library })));
