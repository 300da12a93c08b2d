/** What a server is made of, and its limits (law 7). */
import type { FastifyBaseLogger } from "fastify";
import type { Authenticator } from "../auth/index.js";
import type { MapServer } from "../conversations/index.js";
import type { Clock } from "../engine/ports.js";
import type { Federation } from "../federation/index.js";
import type { Mailroom } from "../library/mailroom.js";
import type { LoadOptions } from "../swarm/load.js";
import type { Mount } from "./mounts.js";
import type { RawRoute } from "./raw-routes.js";
import type { Registry } from "./registry.js";

export interface HttpLimits {
  /** Bytes of a request's body. */
  readonly body: number;
  /** Requests that wait for the end of a round at once, in all and per caller. */
  readonly waits: number;
  readonly waitsPerCaller: number;
  /** Streams at once, in all and per caller. */
  readonly streams: number;
  readonly streamsPerCaller: number;
  /** Failed authentications per minute and address; 0 for no limit (decisions D7). */
  readonly failedAuthentications: number;
  /** Requests per minute of one caller and of one address; 0 for no limit. */
  readonly requestsPerCaller: number;
  readonly requestsPerAddress: number;
  /** Bytes that may wait for a listener before it is given up. */
  readonly listenerBuffer: number;
  /** Milliseconds that a listener with a full buffer gets to make room. */
  readonly listenerPatience: number;
  /** Events on one JSON page of a task's events. */
  readonly eventPage: number;
}

export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  body: 1024 * 1024,
  waits: 20_000,
  waitsPerCaller: 10_000,
  streams: 5_000,
  streamsPerCaller: 1_000,
  failedAuthentications: 20,
  requestsPerCaller: 0,
  requestsPerAddress: 0,
  listenerBuffer: 1024 * 1024,
  listenerPatience: 30_000,
  eventPage: 1_000,
};

export interface TlsFiles {
  /** Paths of PEM files. Read when the server is made, and again by `reloadTls` (decisions D10). */
  readonly cert: string;
  readonly key: string;
}

export interface CorsOptions {
  /** Origins that may call; `*` for all of them. */
  readonly origins: readonly string[];
  readonly credentials?: boolean;
}

export interface ServerOptions {
  readonly mailroom: Mailroom;
  readonly authenticator: Authenticator;
  /** Of Mailroom itself; the protocol's version is another one. */
  readonly version: string;
  /** Development: only names and pages of this machine are served (decisions D6), metrics are open. */
  readonly dev?: boolean;
  readonly limits?: Partial<HttpLimits>;
  /** Refuses task ids that are not UUIDs (decisions A3). */
  readonly strictIds?: boolean;
  /** Seconds that `POST /message` waits unless the caller says otherwise. Default 3600. */
  readonly defaultTimeout?: number;
  /** Milliseconds between two heartbeats of a silent stream. Default 15 s. */
  readonly heartbeat?: number;
  /** Where this server is reached from outside. Never guessed from the bind address (decisions D10). */
  readonly publicUrl?: string;
  /** Addresses of proxies whose `X-Forwarded-For` is believed, how many there are, or `true` for any. Default: none. */
  readonly trustProxy?: boolean | number | string | readonly string[];
  /** Default: no page of another origin may call. */
  readonly cors?: CorsOptions;
  readonly tls?: TlsFiles;
  /** Who may read `/metrics`. Default: admins; everybody in development. */
  readonly metrics?: "public" | "admin" | false;
  /** How swarms that are loaded over HTTP are resolved. Default: module references are refused (decisions D5). */
  readonly loading?: LoadOptions;
  /** The way to other swarms, and their way in. It brings its registry and capabilities. */
  readonly federation?: Federation;
  /** Other swarms. Without one, only this swarm is listed and nothing can be registered. */
  readonly registry?: Registry;
  /** What this server can do beyond the protocol, for `GET /`. */
  readonly capabilities?: readonly string[];
  /** Served at `/map`. Whoever opened it closes it. */
  readonly map?: MapServer;
  /** Routes of other rooms, behind the same authentication. */
  readonly rawRoutes?: readonly RawRoute[];
  /** Other doors on the same listener, behind the same authentication. */
  readonly mounts?: readonly Mount[];
  /** Default: silent. */
  readonly logger?: FastifyBaseLogger;
  readonly clock?: Clock;
}
