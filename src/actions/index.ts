/** Actions: `defineAction` and ready-made actions. */
export { clockAction } from "./clock.js";
export { type ActionOptions, defineAction } from "./define.js";
export {
  type FileActionOptions,
  fileActions,
} from "./files/actions.js";
export { httpActions } from "./http/actions.js";
export { interswarmActions } from "./interswarm/actions.js";
export { mcpActions } from "./mcp/actions.js";
export type { McpServerOptions } from "./mcp/server.js";
export { connectMcpServer, type McpServer } from "./mcp/tools.js";
export { memoryActions } from "./memory.js";
export type { OutboundOptions } from "./outbound.js";
