/** Shrinks a failing world: fewer operations, then fewer kinds of faults, as long as it still fails. */
import { FAULTS, type Fault } from "./disk.js";
import { type Operation, planOf } from "./plan.js";
import { type SimulationOptions, simulate } from "./simulate.js";

export interface Shrunk {
  readonly seed: number;
  readonly operations: readonly Operation[];
  /** The faults that the violation needs. */
  readonly faults: readonly Fault[];
  readonly reason: string;
  readonly trace: readonly string[];
}

export async function shrink(seed: number, options: SimulationOptions = {}): Promise<Shrunk | undefined> {
  let operations: readonly Operation[] = options.operations ?? planOf(seed);
  let without: ReadonlySet<Fault> = options.without ?? new Set();
  const fails = async (some: readonly Operation[], off: ReadonlySet<Fault>): Promise<string | undefined> => {
    try {
      await simulate(seed, { ...options, operations: some, without: off });
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  };
  if ((await fails(operations, without)) === undefined) return undefined;
  for (let size = Math.ceil(operations.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < operations.length; ) {
      const fewer = [...operations.slice(0, from), ...operations.slice(from + size)];
      if ((await fails(fewer, without)) === undefined) from += size;
      else operations = fewer;
    }
  }
  for (const fault of FAULTS) {
    const off = new Set([...without, fault]);
    if ((await fails(operations, off)) !== undefined) without = off;
  }
  let trace: readonly string[] = [];
  const keep = (lines: readonly string[]) => {
    trace = lines;
  };
  const reason = await simulate(seed, { ...options, operations, without, trace: keep }).then(
    () => "it passes when it is traced",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  return { seed, operations, faults: FAULTS.filter((fault) => !without.has(fault)), reason, trace };
}

/** The report: the command to run, the violation, and the operations and faults that it needs. */
export function report({ seed, operations, faults, reason, trace }: Shrunk): string {
  return [
    `SIMULATION_SEED=${seed}: ${reason}`,
    `needs ${operations.length} operations, faults: ${faults.join(", ") || "none"}`,
    ...trace.slice(-MOST_LINES).map((line) => `  ${line}`),
  ].join("\n");
}

const MOST_LINES = 400;
