/** Parses, checks and describes `swarms.json`. Pure: text in, data and problems out. */
export {
  formatProblem,
  type PathSegment,
  type SwarmFileProblem,
  type UnplacedProblem,
} from "./problems.js";
export { readSwarmFile, type SwarmFileContents } from "./read.js";
export {
  type ActionEntry,
  type AgentEntry,
  type SwarmEntry,
  swarmFileJsonSchema,
} from "./schema.js";
