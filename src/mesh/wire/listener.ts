/** ASP: Infrastructure Requirements. The mesh's own listener: TLS 1.2 or newer, HTTP/2 and 1.1, nothing else on it. */
import { constants, createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { LIMITS } from "../message/types.js";
import { addressBehind, networkOf } from "./address.js";
import { BodyMemory, IncomingBody } from "./body-memory.js";
import { type MeshHandler, type MeshResponse, overloaded, type RequestHead } from "./handler.js";

export interface ListenerOptions {
  readonly handle: MeshHandler;
  readonly host: string;
  readonly port: number;
  /** PEM texts. */
  readonly cert: string;
  readonly key: string;
  /** How many proxies of ours stand before it (default none): then callers are told apart by what the proxies say. */
  readonly proxies?: number;
  /** Default 1,000. */
  readonly maxConnections?: number;
  /** Of one caller; not counted behind proxies, where all connections come from the same one. Default 64. */
  readonly maxConnectionsPerAddress?: number;
  /** What the bodies of all requests may take together. */
  readonly bodyMemory?: BodyMemory;
  /** Milliseconds for the whole body of a request. Default 30 s. */
  readonly bodyTime?: number;
}

export interface Listener {
  readonly port: number;
  /** Puts renewed certificates to use without a break. */
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
  });
  const sessions = new Set<{ destroy(): void }>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    session.setTimeout(120_000, () => session.close());
  });
  // From the first byte on: who never finishes its handshake would keep us from ending.
  server.on("connection", (socket: Socket) => {
    sessions.add(socket);
    socket.on("close", () => sessions.delete(socket));
  });
  // Peers that break off are an everyday thing.
  server.on("sessionError", () => undefined);
  server.on("tlsClientError", () => undefined);
  const door: Door = {
    handle: options.handle,
    proxies,
    memory: options.bodyMemory ?? new BodyMemory(),
    bodyTime: options.bodyTime ?? 30_000,
  };
  server.on("request", (request, response) => {
    void serve(door, request, response).catch(() => hangUp(request));
  });
  server.maxConnections = maxConnections;
  if (proxies === 0) server.on("connection", limitPerAddress(maxConnectionsPerAddress));
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

/** Hangs up on who has as many connections as one caller may have. */
function limitPerAddress(most: number): (socket: Socket) => void {
  const open = new Map<string, number>();
  return (socket) => {
    const caller = networkOf(socket.remoteAddress ?? "unknown");
    const count = (open.get(caller) ?? 0) + 1;
    if (count > most) {
      socket.destroy();
      return;
    }
    open.set(caller, count);
    socket.once("close", () => {
      const left = (open.get(caller) ?? 1) - 1;
      if (left > 0) open.set(caller, left);
      else open.delete(caller);
    });
  };
}

interface Door {
  readonly handle: MeshHandler;
  readonly proxies: number;
  readonly memory: BodyMemory;
  readonly bodyTime: number;
}

/** The body is read last, and only if it matters: whoever asks is a stranger. */
async function serve(door: Door, request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
  const head = headOf(request, door.proxies);
  // Who does not finish asking in this time is not waited for, whether it is silent or dribbles.
  hangUpAfter(door.bodyTime, request);
  const early = door.handle.early?.(head);
  if (early !== undefined) return answer(request, response, early);
  const body = new IncomingBody(door.memory, networkOf(head.address), LIMITS.bodyBytes);
  try {
    const hadRoom = await readBody(request, body);
    answer(request, response, hadRoom ? await door.handle({ ...head, body: body.bytes }) : overloaded());
  } finally {
    body.forget();
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
    path: new URL(request.url, "https://mesh.invalid").pathname,
    headers,
    address: addressBehind(proxies, { headers, address }),
  };
}

/** Stops reading just behind the limit, or where there is no room: whether there was. */
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
    request.once("close", () => reject(new Error("the peer broke off")));
  });
}

/**
 * Milliseconds in which the rest of a body that was not read is let pass, unkept: who is hung up on while it still sends
 * may never see the answer.
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

/** Unless the request has come to its end by then. */
function hangUpAfter(ms: number, request: Http2ServerRequest, code?: number): void {
  const timer = setTimeout(() => hangUp(request, code), ms);
  request.once("end", () => clearTimeout(timer));
  request.once("close", () => clearTimeout(timer));
}

/** In HTTP/2 a single stream ends; before it there is nothing smaller than the connection. */
function hangUp(request: Http2ServerRequest, code: number = constants.NGHTTP2_CANCEL): void {
  if (request.httpVersionMajor === 1) request.socket.destroy();
  else request.stream.close(code);
}

function isAddressInfo(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}
