/** Definitions: swarms from code and from swarm files. */
export {
  type AgentOptions,
  type DefinedAgent,
  defineAgent,
} from "./agent.js";
export { type BuiltinOptions, type Builtins, defaultBuiltins, modelOfExample } from "./builtins.js";
export { defineSwarm, type SwarmOptions } from "./define.js";
export {
  type LoadedSwarm,
  type LoadOptions,
  loadSwarm,
  loadSwarms,
  loadSwarmsFromText,
  type TextOptions,
} from "./load.js";
export { loadModuleExport } from "./modules.js";
export { badReference } from "./references.js";
export { subswarm } from "./subswarm.js";
