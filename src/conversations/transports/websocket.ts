/** MAP over WebSocket: one JSON-RPC object per text frame (map-mail 1.1). */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { MapError } from "../domain/errors.js";
import type { ConnectionOptions, Wire } from "../server/connection.js";
import type { MapServer } from "../server/map-server.js";
import { errorFrame } from "../server/rpc.js";

export interface WebSocketOptions {
  /** Default `/map`. */
  readonly path?: string;
  /** Asked before a connection is accepted; a status and a reason refuse it (decisions D6). */
  readonly verify?: (
    request: IncomingMessage,
  ) => { readonly status: number; readonly reason: string } | undefined;
  /** Who is at the other end, where the carrier knows. Default: whom the server's authenticator finds. */
  readonly identify?: (bearer: string | undefined, request: IncomingMessage) => ConnectionOptions;
}

export interface MapUpgrade {
  /** Whether the request is for this door. */
  handles(request: IncomingMessage): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Ends every connection. */
  close(): void;
}

export function createMapUpgrade(map: MapServer, options: WebSocketOptions = {}): MapUpgrade {
  const { path = "/map", verify, identify = withCredential } = options;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: map.limits.maxFrame,
    perMessageDeflate: false,
    clientTracking: true,
  });
  return {
    handles: ({ url = "/" }) => url.split("?", 1)[0] === path,
    upgrade(request, socket, head) {
      const refusal = verify?.(request);
      if (refusal !== undefined) {
        refuse(socket, refusal.status, refusal.reason);
        return;
      }
      sockets.handleUpgrade(request, socket, head, (ws) =>
        serve(map, ws, socket, identify(bearerOf(request), request)),
      );
    },
    close() {
      for (const ws of sockets.clients) ws.terminate();
      sockets.close();
    },
  };
}

/** Serves MAP at `/map` of an HTTP server. Requests to upgrade at other paths are left to others. */
export function attachMap(server: Server, map: MapServer, options: WebSocketOptions = {}): MapUpgrade {
  const door = createMapUpgrade(map, options);
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (door.handles(request)) door.upgrade(request, socket, head);
    else if (server.listenerCount("upgrade") === 1) refuse(socket, 404, "Not Found");
  };
  server.on("upgrade", onUpgrade);
  return {
    ...door,
    close() {
      server.off("upgrade", onUpgrade);
      door.close();
    },
  };
}

function serve(map: MapServer, ws: WebSocket, socket: Duplex, options: ConnectionOptions): void {
  const connection = map.connect(wireOf(ws, socket), options);
  // A broken frame is followed by `close`; without a listener it would end the process.
  ws.on("error", () => {});
  if (connection === undefined) return;
  const stopPings = keepAlive(map, ws);
  ws.on("message", (data, isBinary) => {
    if (isBinary) {
      const error = new MapError("INVALID_REQUEST", "frames are text, not binary");
      connection.send(errorFrame(null, error.toWire()));
    } else {
      connection.receive(textOf(data));
    }
  });
  ws.on("close", () => {
    stopPings();
    connection.lost();
  });
}

function wireOf(ws: WebSocket, socket: Duplex): Wire {
  let corked = false;
  return {
    send(text) {
      if (ws.readyState !== ws.OPEN) return;
      // Frames of one moment leave in one write.
      if (!corked) {
        corked = true;
        socket.cork();
        process.nextTick(() => {
          corked = false;
          socket.uncork();
        });
      }
      ws.send(text);
    },
    get buffered() {
      return ws.bufferedAmount;
    },
    close(code, reason) {
      ws.close(code, reason);
      // A peer that does not answer the closing, or reads nothing, is not waited for.
      const stop = setTimeout(() => ws.terminate(), 2000);
      stop.unref();
      ws.once("close", () => clearTimeout(stop));
    },
    pause: () => ws.pause(),
    resume: () => ws.resume(),
  };
}

/** Two pings without an answer, and the connection is dead. */
function keepAlive({ clock, limits }: MapServer, ws: WebSocket): () => void {
  let unanswered = 0;
  let cancel = (): void => {};
  const tick = (): void => {
    if (unanswered >= 2) {
      ws.terminate();
      return;
    }
    unanswered++;
    ws.ping();
    cancel = clock.after(limits.pingInterval, tick);
  };
  ws.on("pong", () => {
    unanswered = 0;
  });
  cancel = clock.after(limits.pingInterval, tick);
  return () => cancel();
}

function textOf(data: Buffer | ArrayBuffer | Buffer[]): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString();
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString();
}

function bearerOf({ headers }: IncomingMessage): string | undefined {
  return /^bearer +(\S+) *$/i.exec(headers.authorization ?? "")?.[1];
}

function withCredential(credential: string | undefined): ConnectionOptions {
  return credential === undefined ? {} : { credential };
}

function refuse(socket: Duplex, status: number, reason: string): void {
  socket.end(`HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
