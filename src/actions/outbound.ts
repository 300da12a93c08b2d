/** The guarded HTTP client of the actions, with its limits. */
import { createGuard, createHttpClient, type HttpClient } from "../net/index.js";

/** Exceptions to the outbound guard, which otherwise rejects private addresses. */
export interface OutboundOptions {
  /** A client with a configured guard. Default: a new one. */
  readonly client?: HttpClient;
  /** Exceptions to the outbound guard of the default client: `loopback`, hosts, networks. Default: none. */
  readonly allow?: readonly string[];
  /** Milliseconds. Default: 30 seconds. */
  readonly timeLimit?: number;
  /** Maximum bytes of a response that are read. Default: 256 KiB. */
  readonly maxBytes?: number;
}

export interface Outbound {
  readonly client: HttpClient;
  readonly timeLimit: number;
  readonly maxBytes: number;
}

export function outbound(options: OutboundOptions): Outbound {
  const { allow = [], timeLimit = 30_000, maxBytes = 262_144 } = options;
  return { client: options.client ?? ownClient(allow), timeLimit, maxBytes };
}

function ownClient(allow: readonly string[]): HttpClient {
  return createHttpClient({
    guard: createGuard({ allow }),
    userAgent: "mailroom-action",
    clock: {
      after: (milliseconds, callback) => {
        const timer = setTimeout(callback, milliseconds);
        timer.unref();
        return () => clearTimeout(timer);
      },
    },
  });
}
