/**
 * MCP over stdio (`mailroom mcp`): a mailroom in this process, or, as is usual, a bridge to a server that runs
 * already (decisions C4).
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Server, type Transport } from "@modelcontextprotocol/server";
import { type StdioServerHandle, serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Caller, McpDoor } from "./server.js";

export interface StdioOptions {
  /** Default: standard input and output of the process. */
  readonly transport?: Transport;
  readonly onError?: (error: Error) => void;
}

/** Serves the mailroom of this process to whoever started it. @throws McpAccessError */
export function serveMcpStdio(door: McpDoor, caller: Caller, options: StdioOptions = {}): StdioServerHandle {
  door.check(caller);
  return serveStdio(() => door.serverFor(caller), serveOptions(options));
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
export async function bridgeMcpStdio(options: BridgeOptions): Promise<StdioServerHandle> {
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
  const handle = serveStdio(() => mirrorOf(client), serveOptions(options));
  return {
    async close() {
      await handle.close();
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

function serveOptions({ transport, onError }: StdioOptions) {
  return {
    ...(transport !== undefined && { transport }),
    ...(onError !== undefined && { onerror: onError }),
  };
}
