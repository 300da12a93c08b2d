/** The control socket of a running server: its whole HTTP interface as local admin, its tokens, and more. */
import { chmod, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { devAuthenticator, type Tokens } from "../../auth/index.js";
import { type ControlOperation, pathOf, type Upgrade } from "../../extension/index.js";
import type { ControlContext } from "./context.js";
import { serveTokens } from "./tokens-api.js";

export interface ControlParts {
  readonly path: string;
  readonly context: ControlContext;
  readonly tokens: Tokens;
  /** What extensions serve on the socket only. */
  readonly operations: readonly ControlOperation[];
  readonly upgrades: readonly Upgrade[];
  /** The server's own handler of requests. */
  readonly app: (request: IncomingMessage, response: ServerResponse) => void;
}

export interface Control {
  close(): Promise<void>;
}

/** To be called with the data directory's lock in hand: a socket that is still there belongs to a dead process. */
export async function openControl(parts: ControlParts): Promise<Control> {
  const { path, context, tokens, app, operations, upgrades } = parts;
  const serveOwn = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    if (await serveTokens(tokens, request, response)) return true;
    const operation = operations.find((one) => one.path === pathOf(request));
    await operation?.handle(request, response);
    return operation !== undefined;
  };
  const server = createServer((request, response) => {
    const as = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
    // Removed, so that no handler mistakes it for a credential.
    delete request.headers.authorization;
    serveOwn(request, response).then(
      (served) => {
        if (served) return;
        const leave = context.run(as, () => app(request, response));
        response.once("close", leave);
      },
      () => {
        if (!response.headersSent) response.writeHead(500, { "content-type": "application/json" });
        response.end(JSON.stringify({ detail: "internal server error", code: "internal_error" }));
      },
    );
  });
  // A process that can open the socket may act as any principal.
  const authenticator = devAuthenticator();
  const upgraded = new Set<Duplex>();
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    request.headers.authorization ??= "Bearer admin:local";
    const upgrade = upgrades.find((one) => one.path === pathOf(request));
    if (upgrade === undefined) socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
    else upgrade.accept({ request, socket, head, authenticator });
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
      server.closeAllConnections();
      // Upgraded connections are not among them, and the server would wait for their clients.
      for (const socket of upgraded) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      if (!onWindows) await rm(path, { force: true });
    },
  };
}
