/** Definitions: swarms from code and from swarm files. */
export {
  type Problem as SwarmProblem,
  readSwarmFile,
  type SwarmFileContents,
  SwarmFileError,
  swarmFileJsonSchema,
} from "../mail/swarm-file/index.js";
export {
  type AgentOptions,
  type DefinedAgent,
  defineAgent,
  type LocalAgentOptions,
  type RemoteAgentOptions,
} from "./agent.js";
export { type BuiltinOptions, type Builtins, defaultBuiltins } from "./builtins.js";
export { EXAMPLE_NAMES, type ExampleAgentOptions, type ExampleName, exampleAgent } from "./bundled/agents.js";
export { defineSwarm, SwarmDefinitionError, type SwarmOptions } from "./define.js";
export { demoSwarm } from "./demo.js";
export {
  type LoadedSwarm,
  type LoadOptions,
  loadSwarm,
  loadSwarms,
  loadSwarmsFromText,
  type TextOptions,
} from "./load.js";
export type { ModuleLoader } from "./modules.js";
export { BadReferenceError } from "./references.js";
export type { McpConnector } from "./resolve-mcp.js";
export { type SubswarmOptions, subswarm } from "./subswarm.js";
export type { UrlOptions } from "./urls.js";
