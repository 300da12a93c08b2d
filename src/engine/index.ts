/** What other modules may import: see README.md. */

export {
  type Action,
  type ActionContext,
  type AgentFunction,
  type ApprovalContext,
  type ArgumentCheck,
  type CommTarget,
  type FailedCall,
  type HistoryItem,
  type HoldReason,
  type OfferedTool,
  type PlannedCall,
  type ResultItem,
  type ToolChoice,
  type Turn,
  TurnHeldError,
  type TurnResult,
  type Usage,
} from "./agent.js";
export type { Carrier, DeliveryResult, OutgoingMail } from "./carrier.js";
export { MOST_DECISIONS, readDecisions } from "./decisions.js";
export type { AgentDefinition, LocalImplementation, SwarmDefinition } from "./definition.js";
export type { InstanceMemory } from "./key-value.js";
export {
  type ApprovalReads,
  type ApprovalRowWrite,
  type ApproversPut,
  AUDIT_ACTIONS,
  type AuditAction,
  type AuditExpire,
  type AuditPut,
  type AuditRecord,
  type BudgetPut,
  type BudgetScope,
  type EngineRowWrite,
  INSTANCE_ROLES,
  type InstanceId,
  type InstanceRole,
  type KeyValueStore,
  type MemoryItem,
  type SnapshotPut,
  type Store,
  TASK_STATUSES,
  type TaskPage,
  type TaskPut,
  type TaskReads,
  type TaskRemove,
  type TaskRow,
  type TaskStatus,
  type UsageAdd,
  type UsageExpire,
  type UsageReads,
  type UsageRowWrite,
} from "./ports.js";
export {
  type ActionOverride,
  ALL_TASKS_CHANNEL,
  type Closed,
  type CommitNotification,
  DeltaBuffer,
  type DeltaNotification,
  deltaChannel,
  isCommitNotification,
  isDelta,
  isTaskRemoval,
  isWatchNotification,
  type JournalLocation,
  type LentMessage,
  type NumberedEntry,
  outcomeOf,
  type PostInput,
  type PostReceipt,
  Round,
  type RoundOutcome,
  type RoundStart,
  type RowsFor,
  Runtime,
  type RuntimeLimits,
  StoppedError,
  settleMail,
  WATCH_CHANNEL,
} from "./runtime/index.js";
export { entriesOf } from "./task/aggregate.js";
export {
  type Actor,
  type AnswerRight,
  actorName,
  answerRight,
  approverNames,
  MOST_APPROVERS,
  mayActForOwners,
} from "./task/approvers.js";
export type {
  AnswerBreakpoint,
  ApprovalDecision,
  BreakpointResult,
} from "./task/commands.js";
export { isIdle } from "./task/decide/guards.js";
export type { Entry, EntryKind, ManualReply, Opened, TurnTaken } from "./task/entries.js";
export { askedCalls, historyOf, type TaskState } from "./task/state.js";
export { isErrorSubject } from "./task/system-messages.js";
export {
  EVENT_NAMES,
  endsRound,
  eventsOf,
  type MailEvent,
  parseEventId,
} from "./task/view/events.js";
export {
  recordOf,
  summaryOf,
  type TaskRecord,
  type TaskSummary,
} from "./task/view/record.js";
export {
  budgetView,
  readBudgetChange,
  usageView,
} from "./task/view/usage.js";
export {
  type BudgetChange,
  type BudgetLimits,
  budgetProblem,
  type ReachedLimit,
  totalsOf,
  type UsageTotals,
  usedIn,
  utcDay,
} from "./usage.js";
