/** Conversations: durable, with enforced rules. See README.md for what this module promises. */
export type { MapEvent } from "./events/event.js";
export { EventLog, type ReplayStart } from "./events/event-log.js";
export type * from "./ports.js";
export { toPlainText } from "./rules/content.js";
export {
  denied,
  fromMailroomError,
  MAP_ERRORS,
  MapError,
  type WireError,
} from "./rules/errors.js";
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
export type { Summarizer } from "./rules/summary.js";
export * from "./rules/types.js";
export { ConversationService } from "./service/conversation-service.js";
export { cursorOf, parseCursor } from "./service/cursor.js";
export { invitationHash } from "./service/invitations.js";
export { modelSummarizer } from "./service/model-summary.js";
export type { ConversationOperations } from "./service/operations.js";
export type { ConversationPage } from "./service/reader.js";
export { searchTurns } from "./service/search.js";
export { ReadCursors, type Unread } from "./service/unread.js";
export { type ConversationRules, conversationSettings } from "./settings.js";
export { conversationIdOf, keyOfConversation, SYSTEM } from "./tasks/derive.js";
export { type AnswersForOthers, TaskConversations } from "./tasks/task-conversations.js";
