/** The mesh module: see README.md. */

export { type AdminOperationName, type AdminParts, type AdminResult, operate } from "./admin/operate.js";
export { MeshAgent } from "./agent.js";
export { meshActions } from "./bridge/actions.js";
export { MeshCarrier } from "./bridge/carrier.js";
export { InboundBridge, type InboundOptions } from "./bridge/inbound.js";
export { makeDevCertificates } from "./dev-ca/files.js";
export { refuse, WIRE_STATUS, type WireRefusal } from "./errors.js";
export { type LimitStatus, RateLimiter } from "./limits.js";
export { acceptedMastership } from "./membership/lifecycle.js";
export type { Swarm } from "./membership/types.js";
export { withoutTrailingSlashes } from "./message/endpoint.js";
export { viewExtras } from "./message/extras-view.js";
export {
  ASP_VERSION,
  LIMITS,
  MESSAGE_TYPES,
  type MeshMessage,
  type MessageExtras,
  type MessageType,
  type Reference,
} from "./message/types.js";
export {
  BOX_STATUSES,
  type BoxStatus,
  QUEUE_STATUSES,
  type QueuedMessage,
  queueKey,
  readQueueKey,
  SENT_STATUSES,
  type SentMessage,
} from "./messages.js";
export { meshIdentity, type OpenAgentInput, openMeshAgent } from "./open.js";
export { findMessage, type MeshReads, type MeshStore } from "./ports.js";
export { derivedUuid } from "./send/message.js";
export { type MeshSettings, meshSettings } from "./settings.js";
export {
  initMesh,
  type StoredIdentity,
} from "./setup.js";
export { formatTime } from "./time.js";
export type {
  InboxMove,
  InviteUse,
  MeshRowWrite,
  Purge,
  QueuePut,
  QueueStatusChange,
  SeenPut,
  SwarmRemove,
  ViewClear,
  ViewWrite,
} from "./writes.js";
