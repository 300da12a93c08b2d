/** The mesh module: see README.md. */

export { type AdminOperationName, type AdminParts, type AdminResult, operate } from "./admin/operate.js";
export { MeshAgent } from "./agent.js";
export { type MeshActionsOptions, meshActions } from "./bridge/actions.js";
export { MeshCarrier } from "./bridge/carrier.js";
export { InboundBridge, type InboundOptions } from "./bridge/inbound.js";
export { makeDevCertificates } from "./dev-ca/files.js";
export { refuse, WIRE_STATUS, type WireRefusal } from "./errors.js";
export type { InviteInput } from "./join/invites.js";
export { type LimitStatus, RateLimiter, type RateLimits } from "./limits.js";
export { acceptedMastership } from "./membership/lifecycle.js";
export type {
  Invite,
  Member,
  MeshIdentity,
  Mute,
  PendingJoin,
  Swarm,
  SwarmSettings,
} from "./membership/types.js";
export { withoutTrailingSlashes } from "./message/endpoint.js";
export { viewExtras } from "./message/extras-view.js";
export {
  ASP_VERSION,
  type Attachment,
  LIMITS,
  MESSAGE_TYPES,
  type MeshMessage,
  type MessageExtras,
  type MessageType,
  type Priority,
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
export { type MeshOptions, meshOptions } from "./options.js";
export { findMessage, type MeshReads, type MeshStore } from "./ports.js";
export { derivedUuid, type SendInput, type SentReceipt } from "./send/message.js";
export { type MeshSettings, meshSettings } from "./settings.js";
export {
  type InitInput,
  initMesh,
  type OpenMeshInput,
  openMesh,
  readIdentity,
  rotateKeyFile,
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
