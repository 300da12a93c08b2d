/** What can go wrong with an MCP server, in words for the agent that called it. */

export type McpServerErrorCode =
  /** It could not be reached, or went away. */
  | "unavailable"
  /** It answered, but with an error. */
  | "failed"
  | "bad_address"
  | "closed";

export class McpServerError extends Error {
  override readonly name = "McpServerError";
  readonly code: McpServerErrorCode;
  constructor(code: McpServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  static from(error: unknown, server: string, lastWords = ""): McpServerError {
    if (error instanceof McpServerError) return error;
    const message = error instanceof Error ? error.message : String(error);
    const answered = error instanceof Error && error.name === "ProtocolError";
    const said = answered || lastWords.trim() === "" ? "" : ` (its last words: ${lastWords.trim()})`;
    return new McpServerError(
      answered ? "failed" : "unavailable",
      answered
        ? `MCP server '${server}': ${message}`
        : `MCP server '${server}' is not available: ${message}${said}`,
      { cause: error },
    );
  }
}
