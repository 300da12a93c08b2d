/** The public library. Everything that is not exported here or from a subpath is internal. */

export * from "./actions/index.js";
export * from "./agents/index.js";
export type {
  Action,
  ActionContext,
  AgentAnswer,
  AgentFunction,
  HistoryItem,
  HoldReason,
  OfferedTool,
  ResultItem,
  TaskFacts,
  ToolChoice,
  Turn,
  Usage,
} from "./engine/agent.js";
export { TurnHeldError } from "./engine/agent.js";
export type { Carriage, Carrier, OutgoingMail } from "./engine/carrier.js";
export type { AgentDefinition, SwarmDefinition } from "./engine/definition.js";
export type { Entry, EntryKind } from "./engine/entries.js";
export type { InstanceMemory, KeyValueMemory, MemoryItem, MemoryListOptions } from "./engine/memory.js";
export type {
  Bus,
  Clock,
  Ids,
  InstanceId,
  InstanceRole,
  Store,
  TaskStatus,
} from "./engine/ports.js";
export {
  type ActionOverride,
  DEFAULT_RUNTIME_LIMITS,
  type Lending,
  type NumberedEntry,
  type Outcome,
  type Posted,
  type Problem,
  RuntimeError,
  type RuntimeErrorCode,
  type RuntimeLimits,
  StoppedError,
} from "./engine/runtime/index.js";
export { EVENT_NAMES, type EventData, type EventName, type MailEvent } from "./engine/view/events.js";
export type { TaskRecord, TaskSummary } from "./engine/view/record.js";
export type { Answer } from "./library/answer.js";
export {
  type AskOptions,
  Instance,
  type PostedTask,
  type StreamOptions,
  type TaskList,
} from "./library/instance.js";
export { type CallerOptions, Mailroom, type MailroomOptions, RemoteAgent } from "./library/mailroom.js";
export type { RetentionOptions } from "./library/retention.js";
export { type BreakpointAnswer, type EventOptions, type ManualStepOptions, Task } from "./library/task.js";
export * from "./mail/index.js";
export {
  createLocalBus,
  type Durability,
  openStore,
  StoreDamagedError,
  StoreDirectoryError,
  StoreLockedError,
  type StoreOptions,
} from "./store/index.js";
export * from "./swarm/index.js";
