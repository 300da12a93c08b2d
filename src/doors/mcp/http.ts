/** MCP over streamable HTTP, mounted at `/mcp`. The listener has already authenticated the caller. */
import type { IncomingMessage } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { type AuthInfo, createMcpHandler } from "@modelcontextprotocol/server";
import { MailroomError } from "../../base/index.js";
import type { MountedCall } from "../../extension/index.js";
import type { Caller, McpDoor } from "./server.js";

export interface McpHttpDoor {
  /**
   * Serves one request.
   * @throws MailroomError `forbidden` before anything was written, when the caller cannot use MCP
   */
  handle(call: MountedCall): Promise<void>;
  /** Ends running calls. */
  close(): Promise<void>;
}

export function createMcpHttpDoor(door: McpDoor, onError: (error: Error) => void = () => {}): McpHttpDoor {
  const handler = createMcpHandler(({ authInfo }) => door.serverFor(callerOf(authInfo)), {
    onerror: onError,
  });
  const serve = toNodeHandler(handler, { onerror: onError });
  return {
    async handle({ request, response, caller, body, reading, turn }) {
      door.check(caller);
      await serve(requestOf(request, { ...caller, reading, turn }), response, body);
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
function authOf({ role, id, reading, turn }: Caller): AuthInfo {
  return { token: "", clientId: `${role}:${id}`, scopes: [], extra: { role, id, reading, turn } };
}

function callerOf(auth: AuthInfo | undefined): Caller {
  const { role, id, reading, turn } = auth?.extra ?? {};
  if (typeof id === "string" && (role === "user" || role === "admin" || role === "member"))
    return {
      role,
      id,
      ...(typeof reading === "function" && { reading: async () => reading() }),
      ...(typeof turn === "function" && { turn: async () => turn() }),
    };
  throw new MailroomError("forbidden", "the request has no authenticated caller");
}
