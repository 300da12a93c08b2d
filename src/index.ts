/**
 * `agent-mailroom`: define swarms, run them durably, ask them things.
 *
 * Other entry points: `agent-mailroom/server`, `/client`, `/mail` (the protocol as data) and `/testing`. Everything else is
 * internal.
 */

// Definitions
export {
  type ActionOptions,
  clockAction,
  connectMcpServer,
  defineAction,
  type FileActionOptions,
  fileActions,
  httpActions,
  interswarmActions,
  type McpServer,
  type McpServerOptions,
  mcpActions,
  memoryActions,
  type OutboundOptions,
} from "./actions/index.js";
export {
  type LanguageModel,
  type Mail,
  type MailFunction,
  type ModelAgentOptions,
  modelAgent,
  type ScriptedRuleInput as ScriptedRule,
  scriptedAgent,
} from "./agents/index.js";
// Errors
export {
  type Clock,
  type ErrorCode,
  type Ids,
  isMailroomError,
  MailroomError,
  type Problem,
} from "./base/index.js";
export { createLocalBus } from "./bus/index.js";
export {
  type Action,
  type ActionContext,
  type ActionOverride,
  type AgentDefinition,
  type AgentFunction,
  type ApprovalContext,
  type ApprovalDecision,
  type BudgetChange,
  type BudgetLimits,
  type Entry as JournalEntry,
  EVENT_NAMES,
  type HistoryItem,
  type InstanceId,
  type KeyValueStore,
  type LentMessage,
  type MailEvent as TaskEvent,
  type PlannedCall,
  type RuntimeLimits,
  StoppedError,
  type Store,
  type SwarmDefinition,
  type TaskRecord,
  type TaskStatus,
  type TaskSummary,
  type Turn,
  TurnHeldError,
  type TurnResult,
  type Usage,
} from "./engine/index.js";
export type { Bus } from "./journal/index.js";
// Running
export {
  type Answer,
  type AskOptions,
  type BreakpointAnswer,
  type EventOptions,
  Instance,
  loadSwarm,
  loadSwarms,
  loadSwarmsFromText,
  Mailroom,
  type MailroomOptions,
  type PostedTask,
  RemoteAgent,
  type RetentionOptions,
  Task,
  type TextDelta,
} from "./library/index.js";
export { openStore, type StoreOptions } from "./store/index.js";
export {
  type AgentOptions,
  defineAgent,
  defineSwarm,
  type LoadedSwarm,
  type LoadOptions,
  type SwarmOptions,
  subswarm,
} from "./swarm/index.js";
