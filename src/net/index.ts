/** Outbound HTTP: see README.md for what it promises. */
export { namesThisMachine } from "./allow.js";
export {
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
  type HttpResponse,
  type HttpStream,
  type RequestOptions,
} from "./client.js";
export type { Resolve, ResolvedAddress } from "./connector.js";
export { isTransient, NetError, type NetErrorCode } from "./errors.js";
export { createFetch, type FetchOptions } from "./fetch.js";
export { createGuard, type Guard, type GuardOptions, type GuardRefusal, hostOf, portOf } from "./guard.js";
export { isIPv6, parseAddress } from "./ranges.js";
export type { TlsOptions } from "./tls.js";
