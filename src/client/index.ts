/**
 * `agent-mailroom/client`: a typed client of MAIL servers and of MAP conversations, for Node and browsers.
 * @packageDocumentation
 */
export { type TokenData, type WrittenText, WrittenTexts } from "../base/index.js";
export { AdminClient } from "./admin.js";
export type {
  Approval,
  ApprovalDecision,
  ApprovalListOptions,
  AuditOptions,
  AuditRecord,
} from "./approvals.js";
export { MailClient, type MailClientOptions, type MessageAnswer, type WhoAmI } from "./client.js";
export {
  ConversationClient,
  type ConversationClientOptions,
  type FollowOptions,
  type WebSocketLike,
} from "./conversations.js";
export { ConversationError } from "./conversations-errors.js";
export type {
  Conversation,
  ConversationDetails,
  ConversationEvent,
  ConversationTurn,
  Participant,
  Summary,
  SummaryOptions,
} from "./conversations-wire.js";
export {
  MailClientError,
  MailConnectionError,
  MailStreamError,
} from "./errors.js";
export { endsRound, type TaskEvent, tokenOf } from "./events.js";
export type {
  FeedEvent,
  FeedTask,
  JournalEntry,
  JournalPage,
  OutboxItem,
  OutboxPage,
  SearchHit,
  SearchPage,
  StatsPage,
  StatsRow,
  TaskCounts,
  TaskDigest,
  TokenInfo,
  Traffic,
} from "./observation.js";
export {
  AdminObserveClient,
  type FeedOptions,
  type JournalOptions,
  ObserveClient,
  type OutboxOptions,
  type SearchOptions,
} from "./observe.js";
export type {
  AcceptProposalOptions,
  BreakpointAnswer,
  InterswarmMessageOptions,
  MessageOptions,
  RegisterSwarmOptions,
  TaskEventsOptions,
  TaskListOptions,
} from "./options.js";
export { parseSwarmUrl, type SwarmUrl } from "./swarm-url.js";
export type { TaskList, TaskRecord } from "./tasks.js";
export type { CallOptions, FetchFunction, WriteOptions } from "./transport.js";
export type {
  AwaitedReply,
  BreakpointCall,
  Health,
  RemoteSwarm,
  ServerInfo,
  ServerStatus,
  SwarmPing,
  SwarmProposal,
  SwarmReceipt,
  TaskStatus,
  TaskSummary,
  WaitingCall,
} from "./wire.js";
