/** The parts of the listener, and its limits (law 8). */
import type { FastifyBaseLogger } from "fastify";
import type { Authenticator } from "../auth/index.js";
import type { Clock } from "../base/index.js";
import type { Extension, ServerFacts, ServerState } from "../extension/index.js";
import type { Mailroom } from "../library/index.js";
import type { HttpLimits } from "./settings.js";

export interface TlsFiles {
  /** Paths of PEM files. Read when the listener is created, and again by `reloadTls` (decision D10). */
  readonly cert: string;
  readonly key: string;
}

export interface CorsOptions {
  /** Allowed origins; `*` allows all. */
  readonly origins: readonly string[];
  readonly credentials?: boolean;
}

/** How the server keeps data; shown to admins. */
export interface StorageFacts {
  /** `memory`: nothing survives the process. */
  readonly durability: "fsync" | "fast" | "memory";
  /** 0 keeps everything. */
  readonly retention: {
    readonly maxAge: number;
    readonly maxTasks: number;
    readonly auditAge: number;
    readonly usageAge: number;
  };
}

export interface ListenerOptions {
  readonly mailroom: Mailroom;
  readonly authenticator: Authenticator;
  readonly server: ServerFacts;
  readonly state: ServerState;
  /** Their routes, mounts and upgrades are read once. */
  readonly extensions: readonly Extension[];
  readonly limits?: Partial<HttpLimits>;
  readonly storage?: StorageFacts;
  /** Milliseconds between two heartbeats of a silent stream. Default 15 s. */
  readonly heartbeat?: number;
  /** Addresses of proxies whose `X-Forwarded-For` is trusted, how many there are, or `true` for any. Default: none. */
  readonly trustProxy?: boolean | number | string | readonly string[];
  /** Default: pages of other origins may not call. */
  readonly cors?: CorsOptions;
  readonly tls?: TlsFiles;
  /** Who may read `/metrics`. Default: admins; everyone in development. */
  readonly metrics?: "public" | "admin" | false;
  /** Default: silent. */
  readonly logger?: FastifyBaseLogger;
  readonly clock?: Clock;
}
