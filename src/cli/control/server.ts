/** The control socket of a running server: its whole HTTP interface as local admin, its tokens, and more. */
import { chmod, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { devAuthenticator, type Tokens } from "../../auth/index.js";
import { attachMap, type MapServer } from "../../conversations/index.js";
import type { ControlContext } from "./context.js";
import { serveTokens } from "./tokens-api.js";

export interface ControlParts {
  readonly path: string;
  readonly context: ControlContext;
  readonly tokens: Tokens;
  /** More that only the socket has: each says whether the request was its own, and was answered. */
  readonly also?: readonly ((request: IncomingMessage, response: ServerResponse) => Promise<boolean>)[];
  /** MAP: whoever comes through the socket is known by name. */
  readonly map?: MapServer;
  /** The server's own handler of requests. */
  readonly app: (request: IncomingMessage, response: ServerResponse) => void;
}

export interface Control {
  close(): Promise<void>;
}

/** To be called with the data directory's lock in hand: a socket that is still there belongs to a dead process. */
export async function openControl(parts: ControlParts): Promise<Control> {
  const { path, context, tokens, app, also = [] } = parts;
  const serveOwn = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    if (await serveTokens(tokens, request, response)) return true;
    for (const serve of also) if (await serve(request, response)) return true;
    return false;
  };
  const server = createServer((request, response) => {
    const as = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
    // Taken off, so that nobody behind the door takes it for a credential.
    delete request.headers.authorization;
    serveOwn(request, response).then(
      (served) => {
        if (served) return;
        const leave = context.run(as, () => app(request, response));
        response.once("close", leave);
      },
      () => {
        if (!response.headersSent) response.writeHead(500, { "content-type": "application/json" });
        response.end(JSON.stringify({ detail: "the server made a mistake", code: "internal_error" }));
      },
    );
  });
  const map =
    parts.map === undefined
      ? undefined
      : attachMap(server, parts.map, {
          identify: (as = "admin:local") => ({ credential: as, authenticator: devAuthenticator() }),
        });
  const onWindows = process.platform === "win32";
  if (!onWindows) await rm(path, { force: true });
  // The socket is private from its first moment, also in a directory that is not.
  const before = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
  } finally {
    process.umask(before);
  }
  if (!onWindows) await chmod(path, 0o600);
  return {
    close: async () => {
      map?.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      if (!onWindows) await rm(path, { force: true });
    },
  };
}
