/** MAP over WebSocket: one JSON-RPC object per text frame (REF-24). */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { MapError } from "../../../conversations/index.js";
import type { ConnectionOptions, Transport } from "../connection.js";
import type { MapServer } from "../server.js";

export interface WebSocketOptions {
  /** Default `/map`. */
  readonly path?: string;
  /** Called before a connection is accepted; a status and a reason reject it (decision D6). */
  readonly verify?: (
    request: IncomingMessage,
  ) => { readonly status: number; readonly reason: string } | undefined;
  /** Identifies the peer, if the transport can. Default: the server's authenticator. */
  readonly identify?: (bearer: string | undefined, request: IncomingMessage) => ConnectionOptions;
}

export interface MapUpgrade {
  /** Whether the request is for this endpoint. */
  handles(request: IncomingMessage): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Closes every connection. */
  close(): void;
}

export function createMapUpgrade(map: MapServer, options: WebSocketOptions = {}): MapUpgrade {
  const { path = "/map", verify, identify = withCredential } = options;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: map.limits.maxFrame,
    perMessageDeflate: false,
    clientTracking: true,
    // Pongs are sent here, because unread ones would be held without a limit.
    autoPong: false,
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

/** Serves MAP at `/map` of an HTTP server. Leaves upgrade requests for other paths to other listeners. */
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

/** Pongs are not sent to a client that has this much unread. */
const MAX_UNREAD_FOR_PONG = 64 * 1024;

function serve(map: MapServer, ws: WebSocket, socket: Duplex, options: ConnectionOptions): void {
  const connection = map.connect(transportOf(ws, socket), options);
  // An invalid frame emits `error` and then `close`; an unhandled `error` would end the process.
  ws.on("error", () => {});
  if (connection === undefined) return;
  const stopPings = keepAlive(map, ws);
  // Before the frames in these bytes are handled.
  socket.prependListener("data", (bytes: Buffer) => connection.receiving(bytes.length));
  ws.on("ping", (data) => {
    connection.pinged();
    if (ws.readyState === ws.OPEN && ws.bufferedAmount < MAX_UNREAD_FOR_PONG) ws.pong(data);
  });
  ws.on("pong", () => connection.pinged());
  ws.on("message", (data, isBinary) => {
    if (isBinary) {
      connection.reject(new MapError("INVALID_REQUEST", "binary frames are not supported; send text"));
    } else {
      connection.receive(textOf(data));
    }
  });
  ws.on("close", () => {
    stopPings();
    connection.lost();
    connection.released();
  });
}

function transportOf(ws: WebSocket, socket: Duplex): Transport {
  let corked = false;
  return {
    send(text) {
      if (ws.readyState !== ws.OPEN) return;
      // Send all frames of one tick in one write.
      if (!corked) {
        corked = true;
        socket.cork();
        process.nextTick(() => {
          corked = false;
          socket.uncork();
        });
      }
      // As bytes, because text would be held twice until the client has read it: by its writer and by the socket.
      ws.send(Buffer.from(text), { binary: false });
    },
    get buffered() {
      return ws.bufferedAmount;
    },
    close(code, reason) {
      ws.close(code, reason);
      // Do not wait for a peer that does not complete the closing handshake.
      const stop = setTimeout(() => ws.terminate(), 2000);
      stop.unref();
      ws.once("close", () => clearTimeout(stop));
    },
    abort: () => ws.terminate(),
    pause: () => ws.pause(),
    resume: () => ws.resume(),
  };
}

/** Terminates the connection after two unanswered pings. */
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

function withCredential(
  credential: string | undefined,
  { socket: { remoteAddress: address } }: IncomingMessage,
): ConnectionOptions {
  return {
    ...(credential !== undefined && { credential }),
    ...(address !== undefined && { address }),
  };
}

function refuse(socket: Duplex, status: number, reason: string): void {
  socket.end(`HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
