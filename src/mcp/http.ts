/** Streamable HTTP: what the HTTP door mounts at `/mcp`. Whoever calls was authenticated there already. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { type AuthInfo, createMcpHandler } from "@modelcontextprotocol/server";
import type { Principal } from "../auth/index.js";
import { type Caller, McpAccessError, type McpDoor } from "./server.js";

export interface McpHttpDoor {
  /**
   * Serves one request.
   * @param body the parsed body, where it was read already
   * @throws McpAccessError before anything was written, when the caller may not use MCP
   */
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    caller: Principal,
    body?: unknown,
  ): Promise<void>;
  /** Ends what is under way. */
  close(): Promise<void>;
}

export function createMcpHttpDoor(door: McpDoor, onError: (error: Error) => void = () => {}): McpHttpDoor {
  const handler = createMcpHandler(({ authInfo }) => door.serverFor(callerOf(authInfo)), {
    onerror: onError,
  });
  const serve = toNodeHandler(handler, { onerror: onError });
  return {
    async handle(request, response, caller, body) {
      door.check(caller);
      await serve(requestOf(request, caller), response, body);
    },
    close: () => handler.close(),
  };
}

function requestOf(request: IncomingMessage, caller: Caller) {
  return {
    method: request.method ?? "GET",
    url: request.url ?? "/",
    headers: request.headers,
    auth: authOf(caller),
    [Symbol.asyncIterator]: () => request[Symbol.asyncIterator](),
  };
}

/** The handler passes this through untouched. The credential itself stays where it was checked. */
function authOf({ role, id }: Caller): AuthInfo {
  return { token: "", clientId: `${role}:${id}`, scopes: [], extra: { role, id } };
}

function callerOf(auth: AuthInfo | undefined): Caller {
  const { role, id } = auth?.extra ?? {};
  if (typeof id === "string" && (role === "user" || role === "admin" || role === "member"))
    return { role, id };
  throw new McpAccessError("invalid_role", "nobody is known to be calling");
}
