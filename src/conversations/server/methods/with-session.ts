import { MapError } from "../../domain/errors.js";
import type { Call, Handler, SessionCall } from "../methods.js";

/** For methods of those who are connected. @throws MapError AUTH_REQUIRED */
export function withSession(handle: (call: SessionCall) => object | Promise<object>): Handler {
  return (call: Call) => {
    const { server, connection, session, params, afterReply } = call;
    if (session === undefined) throw new MapError("AUTH_REQUIRED");
    return handle({ server, connection, session, params, afterReply });
  };
}
