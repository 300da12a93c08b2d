/** Agents: functions, scripts and models. */
export { badAgentParams, findingsOf } from "./errors.js";
export type { AgentContext, AgentFactory } from "./factory.js";
export {
  type FunctionAgentOptions,
  functionAgent,
  type MailFunction,
  type MailOutcome,
  starting,
} from "./function.js";
export type { CallableAction, Mail } from "./mail.js";
export {
  type EnvironmentVariables,
  isModelAvailable,
  type LanguageModel,
  type ModelAgentOptions,
  type ModelEnvironment,
  modelAgent,
  modelFactory,
  oneShotModel,
  type Price,
} from "./model/index.js";
export { scriptedAgent, scriptedAgentFromParams } from "./scripted/agent.js";
export type { ScriptEnvironment } from "./scripted/check.js";
export type { ScriptedRuleInput } from "./scripted/rules.js";
