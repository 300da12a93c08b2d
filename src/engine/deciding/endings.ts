/** How a task ends, stands still, and goes on. */
import { normaliseBreakpointCall } from "../../mail/calls.js";
import type { MAILMessage } from "../../mail/message.js";
import { SYSTEM_SUBJECTS } from "../../mail/subjects.js";
import type { HoldReason } from "../agent.js";
import { type Completed, TASK_TIMEOUT } from "../entries.js";
import { isFromPerson, type TaskState, wasTaken } from "../state.js";
import type { Draft } from "./draft.js";
import { tellOtherSwarms } from "./interswarm.js";

export function complete(draft: Draft, message: MAILMessage, call: Completed["call"]): void {
  draft.emit({ t: "completed", at: draft.at, message, ...(call !== undefined && { call }) });
  tellOtherSwarms(draft, message, SYSTEM_SUBJECTS.taskComplete);
  leaveNoCallOpen(draft, "not answered: the task was completed");
  goOnIfSomeoneWaits(draft);
}

export function fail(draft: Draft, code: string, reason: string): void {
  const message = draft.systemComplete({ subject: SYSTEM_SUBJECTS.taskError, body: reason });
  draft.emit({ t: "failed", at: draft.at, code, reason, message });
  tellOtherSwarms(draft, message, SYSTEM_SUBJECTS.taskError);
  leaveNoCallOpen(draft, "not answered: the task failed");
  goOnIfSomeoneWaits(draft);
}

/** Decisions B14. Nothing waits any more; what is under way is let go. */
export function cancel(draft: Draft, by: string): void {
  const message = draft.systemComplete({
    subject: SYSTEM_SUBJECTS.taskCancelled,
    body: `The task was cancelled by ${by}.`,
  });
  draft.emit({ t: "cancelled", at: draft.at, by, message });
  tellOtherSwarms(draft, message, SYSTEM_SUBJECTS.taskCancelled);
  leaveNoCallOpen(draft, "not answered: the task was cancelled");
  dropAllPendingCalls(draft, "not carried out: the task was cancelled");
}

/** Nothing more is started of the turns that are under way. */
function dropAllPendingCalls(draft: Draft, content: string): void {
  for (const [name, agent] of draft.state.agents) {
    dropPendingCalls(draft, name, agent.turn?.pending ?? [], content);
  }
}

export function timeOut(draft: Draft): void {
  giveUp(draft, TASK_TIMEOUT, "the task did not end within its time limit");
}

/**
 * Ends the task and everything in it. What people wrote and nobody has answered by now fails with it: were it left
 * waiting, the task would go on with it at once, and never end.
 */
export function giveUp(draft: Draft, code: string, reason: string): void {
  for (const [agent, { mailbox }] of draft.state.agents) {
    const took = mailbox.filter((mail) => isFromPerson(mail.message)).map((mail) => mail.number);
    if (took.length > 0) draft.emit({ t: "turn_failed", at: draft.at, agent, took, code, message: reason });
  }
  fail(draft, code, reason);
  dropAllPendingCalls(draft, `not carried out: ${reason}`);
}

/** Stops the task until a person has answered the breakpoint calls of this agent. */
export function pause(draft: Draft, agent: string): void {
  const { state } = draft;
  const calls = [...(state.agents.get(agent)?.open ?? [])];
  if (calls.length === 0) return;
  if (state.status !== "running" && state.status !== "paused") {
    leaveNoCallOpen(draft, "not answered: the task has ended");
    return;
  }
  const every = [...state.agents.values()].flatMap((other) => other.open);
  const message = draft.systemComplete({
    subject: SYSTEM_SUBJECTS.breakpointToolCall,
    body: JSON.stringify(every.map(normaliseBreakpointCall)),
  });
  draft.emit({ t: "paused", at: draft.at, agent, calls, message });
}

/** Stops the task until an agent has what it needs for its turn; the messages that it could not take stay. */
export function hold(draft: Draft, agent: string, reason: HoldReason, text: string): void {
  if (draft.state.status !== "running") return;
  const message = draft.systemComplete({
    subject: SYSTEM_SUBJECTS.taskHeld,
    body: `Agent '${agent}' cannot go on: ${text}`,
  });
  draft.emit({ t: "paused", at: draft.at, agent, calls: [], message, reason });
}

export function resume(draft: Draft, maxSteps?: number | null): void {
  const { taskTime } = draft.rules.limits;
  noteDefinition(draft);
  draft.emit({
    t: "resumed",
    at: draft.at,
    ...(taskTime !== undefined && { deadline: draft.at + taskTime }),
    ...(maxSteps !== undefined && { maxSteps }),
  });
}

/** Decisions B17: the task goes on with what is there now, and its journal says so. */
export function noteDefinition(draft: Draft): void {
  if (draft.state.definition === draft.rules.hash) return;
  draft.emit({ t: "redefined", at: draft.at, definition: draft.rules.hash });
}

/** Decisions B4: every call in a history has a result. */
export function leaveNoCallOpen(draft: Draft, content: string): void {
  for (const [name, agent] of draft.state.agents) {
    dropPendingCalls(draft, name, agent.open, content);
  }
}

export function dropPendingCalls(
  draft: Draft,
  agent: string,
  calls: readonly { readonly id: string; readonly name: string }[],
  content: string,
): void {
  for (const call of [...calls]) {
    draft.emit({ t: "result", at: draft.at, agent, call: call.id, name: call.name, ok: false, content });
  }
}

/** Decisions B6: a person's message that no agent has taken yet keeps the task running. */
function goOnIfSomeoneWaits(draft: Draft): void {
  if (personWaits(draft.state)) resume(draft);
}

function personWaits(state: TaskState): boolean {
  for (const agent of state.agents.values()) {
    if (agent.mailbox.length === agent.others) continue;
    if (agent.mailbox.some((mail) => isFromPerson(mail.message) && !wasTaken(state, mail))) return true;
  }
  return false;
}
