/** Settings of the MCP server. */
import { boolean, defineSettings } from "../../base/index.js";

export const mcpSettings = defineSettings({
  enabled: boolean("mcp.enabled", { default: true, doc: "Serve MCP at `/mcp`." }),
});
