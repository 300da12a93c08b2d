/** The HTTP listener: see README.md. */
export { KEY_LIFE } from "./idempotency.js";
export type { OpenApiDocument, Operation } from "./openapi.js";
export type { ListenerOptions } from "./options.js";
export { createHttpListener, type HttpListener } from "./server.js";
