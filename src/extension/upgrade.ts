/** WebSocket upgrades on the server's listener. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Authenticator } from "../auth/index.js";

export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  /** The authenticator to use for this connection: it counts failures per address. */
  readonly authenticator: Authenticator;
  /** The client's address behind trusted proxies. Absent on the control socket. */
  readonly address?: string;
  /** A bearer for the request's cookies and a proof that the client sent afterward. */
  readonly credentialWith?: (proof: string) => string | undefined;
}

/** A path that accepts WebSocket upgrades. */
export interface Upgrade {
  readonly path: string;
  /** The origin was checked. Takes the socket over. */
  accept(upgrade: UpgradeRequest): void;
}

/** The path of a request, also if a client sent what is not a URL: `//`. */
export function pathOf({ url = "/" }: Pick<IncomingMessage, "url">): string {
  return url.split(/[?#]/, 1)[0] ?? "";
}
