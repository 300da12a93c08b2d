/**
 * MCP over stdio (`mailroom mcp`): a mailroom in this process, or, as is usual, a bridge to a server that runs
 * already (decisions C4).
 */
import type { Readable, Writable } from "node:stream";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type McpServerFactory, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Caller, McpDoor } from "./server.js";
import { StdioWire } from "./stdio-wire.js";

export interface StdioOptions {
  /** Default: standard input of the process. */
  readonly input?: Readable;
  /** Default: standard output of the process. */
  readonly output?: Writable;
  readonly onError?: (error: Error) => void;
}

export interface StdioConnection {
  /** Fulfilled when the input has ended and all that it asked is answered, or when the connection was closed. */
  readonly closed: Promise<void>;
  /** Ends it at once. */
  close(): Promise<void>;
}

/** Serves the mailroom of this process to whoever started it. @throws McpAccessError */
export function serveMcpStdio(door: McpDoor, caller: Caller, options: StdioOptions = {}): StdioConnection {
  door.check(caller);
  return serve(() => door.serverFor(caller), options);
}

export interface BridgeOptions extends StdioOptions {
  /** Where the server's MCP is: `https://desk.example.com/mcp`. */
  readonly url: string;
  readonly token: string;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/**
 * Passes everything on to a running server.
 * @throws Error when it cannot be reached, or refuses the token
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

/** A server that offers what the client's server offers. */
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
  const transport = new StdioWire(input, output);
  const { close } = serveStdio(factory, { transport, ...(onError !== undefined && { onerror: onError }) });
  return { closed: transport.closed, close };
}
