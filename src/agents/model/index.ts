/** Agents that think with a model. See docs/models.md. */
export { type ModelAgentOptions, type ModelSurroundings, modelAgent } from "./agent.js";
export { ConnectionError, type Environment } from "./connection.js";
export { isModelAtHand, type ModelAgentKind, modelFactory } from "./factories.js";
export type { LanguageModel } from "./language-model.js";
export type { ModelParamsInput, Price } from "./params.js";
export { modelQuestioner } from "./question.js";
