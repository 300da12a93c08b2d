/** The way out: see README.md for what it promises. */
export { namesThisMachine } from "./allow.js";
export {
  type BackoffPolicy,
  backoffDelay,
  DEFAULT_BACKOFF,
  parseRetryAfter,
  type Random,
} from "./backoff.js";
export { type Admission, type CircuitOptions, Circuits } from "./circuit.js";
export {
  createHttpClient,
  type HttpAnswer,
  type HttpClient,
  type HttpClientOptions,
  type HttpStream,
  type RequestOptions,
} from "./client.js";
export type { Resolve, ResolvedAddress } from "./connector.js";
export { isTransient, NetError, type NetErrorCode } from "./errors.js";
export { createFetch, type FetchOptions } from "./fetch.js";
export { createGuard, type Guard, type GuardOptions, hostOf, portOf, type Refusal } from "./guard.js";
export { pauseFor } from "./pause.js";
export type { TlsOptions } from "./tls.js";
