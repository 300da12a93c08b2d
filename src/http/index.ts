/** The HTTP room: see README.md for what it promises. */
export { type ErrorBody, type ErrorCode, type ErrorRow, HttpError } from "./errors.js";
export { KEY_LIFE } from "./idempotency.js";
export type { Mount, MountedCall, MountedOperation } from "./mounts.js";
export type { OpenApiDocument, Operation } from "./openapi.js";
export type {
  CorsOptions,
  HttpLimits,
  ServerOptions,
  TlsFiles,
} from "./options.js";
export type { RawRequest, RawResponse, RawRoute } from "./raw-routes.js";
export type { Registry, SwarmListing, SwarmRegistration } from "./registry.js";
export { NOTHING, OUR_ADMINS, PUBLIC } from "./route.js";
export { createServer, type MailroomServer } from "./server.js";
export type { HttpState, HttpStore } from "./state.js";
