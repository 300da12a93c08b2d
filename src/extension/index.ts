/** The extension contract: see README.md. */
export { type Answerer, AnswersForOthers, actorOf } from "./answers-for-others.js";
export type { ControlOperation } from "./control.js";
export {
  type AnyExtensionFactory,
  type AttachContext,
  type CreateContext,
  type DeliveryCarrier,
  defineExtension,
  type Extension,
  type ExtensionFactory,
  type ServerFacts,
} from "./extension.js";
export { JsonRpcRequest, JsonRpcResponse } from "./json-rpc.js";
export type { Logger } from "./logger.js";
export type { Mount, MountedCall, MountedOperation } from "./mount.js";
export { NameRegistry, type NameTable } from "./names.js";
export type { OutboxQueue } from "./outbox-queue.js";
export type { Page, PageRequest, PageResponse, RequestOrigin } from "./page.js";
export * from "./route.js";
export * from "./schemas.js";
export { type NamedExtension, ServerState, type StatsSource } from "./server-state.js";
export {
  type EventStream,
  eventText,
  formatEvent,
  type NextTurn,
  type StreamEvent,
  tokenData,
} from "./stream.js";
export { pathOf, type Upgrade, type UpgradeRequest } from "./upgrade.js";
