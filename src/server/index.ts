/** `agent-mailroom/server`: serve a swarm from a program, and write extensions. */
export { type Authenticator, devAuthenticator, type Principal, type Role } from "../auth/index.js";
export {
  boolean,
  bytes,
  choice,
  defineSettings,
  duration,
  httpUrl,
  integer,
  list,
  path,
  table,
  text,
} from "../base/index.js";
export type { Carrier, DeliveryResult, OutgoingMail } from "../engine/index.js";
export {
  ADMINS,
  type AttachContext,
  type CreateContext,
  type DeliveryCarrier,
  defineExtension,
  definePublicRoute,
  defineRoute,
  type Extension,
  type ExtensionFactory,
  type Logger,
  type Mount,
  type NameTable,
  NO_INPUT,
  PUBLIC,
  type RawRequest,
  type RawResponse,
  type RawRoute,
  type Route,
  type RouteCall,
  type RouteRequest,
  type RouteResponse,
  type ServerFacts,
  type Upgrade,
  USERS_AND_ADMINS,
} from "../extension/index.js";
export { catalog, loadConfig, type Settings } from "./catalog.js";
export { createServer, type ListenAddress, type MailroomServer, type ServerOptions } from "./create.js";
export { standardExtensions } from "./extensions.js";
export { loadServerConfig, type ServerConfig } from "./load-config.js";
export { type ReloadOptions, reloadOnChange } from "./reload.js";
export { type RunningServer, startServer } from "./start.js";
export { type SwarmSource, servedSwarm } from "./swarm.js";
