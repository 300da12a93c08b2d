/** Calls and handlers of methods. */
import { MapError } from "../../conversations/index.js";
import type { ConnectionCall } from "./connection.js";
import type { MapContext } from "./context.js";
import type { Session } from "./session.js";

export interface MethodCall extends ConnectionCall {
  readonly context: MapContext;
}

/** A call on a connection that has a session. */
export interface SessionCall extends MethodCall {
  readonly session: Session;
}

export type MethodHandler = (call: MethodCall) => object | Promise<object>;

export type MethodTable = Readonly<Record<string, MethodHandler>>;

/** For methods that need a session. @throws MapError AUTH_REQUIRED */
export function withSession(handle: (call: SessionCall) => object | Promise<object>): MethodHandler {
  return (call: MethodCall) => {
    const { context, connection, session, params, afterReply } = call;
    if (session === undefined) throw new MapError("AUTH_REQUIRED");
    return handle({ context, connection, session, params, afterReply });
  };
}

/** For methods with large answers from memory: one in each turn of the event loop. */
export function listing(handle: MethodHandler): MethodHandler {
  return (call) => call.connection.inWholeTurn(async () => handle(call));
}

/** For methods that read contents: a few at a time, and none for a client that does not read its answers. */
export function reading(handle: MethodHandler): MethodHandler {
  return (call) => call.connection.scan(async () => handle(call));
}
