/** ASP: Infrastructure Requirements. The TLS listener for peers: TLS 1.2 or newer, HTTP/2 and HTTP/1.1. */
import { constants, createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { Semaphore } from "../../base/index.js";
import { LIMITS } from "../../mesh/index.js";
import { createBodyMemory, IncomingBody } from "./body-memory.js";
import { addressBehind, networkOf } from "./client-address.js";
import { Connections } from "./connections.js";
import { type MeshHandler, type MeshResponse, overloaded, type RequestHead } from "./handler.js";

export interface ListenerOptions {
  readonly handle: MeshHandler;
  readonly host: string;
  readonly port: number;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  /**
   * Number of trusted proxies in front of the listener (default 0). With proxies, callers are identified by the
   * address that the proxies report.
   */
  readonly proxies?: number;
  /** Default 1,000. */
  readonly maxConnections?: number;
  /** Connections per caller. Not enforced behind proxies, where all connections come from the proxy. Default 64. */
  readonly maxConnectionsPerAddress?: number;
  /** Requests per caller that are being served, over all its connections. Default 256. */
  readonly maxRequestsPerAddress?: number;
  /** Memory for the bodies of all requests together. */
  readonly bodyMemory?: Semaphore;
  /** Milliseconds for receiving the whole body of a request. Default 30 s. */
  readonly bodyTime?: number;
  /** Milliseconds for the TLS handshake. Default 10 s. */
  readonly handshakeTime?: number;
}

export interface Listener {
  readonly port: number;
  /** Uses renewed certificates for new connections. */
  renew(files: { readonly cert: string; readonly key: string }): void;
  close(): Promise<void>;
}

export async function listen(options: ListenerOptions): Promise<Listener> {
  const { proxies = 0, maxConnections = 1_000, maxConnectionsPerAddress = 64 } = options;
  const server = createSecureServer({
    allowHTTP1: true,
    minVersion: "TLSv1.2",
    cert: options.cert,
    key: options.key,
    settings: { maxConcurrentStreams: 32 },
    handshakeTimeout: options.handshakeTime ?? 10_000,
  });
  const sessions = new Set<{ destroy(): void }>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    session.setTimeout(120_000, () => session.close());
  });
  // Tracked from the first byte: a client that never finishes its handshake would otherwise delay the shutdown.
  server.on("connection", (socket: Socket) => {
    sessions.add(socket);
    socket.on("close", () => sessions.delete(socket));
  });
  // Connections that peers abort are normal.
  server.on("sessionError", () => undefined);
  server.on("tlsClientError", () => undefined);
  const door: ListenerContext = {
    handle: options.handle,
    proxies,
    requests: new Semaphore({ perKey: options.maxRequestsPerAddress ?? 256 }),
    memory: options.bodyMemory ?? createBodyMemory(),
    bodyTime: options.bodyTime ?? 30_000,
  };
  const connections = new Connections(maxConnections, proxies === 0 ? maxConnectionsPerAddress : undefined);
  server.on("connection", (socket: Socket) => connections.add(socket));
  server.on("request", (request, response) => {
    connections.busy(request, response);
    void serve(door, request, response).catch(() => hangUp(request));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.removeListener("error", reject);
      resolve();
    });
  });
  const address = server.address();
  return {
    port: isAddressInfo(address) ? address.port : options.port,
    renew: ({ cert, key }) => server.setSecureContext({ cert, key, minVersion: "TLSv1.2" }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.destroy();
      }),
  };
}

interface ListenerContext {
  readonly handle: MeshHandler;
  readonly proxies: number;
  readonly requests: Semaphore;
  readonly memory: Semaphore;
  readonly bodyTime: number;
}

/** Reads the body last and only if needed, because the peer is not authenticated yet. */
async function serve(
  door: ListenerContext,
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Promise<void> {
  const head = headOf(request, door.proxies);
  // Also ends requests that are silent or send their body too slowly.
  hangUpAfter(door.bodyTime, request);
  const release = door.requests.tryAcquire(networkOf(head.address));
  if (release === undefined) return answer(request, response, overloaded());
  response.once("close", release);
  const early = door.handle.early?.(head);
  if (early !== undefined) return answer(request, response, early);
  const body = new IncomingBody(door.memory, networkOf(head.address), LIMITS.bodyBytes);
  try {
    const hadRoom = await readBody(request, body);
    answer(request, response, hadRoom ? await door.handle({ ...head, body: body.bytes }) : overloaded());
  } finally {
    body.release();
  }
}

function headOf(request: Http2ServerRequest, proxies: number): RequestHead {
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  const address = request.socket.remoteAddress ?? "unknown";
  return {
    method: request.method,
    path: pathOf(request.url),
    headers,
    address: addressBehind(proxies, { headers, address }),
  };
}

/** Never throws: an unauthenticated peer chose the target. Proxies may send it in absolute form. */
function pathOf(target: string): string {
  if (!target.startsWith("/") && target.length <= LIMITS.urlCharacters && URL.canParse(target)) {
    return new URL(target).pathname;
  }
  const end = target.indexOf("?");
  return end < 0 ? target : target.slice(0, end);
}

/** Stops reading right after the limit, or when memory runs out. Returns whether there was enough memory. */
function readBody(request: Http2ServerRequest, body: IncomingBody): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const take = (part: Uint8Array): void => {
      const hadRoom = body.add(part);
      if (hadRoom && !body.isTooLong) return;
      request.off("data", take);
      resolve(hadRoom);
    };
    request.on("data", take);
    request.once("end", () => resolve(true));
    request.once("error", reject);
    request.once("close", () => reject(new Error("the peer closed the connection")));
  });
}

/**
 * Milliseconds during which the unread rest of a body is received and discarded. A client that is disconnected while
 * it is still sending may never read the response.
 */
const LINGER = 1_000;

function answer(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
  { status, headers, body }: MeshResponse,
): void {
  response.writeHead(status, headers);
  response.end(body, () => {
    if (request.readableEnded) return;
    request.resume();
    hangUpAfter(LINGER, request, constants.NGHTTP2_NO_ERROR);
  });
}

/** Does nothing if the request has ended by then. */
function hangUpAfter(ms: number, request: Http2ServerRequest, code?: number): void {
  const timer = setTimeout(() => hangUp(request, code), ms);
  request.once("end", () => clearTimeout(timer));
  request.once("close", () => clearTimeout(timer));
}

/** Closes the stream in HTTP/2. In HTTP/1.1 only the whole connection can be closed. */
function hangUp(request: Http2ServerRequest, code: number = constants.NGHTTP2_CANCEL): void {
  if (request.httpVersionMajor === 1) request.socket.destroy();
  else request.stream.close(code);
}

function isAddressInfo(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}
