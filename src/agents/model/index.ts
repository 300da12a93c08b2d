/** Agents that use a model. See docs/models.md. */
export { type LanguageModel, type ModelAgentOptions, type ModelEnvironment, modelAgent } from "./agent.js";

export { isModelAvailable, modelFactory } from "./factories.js";
export { oneShotModel } from "./one-shot.js";
