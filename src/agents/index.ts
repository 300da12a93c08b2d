/** What can sit behind an address: functions and scripts. */
export { AgentError, type AgentErrorCode, AgentParamsError } from "./errors.js";
export type { AgentFactory, AgentWiring } from "./factory.js";
export { type FunctionAgentOptions, functionAgent, type MailFunction, type MailOutcome } from "./function.js";
export type { CallableAction, Mail } from "./mail.js";
export {
  type Environment,
  type LanguageModel,
  type ModelAgentOptions,
  type ModelSurroundings,
  modelAgent,
  type Price,
} from "./model/index.js";
export { scriptedAgent } from "./scripted/agent.js";
export type { ScriptSurroundings } from "./scripted/check.js";
export type { ScriptedRuleInput } from "./scripted/rules.js";
