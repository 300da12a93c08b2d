/** Registers a tool in an MCP server. Failures are results with a message, not protocol errors. */

import type {
  CallToolResult,
  McpServer,
  ServerContext,
  StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";
import { isPublicError } from "../../base/index.js";

export interface ToolAnswer {
  readonly text: string;
  /** The result for programs. */
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface ToolCall {
  /** Aborts when the client cancels its request. */
  readonly signal: AbortSignal;
  /** Whether the client asked for progress notifications. */
  readonly wantsProgress: boolean;
  /** @param meta for programs, under names with a Mailroom prefix */
  progress(message: string, meta?: Readonly<Record<string, unknown>>): void;
}

export interface ToolOptions<S extends StandardSchemaWithJSON> {
  readonly name: string;
  readonly description: string;
  readonly input: S;
  readonly readOnly?: boolean;
  readonly run: (args: StandardSchemaWithJSON.InferOutput<S>, call: ToolCall) => Promise<ToolAnswer>;
}

/** The server that gets the tools, and the receiver of internal errors. */
export interface ToolHost {
  /** Called before contents of tasks are read. */
  readonly reading: () => Promise<void>;
  /** Waits for the next turn of the caller. */
  readonly turn: () => Promise<void>;
  readonly server: McpServer;
  readonly report: (error: Error) => void;
}

export function addTool<S extends StandardSchemaWithJSON>(
  { server, report }: ToolHost,
  options: ToolOptions<S>,
): void {
  const { name, description, readOnly = false, run } = options;
  const inputSchema: StandardSchemaWithJSON = options.input;
  server.registerTool(
    name,
    { description, inputSchema, annotations: { readOnlyHint: readOnly } },
    async (args, context): Promise<CallToolResult> => {
      try {
        // The server passes the parsed arguments.
        const { text, data } = await run(args as StandardSchemaWithJSON.InferOutput<S>, callOf(context));
        return {
          content: [{ type: "text", text }],
          ...(data !== undefined && { structuredContent: { ...data } }),
        };
      } catch (error) {
        return { isError: true, content: [{ type: "text", text: describe(error, report) }] };
      }
    },
  );
}

function callOf({ mcpReq }: ServerContext): ToolCall {
  const token = mcpReq._meta?.progressToken;
  let progress = 0;
  return {
    signal: mcpReq.signal,
    wantsProgress: token !== undefined,
    progress(message, meta) {
      if (token === undefined) return;
      progress++;
      const params = {
        progressToken: token,
        progress,
        message,
        ...(meta !== undefined && { _meta: { ...meta } }),
      };
      mcpReq
        .notify({ method: "notifications/progress", params })
        // A client that disconnected can read everything later.
        .catch(() => {});
    },
  };
}

/** Returns the message of a refusal, and a generic message for other errors. */
function describe(error: unknown, report: (error: Error) => void): string {
  if (isPublicError(error)) {
    // The cause is already in the log.
    return error.code === "store_failed"
      ? "the server's store has failed; restart the server (store_failed)"
      : `${error.message} (${error.code})`;
  }
  report(error instanceof Error ? error : new Error(String(error)));
  return "internal server error (internal_error)";
}

/** A signal that aborts when the call is cancelled or the time limit ends. */
export function within(seconds: number, { signal }: ToolCall): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, seconds * 1_000))]);
}
