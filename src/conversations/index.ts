/** Conversations: durable, with enforced rules. See README.md for what this module promises. */
export type { MapEvent } from "./events/event.js";
export { EventLog, type JournalEvents, type ReplayStart } from "./events/event-log.js";
export type * from "./ports.js";
export { toPlainText } from "./rules/content.js";
export {
  denied,
  fromMailroomError,
  MAP_ERRORS,
  MapError,
  type MapErrorName,
  type WireError,
} from "./rules/errors.js";
export { MAIL_EVENT_TYPES, type MailEventType } from "./rules/events.js";
export {
  compileFilter,
  type EventTest,
  type SubscriptionFilter,
  subscriptionFilter,
} from "./rules/filter.js";
export {
  assertBoundedSize,
  closeParams,
  createParams,
  DEFAULT_PAGE,
  getParams,
  inviteParams,
  joinParams,
  type ListParams,
  leaveParams,
  listParams,
  MAX_PAGE_BYTES,
  mailMeta,
  memberParams,
  parseParams,
  presenceParams,
  replayParams,
  statusParams,
  summaryParams,
  threadCreateParams,
  threadListParams,
  turnParams,
  turnsListParams,
  turnUpdateParams,
} from "./rules/params.js";
export { roughSize } from "./rules/size.js";
export { extractiveSummarizer, type Summarizer, type SummaryInput } from "./rules/summary.js";
export * from "./rules/types.js";
export type { TurnList } from "./service/contents.js";
export { ConversationService, type ConversationServiceParts } from "./service/conversation-service.js";
export { cursorOf, parseCursor } from "./service/cursor.js";
export { invitationHash } from "./service/invitations.js";
export { type AskModel, type ModelQuestion, modelSummarizer } from "./service/model-summary.js";
export type { ConversationOperations } from "./service/operations.js";
export type { ConversationPage } from "./service/reader.js";
export { type ReadableConversation, searchTurns } from "./service/search.js";
export { ReadCursors, type Unread } from "./service/unread.js";
export { type ConversationRules, conversationSettings } from "./settings.js";
export { conversationIdOf, keyOfConversation, SYSTEM } from "./tasks/derive.js";
export { TaskConversations } from "./tasks/task-conversations.js";
