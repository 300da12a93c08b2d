/** `mailroom/client`: talk to a MAIL server from Node or a browser. Knows nothing of the server's insides. */
export { AdminClient } from "./admin.js";
export { type Caller, MailClient, type MailClientOptions, type MessageAnswer } from "./client.js";
export {
  ConversationClient,
  type ConversationClientOptions,
  type FollowOptions,
  type WebSocketLike,
} from "./conversations.js";
export { ConversationError, type ConversationErrorCode } from "./conversations-errors.js";
export type {
  Conversation,
  ConversationDetails,
  ConversationEvent,
  Participant,
  Summary,
  SummaryOptions,
  Turn,
} from "./conversations-wire.js";
export {
  MailClientError,
  MailConnectionError,
  type MailConnectionErrorCode,
  MailStreamError,
  type MailStreamErrorCode,
} from "./errors.js";
export { endsRound, type MailEvent, type MailEventData } from "./events.js";
export type {
  AcceptProposalOptions,
  BreakpointAnswer,
  InterswarmMessageOptions,
  MessageOptions,
  MessageStreamOptions,
  RegisterSwarmOptions,
  TaskEventsOptions,
  TaskListOptions,
} from "./options.js";
export { parseSwarmUrl, type SwarmUrl } from "./swarm-url.js";
export type { TaskList, TaskRecord } from "./tasks.js";
export type { CallOptions, FetchFunction, WriteOptions } from "./transport.js";
export type {
  BreakpointCall,
  Health,
  InterswarmReceipt,
  RemoteSwarm,
  ServerInfo,
  ServerStatus,
  SwarmPing,
  SwarmProposal,
  SwarmReceipt,
  TaskStatus,
  TaskSummary,
} from "./wire.js";
