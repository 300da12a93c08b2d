/**
 * Subjects that the system writes. MAIL: Error Handling asks that they be easy to tell from agents' mail; like the
 * reference implementation we set them between double colons.
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

/** In the routing info of a notice of the system: the agent from which no answer will come. */
export const FAILED_AGENT = "failed_agent";

export type SystemSubject = (typeof SYSTEM_SUBJECTS)[keyof typeof SYSTEM_SUBJECTS];

/** Whether a subject has the form that is the system's own. */
export function isSystemSubject(subject: string): boolean {
  return subject.length > 4 && subject.startsWith("::") && subject.endsWith("::");
}
