/** Errors of MCP servers, worded for the calling agent. */
import { hasCode, MailroomError, messageOf } from "../../base/index.js";

export function toMcpServerError(error: unknown, server: string, lastOutput = ""): MailroomError<string> {
  // A tool that reports an error has worked: its own words are the result.
  if (hasCode(error, "mcp_server_closed", "mcp_server_bad_address", "tool_failed")) return error;
  const message = reasonOf(error);
  if (error instanceof Error && error.name === "ProtocolError") {
    return new MailroomError("mcp_server_failed", `MCP server '${server}': ${message}`, { cause: error });
  }
  const output = lastOutput.trim() === "" ? "" : ` (its last output: ${lastOutput.trim()})`;
  return new MailroomError(
    "mcp_server_unavailable",
    `MCP server '${server}' is not available: ${message}${output}`,
    { cause: error },
  );
}

/** The SDK's message says nothing about the status. */
function reasonOf(error: unknown): string {
  const status = error instanceof Error && "status" in error ? error.status : undefined;
  if (status === 401 || status === 403) {
    return `it rejected the credentials (status ${status}); set its 'headers', for example 'authorization'`;
  }
  return typeof status === "number" ? `status ${status}: ${messageOf(error)}` : messageOf(error);
}
