/** How a tool of ours is put into an MCP server: failures are results that say what to do, not broken requests. */
import type {
  CallToolResult,
  McpServer,
  ServerContext,
  StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";

import { RuntimeError } from "../engine/runtime/index.js";

export interface ToolAnswer {
  readonly text: string;
  /** The same for programs. */
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface ToolCall {
  /** Fires when the client takes its request back. */
  readonly signal: AbortSignal;
  /** Whether the client asked to be told how things are going. */
  readonly wantsProgress: boolean;
  progress(message: string): void;
}

export interface ToolOptions<S extends StandardSchemaWithJSON> {
  readonly name: string;
  readonly description: string;
  readonly input: S;
  readonly readOnly?: boolean;
  readonly run: (args: StandardSchemaWithJSON.InferOutput<S>, call: ToolCall) => Promise<ToolAnswer>;
}

/** Where tools are put, and who is told of mistakes of ours. */
export interface ToolHost {
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
        // The server hands in what the schema made of the arguments.
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
    progress(message) {
      if (token === undefined) return;
      progress++;
      mcpReq
        .notify({ method: "notifications/progress", params: { progressToken: token, progress, message } })
        // Whoever hung up misses nothing that cannot be read later.
        .catch(() => {});
    },
  };
}

/** What was refused is told in its own words; of anything else, that something broke. */
function describe(error: unknown, report: (error: Error) => void): string {
  if (error instanceof RuntimeError) {
    // What happened to the disk is for the log, which has it already.
    return error.code === "store_failed"
      ? "the server cannot write any more until it is restarted (store_failed)"
      : `${error.message} (${error.code})`;
  }
  report(error instanceof Error ? error : new Error(String(error)));
  return "the server made a mistake (internal_error)";
}

/** A signal that fires when the call is taken back or the time is up. */
export function within(seconds: number, { signal }: ToolCall): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, seconds * 1_000))]);
}
