/** The control socket of a running server: its whole HTTP interface as local admin, and its tokens. */
import { chmod, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Tokens } from "../../auth/index.js";
import type { ControlContext } from "./context.js";
import { serveTokens } from "./tokens-api.js";

export interface ControlParts {
  readonly path: string;
  readonly context: ControlContext;
  readonly tokens: Tokens;
  /** The server's own handler of requests. */
  readonly app: (request: IncomingMessage, response: ServerResponse) => void;
}

export interface Control {
  close(): Promise<void>;
}

/** To be called with the data directory's lock in hand: a socket that is still there belongs to a dead process. */
export async function openControl({ path, context, tokens, app }: ControlParts): Promise<Control> {
  const server = createServer((request, response) => {
    const as = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
    // Taken off, so that nobody behind the door takes it for a credential.
    delete request.headers.authorization;
    serveTokens(tokens, request, response).then(
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
      await new Promise<void>((resolve) => server.close(() => resolve()));
      if (!onWindows) await rm(path, { force: true });
    },
  };
}
