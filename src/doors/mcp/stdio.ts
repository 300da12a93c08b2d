/** MCP over stdio (`mailroom mcp`): a bridge to a running server, or a mailroom in this process (decision C4). */
import type { Readable, Writable } from "node:stream";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type McpServerFactory, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Caller, McpDoor } from "./server.js";
import { StdioTransport } from "./stdio-transport.js";

export interface StdioOptions {
  /** Default: standard input. */
  readonly input?: Readable;
  /** Default: standard output. */
  readonly output?: Writable;
  readonly onError?: (error: Error) => void;
}

export interface StdioConnection {
  /** Resolves when the input has ended and all requests are answered, or when the connection is closed. */
  readonly closed: Promise<void>;
  /** Ends it at once. */
  close(): Promise<void>;
}

/** Serves the mailroom of this process to the process that started it. @throws MailroomError `forbidden` */
export function serveMcpStdio(door: McpDoor, caller: Caller, options: StdioOptions = {}): StdioConnection {
  door.check(caller);
  return serve(() => door.serverFor(caller), options);
}

export interface BridgeOptions extends StdioOptions {
  /** URL of the server's MCP endpoint: `https://desk.example.com/mcp`. */
  readonly url: string;
  readonly token: string;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/**
 * Forwards everything to a running server.
 * @throws Error when the server cannot be reached or rejects the token
 */
export async function bridgeMcpStdio(options: BridgeOptions): Promise<StdioConnection> {
  const client = new Client(
    { name: "mailroom-bridge", version: "1" },
    { versionNegotiation: { mode: "auto" } },
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL(options.url), {
      requestInit: { headers: { authorization: `Bearer ${options.token}` } },
      ...(options.fetch !== undefined && { fetch: options.fetch }),
    }),
  );
  const connection = serve(() => mirrorOf(client), options);
  return {
    closed: connection.closed,
    async close() {
      await connection.close();
      await client.close();
    },
  };
}

/** A server with the capabilities of the remote server. */
function mirrorOf(client: Client): Server {
  const instructions = client.getInstructions();
  const server = new Server(client.getServerVersion() ?? { name: "mailroom", version: "1" }, {
    capabilities: { tools: {} },
    ...(instructions !== undefined && { instructions }),
  });
  server.setRequestHandler("tools/list", (request) => client.listTools(request.params));
  server.setRequestHandler("tools/call", (request, { mcpReq }) =>
    client.callTool(request.params, {
      signal: mcpReq.signal,
      onprogress: ({ progress, message }) => {
        const token = mcpReq._meta?.progressToken;
        if (token === undefined) return;
        const params = { progressToken: token, progress, ...(message !== undefined && { message }) };
        mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
      },
    }),
  );
  return server;
}

function serve(factory: McpServerFactory, options: StdioOptions): StdioConnection {
  const { input = process.stdin, output = process.stdout, onError } = options;
  const transport = new StdioTransport(input, output);
  const { close } = serveStdio(factory, { transport, ...(onError !== undefined && { onerror: onError }) });
  return { closed: transport.closed, close };
}
