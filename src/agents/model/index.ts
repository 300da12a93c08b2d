/** Agents that use a model. See docs/models.md. */
export { type LanguageModel, type ModelAgentOptions, type ModelEnvironment, modelAgent } from "./agent.js";
export type { EnvironmentVariables } from "./connection.js";
export { isModelAvailable, type ModelAgentKind, modelFactory } from "./factories.js";
export { oneShotModel } from "./one-shot.js";
export type { ModelParamsInput, Price } from "./params.js";
