/** The socket: plain HTTP/1.1, or TLS with HTTP/2 and HTTP/1.1 on the same port (decision D10). */
import { readFileSync } from "node:fs";
import { createServer as createPlainServer, type RequestListener, type Server } from "node:http";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import type { TlsFiles } from "./options.js";
import { limitPipelining } from "./pipelining.js";

export interface Listener {
  readonly server: Server;
  /** Uses a renewed certificate; open connections keep the old one. */
  reloadTls(): void;
  /** Closes idle connections. */
  closeIdle(): void;
  closeAll(): void;
}

/** Longer than the idle timeout of common proxies, so that the proxy closes idle connections first. */
const KEEP_ALIVE = 72_000;

/** @param streams requests of one HTTP/2 connection that are served at once */
export function createListener(
  handler: RequestListener,
  tls: TlsFiles | undefined,
  streams: number,
): Listener {
  const limited = limitPipelining(handler);
  return tls === undefined ? plain(limited) : secure(limited, tls, streams);
}

function plain(handler: RequestListener): Listener {
  const server = createPlainServer({ keepAliveTimeout: KEEP_ALIVE }, handler);
  return {
    server,
    reloadTls: () => {},
    closeIdle: () => server.closeIdleConnections(),
    closeAll: () => server.closeAllConnections(),
  };
}

function secure(handler: RequestListener, files: TlsFiles, streams: number): Listener {
  const read = () => ({ cert: readFileSync(files.cert), key: readFileSync(files.key) });
  const server = createSecureServer({
    ...read(),
    allowHTTP1: true,
    settings: { maxConcurrentStreams: streams },
  });
  server.on("request", handler);
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    session.setTimeout(KEEP_ALIVE, () => session.close());
  });
  const sockets = new Set<{ destroy(): void }>();
  server.on("secureConnection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  if (!servesLikeHttp1(server))
    throw new Error("the HTTP/2 server of this version of Node lacks a method of the HTTP/1.1 server");
  return {
    server,
    reloadTls: () => server.setSecureContext(read()),
    closeIdle: () => {
      for (const session of sessions) session.close();
    },
    closeAll: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Fastify's types allow one kind of server; both have the methods that it calls. */
function servesLikeHttp1(server: Http2SecureServer | Server): server is Server {
  return (["listen", "close", "address", "on", "once", "setTimeout"] as const).every(
    (name) => typeof server[name] === "function",
  );
}
