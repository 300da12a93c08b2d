/**
 * The system's messages to agents. Each says what to do next. MAIL: Error Handling.
 * The subjects are the reference implementation's, so that existing prompts and clients recognize them.
 */
import { SYSTEM_SUBJECTS } from "../../mail/pure.js";
import type { TurnError } from "./entries.js";
import type { TaskState } from "./state.js";

const ERROR_SUBJECTS: ReadonlySet<string> = new Set([
  SYSTEM_SUBJECTS.actionError,
  SYSTEM_SUBJECTS.toolCallError,
  SYSTEM_SUBJECTS.invalidRecipient,
  SYSTEM_SUBJECTS.improperResponseToUser,
  SYSTEM_SUBJECTS.agentError,
  SYSTEM_SUBJECTS.routerError,
]);

export function isErrorSubject(subject: string): boolean {
  return ERROR_SUBJECTS.has(subject);
}

export interface SystemText {
  readonly subject: string;
  readonly body: string;
}

const SUBJECT_OF_ERROR: Readonly<Record<TurnError["kind"], string>> = {
  recipient: SYSTEM_SUBJECTS.invalidRecipient,
  user_recipient: SYSTEM_SUBJECTS.improperResponseToUser,
  tool: SYSTEM_SUBJECTS.toolCallError,
  action: SYSTEM_SUBJECTS.actionError,
};

/** One message for all problems of a turn, because each message costs the agent another turn. */
export function turnErrorText(first: TurnError, rest: readonly TurnError[]): SystemText {
  const body = [first, ...rest].map((error) => error.text).join("\n\n");
  return { subject: SUBJECT_OF_ERROR[first.kind], body };
}

export const ACTION_COMPLETE: SystemText = {
  subject: SYSTEM_SUBJECTS.actionComplete,
  body: "Your action calls have finished; their results are in your history. Continue with the task.",
};

/** Wakes an agent whose breakpoint calls were answered; it is not shown to the agent. */
export const BREAKPOINT_ANSWERED: SystemText = { subject: SYSTEM_SUBJECTS.actionCompleteBroadcast, body: "" };

export const TASK_IDLE: SystemText = {
  subject: SYSTEM_SUBJECTS.taskIdle,
  body:
    "This task is idle: no message is waiting and no agent is working. " +
    "Finish it with `task_complete`, or send the messages that are still needed. " +
    "If nothing happens after this, the task fails.",
};

export function agentErrorText(agent: string, message: string): SystemText {
  return {
    subject: SYSTEM_SUBJECTS.agentError,
    body: `Agent '${agent}' failed while it handled your message: ${message}`,
  };
}

export function unknownAgentText(agent: string): SystemText {
  return {
    subject: SYSTEM_SUBJECTS.agentError,
    body: `Your message could not be delivered: there is no agent '${agent}' in this swarm.`,
  };
}

export function routerErrorText(swarm: string, subject: string, reason: string): SystemText {
  return {
    subject: SYSTEM_SUBJECTS.routerError,
    body: `Your message '${subject}' to swarm '${swarm}' was not delivered: ${reason}`,
  };
}

/** @param mayRepeat the agent can send the answer again with a tool */
export function undeliveredAnswerText(
  swarm: string,
  subject: string,
  reason: string,
  mayRepeat: boolean,
): SystemText {
  const advice = mayRepeat ? " To send an answer again, call `send_response`." : "";
  return {
    subject: SYSTEM_SUBJECTS.routerError,
    body:
      `Your answer '${subject}' to swarm '${swarm}' was not delivered: ${reason}.${advice} ` +
      "Text without a tool call is not sent.",
  };
}

export function noAnswerText(address: string, ms: number): SystemText {
  return {
    subject: SYSTEM_SUBJECTS.routerError,
    body:
      `Your request to '${address}' was accepted by its swarm, but no answer came within ${Math.round(ms / 1000)} s. ` +
      "Continue without it, or ask again. If the answer arrives later, you will still receive it.",
  };
}

export function noReplyText(address: string): SystemText {
  return {
    subject: SYSTEM_SUBJECTS.routerError,
    body:
      `Your message to '${address}' was accepted, but its swarm has finished its work on it without an answer. ` +
      "Continue without it, or ask again.",
  };
}

const TRANSCRIPT_LINES = 60;
const TRANSCRIPT_LINE_LENGTH = 240;

export function stepLimitText(state: TaskState, limit: number): SystemText {
  return {
    subject: SYSTEM_SUBJECTS.maximumStepsReached,
    body:
      `The task has reached its limit of ${limit} steps. This is your last turn: call \`task_complete\` now, ` +
      `with the best answer that you can give now.\n\nWhat happened so far:\n${transcript(state)}`,
  };
}

/** The last messages and results of all agents in the task, one line each. */
function transcript(state: TaskState): string {
  const lines: { number: number; text: string }[] = [];
  for (const [name, agent] of state.agents) {
    for (const item of agent.history) {
      if (item.kind === "message") {
        const { sender, subject, body } = item.message.message;
        lines.push({ number: item.number, text: `${sender.address} -> ${name}: ${subject}: ${body}` });
      } else if (item.kind === "result") {
        const outcome = item.ok ? "result" : "error";
        lines.push({ number: item.number, text: `${name} ${item.name} ${outcome}: ${item.content}` });
      }
    }
  }
  lines.sort((a, b) => a.number - b.number);
  return lines
    .slice(-TRANSCRIPT_LINES)
    .map(({ text }) => `- ${shorten(text.replaceAll(/\s+/g, " "))}`)
    .join("\n");
}

function shorten(text: string): string {
  return text.length <= TRANSCRIPT_LINE_LENGTH ? text : `${text.slice(0, TRANSCRIPT_LINE_LENGTH - 1)}…`;
}
