/** Mailroom as an MCP server: see README.md. */

export { createMcpHttpDoor, type McpHttpDoor } from "./http.js";
export { type Caller, McpDoor, type McpDoorOptions } from "./server.js";
export {
  type BridgeOptions,
  bridgeMcpStdio,
  type StdioConnection,
  type StdioOptions,
  serveMcpStdio,
} from "./stdio.js";
