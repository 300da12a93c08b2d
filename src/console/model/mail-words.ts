/** Senders and recipients of a message, in words. */
import { partyOf } from "../../engine/pure.js";
import { isSystemSubject, type MAILMessage, recipientsOf, SYSTEM_SUBJECTS } from "../../mail/pure.js";

export function senderText(message: MAILMessage): string {
  return partyOf(message.message.sender);
}

export function recipientsText(message: MAILMessage): string {
  const names = recipientsOf(message).map(partyOf);
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
}

const SUBJECTS: ReadonlyMap<string, string> = new Map([
  [SYSTEM_SUBJECTS.taskComplete, "The task is complete"],
  [SYSTEM_SUBJECTS.taskCancelled, "The task was cancelled"],
  [SYSTEM_SUBJECTS.taskError, "The task failed"],
  [SYSTEM_SUBJECTS.taskIdle, "Nothing is left to do"],
  [SYSTEM_SUBJECTS.taskTimeout, "The task took too long"],
  [SYSTEM_SUBJECTS.maximumStepsReached, "The step limit is reached"],
  [SYSTEM_SUBJECTS.approvalRequested, "Waits for approval"],
  [SYSTEM_SUBJECTS.breakpointToolCall, "Waits for a person"],
  [SYSTEM_SUBJECTS.actionComplete, "Actions have finished"],
  [SYSTEM_SUBJECTS.actionCompleteBroadcast, "Actions have finished"],
  [SYSTEM_SUBJECTS.actionError, "An action failed"],
  [SYSTEM_SUBJECTS.toolCallError, "A call was refused"],
  [SYSTEM_SUBJECTS.invalidRecipient, "There is no such recipient"],
  [SYSTEM_SUBJECTS.agentError, "An agent failed"],
  [SYSTEM_SUBJECTS.routerError, "A message was not delivered"],
]);

/** Subjects of the system's own notices are codes; they are shown in words. */
export function subjectText(subject: string): string {
  if (!isSystemSubject(subject)) return subject;
  const words = subject.replaceAll(":", "").replaceAll("_", " ");
  return SUBJECTS.get(subject) ?? `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}

/** A request and the response to it have one id. */
export function requestIdOf(message: MAILMessage): string | undefined {
  return message.msg_type === "request" || message.msg_type === "response"
    ? message.message.request_id
    : undefined;
}
