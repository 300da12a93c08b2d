/**
 * `agent-mailroom/client`: a typed client of MAIL servers and of MAP conversations, for Node and browsers.
 * @packageDocumentation
 */
export { type TokenData, type WrittenText, WrittenTexts } from "../base/index.js";
export { AdminClient } from "./admin.js";
export type { AgentMail, AgentReply } from "./agent-mail.js";
export type {
  Approval,
  ApprovalDecision,
  ApprovalListOptions,
  AuditOptions,
  AuditRecord,
} from "./approvals.js";
export type {
  AdminTaskBudget,
  AdminUsageReport,
  BudgetChange,
  BudgetPage,
  UsageOptions,
  UsageReport,
} from "./budgets.js";
export { MailClient, type MailClientOptions, type MessageAnswer, type WhoAmI } from "./client.js";
export type { ConnectionState, StateListener } from "./connection-state.js";
export {
  ConversationClient,
  type ConversationClientOptions,
  type FollowOptions,
  type MapMessage,
  type PageOptions,
  type TurnListOptions,
  type TurnSearchOptions,
} from "./conversations.js";
export { type Closing, ConversationError, type ConversationErrorCode } from "./conversations-errors.js";
export type {
  Conversation,
  ConversationDetails,
  ConversationTurn,
  OpenCall,
  Participant,
  ParticipantRole,
  Permissions,
  Presence,
  Summary,
  SummaryOptions,
  Thread,
  Unread,
  Visibility,
} from "./conversations-wire.js";
export {
  MailClientError,
  MailConnectionError,
  MailStreamError,
} from "./errors.js";
export { endsRound, type TaskEvent, tokenOf } from "./events.js";
export type { ConversationEvent, ConversationEventData, ConversationEventType } from "./map/events.js";
export type {
  ConversationFilter,
  EventFilter,
  MapAddress,
  MapAgent,
  MapMethod,
  MapMethods,
  MapScope,
  NewConversation,
  NewTurn,
  TurnFilter,
} from "./map/methods.js";
export type { TokenSource } from "./map/session.js";
export type { WebSocketLike } from "./map/socket.js";
export type { MeshOperation, MeshOverview } from "./mesh.js";
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
export { type ServeAgentOptions, type ServedAgent, serveAgent } from "./serve-agent.js";
export { parseSwarmUrl, type SwarmUrl } from "./swarm-url.js";
export type { TaskList, TaskRecord } from "./tasks.js";
export type { CallOptions, FetchFunction, WriteOptions } from "./transport.js";
export type {
  AwaitedReply,
  BreakpointCall,
  Budget,
  Health,
  RemoteSwarm,
  ServerInfo,
  ServerStatus,
  SwarmPing,
  SwarmProposal,
  SwarmReceipt,
  TaskBudget,
  TaskBudgetAnswer,
  TaskStatus,
  TaskSummary,
  TaskUsage,
  Usage,
  WaitingCall,
} from "./wire.js";
