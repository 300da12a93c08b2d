/** MAP at `/map` of the server's own socket (decisions D6: who may open a WebSocket there). */
import type { IncomingMessage, Server } from "node:http";
import { attachMap, type MapServer, type MapUpgrade } from "../conversations/index.js";
import type { Callers } from "./callers.js";
import { HttpError } from "./errors.js";
import type { CorsOptions } from "./options.js";
import { checkDevelopmentOrigin } from "./origin.js";

export interface MapDoorOptions {
  readonly dev: boolean;
  readonly cors: CorsOptions | undefined;
  /** Count wrong guesses by address, here as over HTTP (decisions D7). */
  readonly callers: Callers;
  readonly addressOf: (request: IncomingMessage) => string;
}

export function mountMap(server: Server, map: MapServer, options: MapDoorOptions): MapUpgrade {
  const { dev, cors, callers, addressOf } = options;
  const { authenticator } = map;
  return attachMap(server, map, {
    identify: (credential, request) => ({
      ...(credential !== undefined && { credential }),
      ...(authenticator !== undefined && {
        authenticator: callers.guarded(authenticator, addressOf(request)),
      }),
    }),
    verify: ({ headers }) => {
      if (!dev) return mayOpen(headers, cors) ? undefined : FORBIDDEN;
      try {
        checkDevelopmentOrigin(headers, cors);
        return undefined;
      } catch (error) {
        if (error instanceof HttpError) return FORBIDDEN;
        throw error;
      }
    },
  });
}

const FORBIDDEN = { status: 403, reason: "Forbidden" } as const;

/** Browsers name the page that asks, and do not keep it from asking: that is the server's to do. */
function mayOpen({ origin, host }: IncomingMessage["headers"], cors: CorsOptions | undefined): boolean {
  if (origin === undefined) return true;
  if (cors?.origins.some((allowed) => allowed === "*" || allowed === origin) === true) return true;
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host;
}
