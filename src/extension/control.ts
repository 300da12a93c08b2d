import type { IncomingMessage, ServerResponse } from "node:http";

/** A request on the control socket that an extension answers. Only local administrators can open the socket. */
export interface ControlOperation {
  /** Below `/control/`. */
  readonly path: string;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}
