/** Agents: functions, scripts and models. */
export { findingsOf } from "./errors.js";
export type { AgentContext, AgentFactory } from "./factory.js";
export {
  type FunctionAgentOptions,
  functionAgent,
  type MailFunction,
  starting,
} from "./function.js";
export type { Mail } from "./mail.js";
export {
  isModelAvailable,
  type LanguageModel,
  type ModelAgentOptions,
  type ModelEnvironment,
  modelAgent,
  modelFactory,
  oneShotModel,
} from "./model/index.js";
export { scriptedAgent, scriptedAgentFromParams } from "./scripted/agent.js";
export type { ScriptedRuleInput } from "./scripted/rules.js";
