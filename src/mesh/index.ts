/** The mesh room: see README.md. */
export { type MeshActionsOptions, meshActions } from "./bridge/actions.js";
export { InboundBridge, type InboundOptions } from "./bridge/in.js";
export { MeshCarrier } from "./bridge/out.js";
export type { MeshStore, Problem as MeshProblem } from "./core.js";
export { makeDevCertificates } from "./dev-ca/files.js";
export { MeshError, type MeshErrorCode, type Refusal } from "./errors.js";
export type { InviteInput } from "./invite/issue.js";
export { DEFAULT_RATE_LIMITS, type RateLimits } from "./limits.js";
export type {
  Invite,
  Member,
  MeshIdentity,
  Mute,
  PendingJoin,
  Swarm,
  SwarmSettings,
} from "./membership/types.js";
export type { Attachment, MeshMessage, MessageExtras, Priority, Reference } from "./message/types.js";
export { MeshNode } from "./node.js";
export { type OperationName, type OperatorParts, type Outcome, operate } from "./operator/index.js";
export { DEFAULT_MESH_OPTIONS, type MeshOptions } from "./options.js";
export type { MeshReads, QueuedMessage, SentMessage } from "./queue.js";
export type { SendInput, SentReceipt } from "./sending.js";
export {
  type InitInput,
  initMesh,
  type KeptIdentity,
  type OpenMeshInput,
  openMesh,
  readIdentity,
  rotateKeyFile,
} from "./setup.js";
export { commandWaker, sameSecret, type WakeNote, WakeTrigger, wakeNoteOf, webhookWaker } from "./wake.js";
export { BodyMemory } from "./wire/body-memory.js";
export { createMeshHandler, type MeshRequest, type MeshResponse } from "./wire/handler.js";
export { type Listener, type ListenerOptions, listen } from "./wire/listener.js";
export {
  BatchBody,
  createLocalHandler,
  InboxQuery,
  LOCAL_ROUTES,
  type LocalOptions,
  type LocalRequest,
  OutboxQuery,
  WakeBody,
} from "./wire/local.js";
export type { MeshRowWrite } from "./writes.js";
