export { type McpActionName, mcpActions } from "./actions.js";
export { McpServerError, type McpServerErrorCode } from "./errors.js";
export { McpToolError } from "./results.js";
export type { McpHttpOptions, McpServerOptions, McpStdioOptions } from "./server.js";
export { connectMcpServer, type McpServer } from "./tools.js";
