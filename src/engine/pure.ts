/** The part of the engine that a browser loads: how a task's state follows from its journal. */

export type { Entry, EntryKind, Sent } from "./task/entries.js";
export { evolve, open } from "./task/evolve.js";
export { type AgentState, historyOf, partyOf, type TaskState } from "./task/state.js";
export { usedIn } from "./usage.js";
