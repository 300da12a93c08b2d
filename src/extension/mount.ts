/** Protocols that write their own responses on the server's listener, behind its authentication, limits and headers. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal, Role } from "../auth/index.js";
import type { DescribedRoute } from "./route.js";
import type { NextTurn } from "./stream.js";

export interface MountedCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly caller: Principal;
  /** The parsed body; `undefined` if there was none. */
  readonly body: unknown;
  /**
   * Resolves when the caller may read contents of tasks: a few requests of one caller do so at once. The request keeps its
   * place until its response has been sent.
   * @throws MailroomError `overloaded` when too many wait
   */
  reading(): Promise<void>;
  /** Waits for the next turn of the caller. */
  readonly turn: NextTurn;
}

/** One method of a mount, as the OpenAPI document describes it. */
export type MountedOperation = Omit<DescribedRoute, "path" | "access" | "bodyReader">;

/** A path whose protocol writes its own responses (MCP, A2A), behind the same authentication and limits. */
export interface Mount {
  readonly path: string;
  readonly operations: readonly MountedOperation[];
  /** Headers of its protocol, for browsers: those that they may send, and those of responses that they may read. */
  readonly headers?: { readonly sent: readonly string[]; readonly read: readonly string[] };
  /** Other roles get 403. */
  readonly roles: readonly Role[];
  /** A further check of the caller. @throws MailroomError */
  admit?(caller: Principal): void | Promise<void>;
  /** Writes the whole response. Resolves when that is done. */
  handle(call: MountedCall): Promise<void>;
}
