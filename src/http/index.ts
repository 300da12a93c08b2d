/** The HTTP listener: see README.md. */
export type { ErrorBody } from "./error-response.js";
export { KEY_LIFE } from "./idempotency.js";
export type { OpenApiDocument, Operation } from "./openapi.js";
export type { CorsOptions, ListenerOptions, TlsFiles } from "./options.js";
export { createHttpListener, type HttpListener } from "./server.js";
export { type HttpLimits, httpSettings } from "./settings.js";
