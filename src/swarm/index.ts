/** Definitions: swarms from code and from swarm files. */
export {
  readSwarmFile,
  type SwarmFileContents,
  type SwarmFileProblem,
  swarmFileJsonSchema,
} from "../mail/index.js";
export {
  type AgentOptions,
  type DefinedAgent,
  defineAgent,
  type LocalAgentOptions,
  type RemoteAgentOptions,
} from "./agent.js";
export { type BuiltinOptions, type Builtins, defaultBuiltins } from "./builtins.js";
export { defineSwarm, type SwarmOptions } from "./define.js";
export {
  type LoadedSwarm,
  type LoadOptions,
  loadSwarm,
  loadSwarms,
  loadSwarmsFromText,
  type TextOptions,
} from "./load.js";
export { loadModuleExport, type ModuleLoader } from "./modules.js";
export { badReference } from "./references.js";
export type { McpConnector } from "./resolver.js";
export { type SubswarmOptions, subswarm } from "./subswarm.js";
export type { UrlOptions } from "./urls.js";
