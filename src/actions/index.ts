/** Actions: `defineAction` and ready-made actions. */
export { clockAction } from "./clock.js";
export { type ActionOptions, type ActionParameters, type DefinedAction, defineAction } from "./define.js";
export {
  type FileActionOptions,
  type FileActions,
  fileActions,
} from "./files/actions.js";
export { type HttpActionName, httpActions } from "./http/actions.js";
export { type InterswarmActionName, interswarmActions } from "./interswarm/actions.js";
export { type McpActionName, mcpActions } from "./mcp/actions.js";
export type { McpHttpOptions, McpServerOptions, McpStdioOptions } from "./mcp/server.js";
export { connectMcpServer, type McpServer } from "./mcp/tools.js";
export { type MemoryActionName, memoryActions } from "./memory.js";
export type { OutboundOptions } from "./outbound.js";
export type { SchemaPair } from "./parameters.js";
export type { DescribedSchema, StandardSchema } from "./standard-schema.js";
