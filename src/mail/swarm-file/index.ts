/** The form of `swarms.json`: reading it, checking it, describing it. Pure: texts in, data and problems out. */
export { type Finding, formatProblem, type PathSegment, type Problem, SwarmFileError } from "./problems.js";
export { readSwarmFile, type SwarmFileContents } from "./read.js";
export {
  type ActionEntry,
  type AgentEntry,
  type SwarmEntry,
  swarmFileJsonSchema,
} from "./schema.js";
