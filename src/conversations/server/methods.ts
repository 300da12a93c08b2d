/** The table of methods. A `Map`, so that no name of an object's own can be called. */
import type { MapConnection } from "./connection.js";
import type { MapServer } from "./map-server.js";
import { agentMethods } from "./methods/agents.js";
import { connectMethods } from "./methods/connect.js";
import { eventMethods } from "./methods/events.js";
import { mailMethods } from "./methods/mail.js";
import { scopeMethods } from "./methods/scopes.js";
import { sendMethods } from "./methods/send.js";
import type { Session } from "./session.js";

export interface Call {
  readonly server: MapServer;
  readonly connection: MapConnection;
  /** Absent only for methods that come before there is one. */
  readonly session: Session | undefined;
  readonly params: Readonly<Record<string, unknown>> | undefined;
  /** Runs right after the response was written. */
  readonly afterReply: (act: () => void) => void;
}

export type Handler = (call: Call) => object | Promise<object>;

/** A call of somebody who is connected. */
export interface SessionCall extends Call {
  readonly session: Session;
}

export type MethodTable = Readonly<Record<string, Handler>>;

export function methodTable(extensions: MethodTable = {}): ReadonlyMap<string, Handler> {
  return new Map(
    Object.entries({
      ...connectMethods,
      ...agentMethods,
      ...scopeMethods,
      ...sendMethods,
      ...eventMethods,
      ...mailMethods,
      ...extensions,
    }),
  );
}
