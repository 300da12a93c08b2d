import type { MAILMessage } from "./message.js";

/**
 * Subjects of the system's messages. MAIL: Error Handling requires that they are distinguishable from agents' mail.
 * Like the reference implementation we use double colons.
 */
export const SYSTEM_SUBJECTS = {
  taskComplete: "::task_complete::",
  taskCancelled: "::task_cancelled::",
  taskError: "::task_error::",
  taskIdle: "::task_idle::",
  taskHeld: "::task_held::",
  taskTimeout: "::task_timeout::",
  runtimeError: "::runtime_error::",
  maximumStepsReached: "::maximum_steps_reached::",
  approvalRequested: "::approval_requested::",
  breakpointToolCall: "::breakpoint_tool_call::",
  actionCompleteBroadcast: "::action_complete_broadcast::",
  actionComplete: "::action_complete::",
  actionError: "::action_error::",
  toolCallError: "::tool_call_error::",
  help: "::help::",
  invalidRecipient: "::invalid_recipient::",
  agentError: "::agent_error::",
  improperResponseToUser: "::improper_response_to_user::",
  routerError: "::router_error::",
  shutdownRequested: "::shutdown_requested::",
  manualStep: "::manual_step::",
} as const;

/** Key in the routing info of a system notice: the agent that will not answer. */
export const FAILED_AGENT = "failed_agent";

/** Key in the routing info of a system notice: the id of the answer that did not reach its recipient. */
export const UNDELIVERED_ANSWER = "undelivered_answer";

/** A subject of a message from the system. */
export type SystemSubject = (typeof SYSTEM_SUBJECTS)[keyof typeof SYSTEM_SUBJECTS];

/** Whether a subject has the system's form. */
export function isSystemSubject(subject: string): boolean {
  return subject.length > 4 && subject.startsWith("::") && subject.endsWith("::");
}

const ENDINGS: ReadonlySet<string> = new Set([
  SYSTEM_SUBJECTS.taskComplete,
  SYSTEM_SUBJECTS.taskCancelled,
  SYSTEM_SUBJECTS.taskError,
]);

/** Whether a message notifies another swarm that the task has ended here. */
export function isEndingNotice(message: MAILMessage): boolean {
  return message.msg_type === "response" && ENDINGS.has(message.message.subject);
}
