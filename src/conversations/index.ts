/** Conversations: a MAP server whose mail is durable and whose rules are enforced (seed 003). */

export type { TurnList } from "./book/contents.js";
export { Conversations, type ConversationsParts } from "./book/conversations.js";
export { type AskModel, type ModelQuestion, modelSummariser } from "./book/model-summary.js";
export { MAP_ERRORS, MapError, type MapErrorName, type WireError } from "./domain/errors.js";
export { MAIL_EVENT_TYPES, type MailEventType } from "./domain/events.js";
export { DEFAULT_RULES, type DomainRules } from "./domain/moment.js";
export { extractiveSummariser, type Summariser, type SummaryInput } from "./domain/summary.js";
export type * from "./domain/types.js";
export { EventLog, type JournalSource } from "./log/event-log.js";
export type * from "./ports.js";
export { type ConnectionOptions, MapConnection, type Wire } from "./server/connection.js";
export { DEFAULT_MAP_LIMITS, type MapLimits } from "./server/limits.js";
export { type MailOptions, MapServer, type MapServerOptions } from "./server/map-server.js";
export { type StreamOptions, serveMapStream } from "./transports/stream.js";
export {
  attachMap,
  createMapUpgrade,
  type MapUpgrade,
  type WebSocketOptions,
} from "./transports/websocket.js";
