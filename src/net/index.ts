/** Outbound HTTP: see README.md for what it promises. */
export { namesThisMachine } from "./allow.js";
export {
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
  type HttpResponse,
} from "./client.js";
export type { Resolve } from "./connector.js";
export { isTransient, NetError } from "./errors.js";
export { createFetch } from "./fetch.js";
export { createGuard, type Guard, hostOf, portOf } from "./guard.js";
export { isIPv6, parseAddress } from "./ranges.js";
export type { TlsOptions } from "./tls.js";
