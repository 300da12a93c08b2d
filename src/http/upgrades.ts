/** WebSocket upgrades of extensions on the listener's own socket (decision D6: which pages may open one). */

import { createHash } from "node:crypto";
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
    const refusal = refusalOf(request, options);
    if (refusal !== undefined) return refuse(request, socket, refusal);
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

/** Why the page or the host is not allowed. */
function refusalOf({ headers }: IncomingMessage, { dev, cors }: UpgradeOptions): string | undefined {
  if (!dev) {
    return isOwnOrigin(headers, cors)
      ? undefined
      : "the page's origin is not allowed; add it to cors_origins";
  }
  try {
    checkDevelopmentOrigin(headers, cors);
    return undefined;
  } catch (error) {
    if (isPublicError(error)) return error.message;
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

/** Close code for a page that may not connect. Codes from 4000 on are for private use (RFC 6455, 7.4.2). */
const FOREIGN_ORIGIN = 4403;
/** Milliseconds that the client has for its part of the closing handshake. */
const CLOSING = 2_000;

/**
 * A page cannot read the status of a rejected upgrade. It can read a close code and its reason, so its connection is
 * accepted and closed at once. All other clients receive the status.
 */
function refuse(request: IncomingMessage, socket: Duplex, reason: string): void {
  const { origin, "sec-websocket-key": key } = request.headers;
  if (origin === undefined || key === undefined || !/^[+/0-9A-Za-z]{22}==$/.test(key)) {
    return reject(socket, 403, "Forbidden");
  }
  // RFC 6455, 4.2.2 and 5.5.1.
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const payload = Buffer.concat([
    Buffer.from([FOREIGN_ORIGIN >> 8, FOREIGN_ORIGIN & 0xff]),
    Buffer.from(reason),
  ]);
  socket.on("error", () => {});
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  socket.end(Buffer.concat([Buffer.from([0x88, payload.length]), payload]));
  socket.resume();
  const stop = setTimeout(() => socket.destroy(), CLOSING);
  stop.unref();
  socket.once("close", () => clearTimeout(stop));
}

function reject(socket: Duplex, status: number, reason: string): void {
  socket.end(`HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
