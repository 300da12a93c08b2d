/** Actions: how to define them, and a few that are ready to use. */
export { CalculatorError, calculate, calculatorAction } from "./calculator.js";
export { clockAction } from "./clock.js";
export { type ActionOptions, type ActionParameters, type DefinedAction, defineAction } from "./define.js";
export { describeNumbersAction } from "./describe-numbers.js";
export {
  FileActionError,
  type FileActionErrorCode,
  type FileActionOptions,
  type FileActions,
  fileActions,
} from "./files/index.js";
export { ForecastError, forecastAction } from "./forecast.js";
export { type HttpActionName, httpActions } from "./http/index.js";
export { InterswarmActionError, type InterswarmActionName, interswarmActions } from "./interswarm/index.js";
export {
  connectMcpServer,
  type McpActionName,
  type McpHttpOptions,
  type McpServer,
  McpServerError,
  type McpServerErrorCode,
  type McpServerOptions,
  type McpStdioOptions,
  McpToolError,
  mcpActions,
} from "./mcp/index.js";
export { MemoryActionError, type MemoryActionName, memoryActions } from "./memory.js";
export type { OutboundOptions } from "./outbound.js";
export { ActionDefinitionError, type SchemaPair } from "./parameters.js";
export type { DescribedSchema, StandardSchema } from "./standard-schema.js";
