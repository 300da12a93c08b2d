/** ASP: Infrastructure Requirements. The mesh's own listener: TLS 1.2 or newer, HTTP/2 and 1.1, nothing else on it. */
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { AddressInfo } from "node:net";
import { LIMITS } from "../message/types.js";
import type { MeshRequest, MeshResponse } from "./handler.js";

export interface ListenerOptions {
  readonly handle: (request: MeshRequest) => Promise<MeshResponse>;
  readonly host: string;
  readonly port: number;
  /** PEM texts. */
  readonly cert: string;
  readonly key: string;
  /** Default 1,000. */
  readonly maxConnections?: number;
}

export interface Listener {
  readonly port: number;
  /** Puts renewed certificates to use without a break. */
  renew(files: { readonly cert: string; readonly key: string }): void;
  close(): Promise<void>;
}

export async function listen(options: ListenerOptions): Promise<Listener> {
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
  server.on("secureConnection", (socket) => {
    sessions.add(socket);
    socket.on("close", () => sessions.delete(socket));
  });
  // Peers that break off are an everyday thing.
  server.on("sessionError", () => undefined);
  server.on("tlsClientError", () => undefined);
  server.on("request", (request, response) => {
    void serve(options.handle, request, response).catch(() => request.destroy());
  });
  server.maxConnections = options.maxConnections ?? 1_000;
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

async function serve(
  handle: ListenerOptions["handle"],
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Promise<void> {
  // Who does not finish asking in this time is not waited for.
  request.setTimeout(30_000, () => request.destroy());
  const body = await readBody(request);
  const path = new URL(request.url, "https://mesh.invalid").pathname;
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  const answer = await handle({
    method: request.method,
    path,
    headers,
    body,
    address: request.socket.remoteAddress ?? "unknown",
  });
  const cutOff = body.length > LIMITS.bodyBytes;
  // HTTP/2 has no such header, and needs none: there a single stream is closed.
  const closing = cutOff && request.httpVersionMajor === 1 ? { connection: "close" } : {};
  response.writeHead(answer.status, { ...answer.headers, ...closing });
  response.end(answer.body, () => {
    if (cutOff) request.destroy();
  });
}

/** Stops reading just behind the limit: one byte more is enough to be refused. */
function readBody(request: Http2ServerRequest): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const parts: Uint8Array[] = [];
    let size = 0;
    const take = (part: Uint8Array): void => {
      parts.push(part);
      size += part.length;
      if (size <= LIMITS.bodyBytes) return;
      request.off("data", take);
      request.pause();
      resolve(Buffer.concat(parts));
    };
    request.on("data", take);
    request.once("end", () => resolve(Buffer.concat(parts)));
    request.once("error", reject);
    request.once("aborted", () => reject(new Error("the peer broke off")));
  });
}

function isAddressInfo(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}
