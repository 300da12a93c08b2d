/** WebSocket upgrades of extensions on the listener's own socket (decision D6: which pages may open one). */

import { type IncomingMessage, type Server, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Authenticator } from "../auth/index.js";
import { isPublicError } from "../base/index.js";
import { pathOf, type Upgrade } from "../extension/index.js";
import type { CorsOptions } from "./options.js";
import { checkDevelopmentOrigin } from "./origin.js";

export interface UpgradeOptions {
  readonly upgrades: readonly Upgrade[];
  readonly dev: boolean;
  readonly cors: CorsOptions | undefined;
  /** Counts failures per address, as for requests (decision D7). */
  readonly authenticatorFor: (request: IncomingMessage) => Authenticator;
  /** The client's address behind trusted proxies. */
  readonly addressOf: (request: IncomingMessage) => string;
  readonly credentialWith: (cookies: string | undefined, proof: string) => string | undefined;
}

/** @returns a function that stops serving them */
export function serveUpgrades(server: Server, options: UpgradeOptions): () => void {
  const { upgrades, authenticatorFor, addressOf, credentialWith } = options;
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    // Only WebSockets are served; any other protocol is an offer that a server may ignore (RFC 9110, 7.8).
    if (!isWebSocket(request)) return serveWithoutUpgrade(server, request, socket);
    const upgrade = upgrades.find(({ path }) => path === pathOf(request));
    if (upgrade === undefined) return reject(socket, 404, "Not Found");
    if (!isAllowed(request, options)) return reject(socket, 403, "Forbidden");
    const address = addressOf(request);
    upgrade.accept({
      request,
      socket,
      head,
      authenticator: authenticatorFor(request),
      ...(address !== "" && { address }),
      credentialWith: (proof) => credentialWith(request.headers.cookie, proof),
    });
  };
  server.on("upgrade", onUpgrade);
  return () => server.off("upgrade", onUpgrade);
}

function isAllowed({ headers }: IncomingMessage, { dev, cors }: UpgradeOptions): boolean {
  if (!dev) return isOwnOrigin(headers, cors);
  try {
    checkDevelopmentOrigin(headers, cors);
    return true;
  } catch (error) {
    if (isPublicError(error)) return false;
    throw error;
  }
}

/** Browsers name the page that opens a WebSocket, but leave it to the server to reject it. */
function isOwnOrigin({ origin, host }: IncomingMessage["headers"], cors: CorsOptions | undefined): boolean {
  if (origin === undefined) return true;
  if (cors?.origins.some((allowed) => allowed === "*" || allowed === origin) === true) return true;
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host;
}

function isWebSocket({ headers }: IncomingMessage): boolean {
  return (
    headers.upgrade
      ?.toLowerCase()
      .split(/\s*,\s*/)
      .includes("websocket") === true
  );
}

/** Node hands over the connection of every offer. A body cannot be read any longer, so a request with one is rejected. */
function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex): void {
  const { headers } = request;
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (hasBody || !(socket instanceof Socket)) return reject(socket, 501, "Not Implemented");
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once("finish", () => {
    response.detachSocket(socket);
    socket.end();
  });
  server.emit("request", request, response);
}

function reject(socket: Duplex, status: number, reason: string): void {
  socket.end(`HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
