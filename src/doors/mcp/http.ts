/** MCP over streamable HTTP, mounted at `/mcp`. The listener has already authenticated the caller. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { type AuthInfo, createMcpHandler } from "@modelcontextprotocol/server";
import type { Principal } from "../../auth/index.js";
import { MailroomError } from "../../base/index.js";
import type { Caller, McpDoor } from "./server.js";

export interface McpHttpDoor {
  /**
   * Serves one request.
   * @param body the parsed body, if it was already read
   * @throws MailroomError `forbidden` before anything was written, when the caller cannot use MCP
   */
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    caller: Principal,
    body?: unknown,
  ): Promise<void>;
  /** Ends running calls. */
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

/** The handler passes this through unchanged. The credential stays in the listener. */
function authOf({ role, id }: Caller): AuthInfo {
  return { token: "", clientId: `${role}:${id}`, scopes: [], extra: { role, id } };
}

function callerOf(auth: AuthInfo | undefined): Caller {
  const { role, id } = auth?.extra ?? {};
  if (typeof id === "string" && (role === "user" || role === "admin" || role === "member"))
    return { role, id };
  throw new MailroomError("forbidden", "the request has no authenticated caller");
}
