/** The part of the engine that a browser loads: how a task's state follows from its journal. */
export type { HistoryItem, HoldReason, Usage } from "./agent.js";
export type { TaskStatus } from "./ports.js";
export type { Entry, EntryKind, Opened, Sent, TurnTaken } from "./task/entries.js";
export { evolve, open } from "./task/evolve.js";
export { type AgentState, historyOf, partyOf, type TaskState } from "./task/state.js";
export { isErrorSubject } from "./task/system-messages.js";
