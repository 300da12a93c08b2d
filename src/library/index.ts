/** What other modules may import: see README.md. */

export type { Answer } from "./answer.js";
export type { Approval, ApprovalPage, OthersPage } from "./approvals.js";
export type { DayUsage } from "./budgets.js";
export { DefinitionInForce } from "./definition.js";
export { DeltaFeed } from "./delta-feed.js";
export { type AskOptions, Instance, type PostedTask } from "./instance.js";
export { Mailroom, type MailroomOptions, RemoteAgent } from "./mailroom.js";
export { type RetentionOptions, retentionFrom } from "./retention.js";
export { defaultBuiltins, loadSwarm, loadSwarms, loadSwarmsFromText } from "./swarms.js";
export { type BreakpointAnswer, type EventOptions, Task, type TextDelta } from "./task.js";
