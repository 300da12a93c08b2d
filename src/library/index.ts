/** What other modules may import: see README.md. */

export type { Answer } from "./answer.js";
export {
  type Approval,
  type ApprovalPage,
  Approvals,
  type AuditQuery,
  type WaitingCall,
} from "./approvals.js";
export { DefinitionInForce } from "./definition.js";
export { type AskOptions, Instance, type PostedTask, type StreamOptions, type TaskList } from "./instance.js";
export { type CallerOptions, Mailroom, type MailroomOptions, RemoteAgent } from "./mailroom.js";
export { type RetentionOptions, retentionFrom } from "./retention.js";
export { defaultBuiltins, loadSwarm, loadSwarms, loadSwarmsFromText } from "./swarms.js";
export { type BreakpointAnswer, type EventOptions, type ManualStepOptions, Task } from "./task.js";
