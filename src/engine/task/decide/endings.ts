/** How a task ends, pauses and resumes. */

import type { MAILMessage } from "../../../mail/index.js";
import { normalizeBreakpointCall, SYSTEM_SUBJECTS } from "../../../mail/index.js";
import type { HoldTurn } from "../commands.js";
import { type Completed, TASK_TIMEOUT } from "../entries.js";
import { askedCalls, isFromPerson, type TaskState, wasTaken } from "../state.js";
import type { DecisionBuilder } from "./decision-builder.js";
import { notifyOtherSwarms } from "./interswarm.js";

export function complete(draft: DecisionBuilder, message: MAILMessage, call: Completed["call"]): void {
  draft.emit({ t: "completed", at: draft.at, message, ...(call !== undefined && { call }) });
  notifyOtherSwarms(draft, message, SYSTEM_SUBJECTS.taskComplete);
  leaveNoCallOpen(draft, "not answered: the task was completed");
  goOnIfSomeoneWaits(draft);
}

export function fail(draft: DecisionBuilder, code: string, reason: string): void {
  const message = draft.systemComplete({ subject: SYSTEM_SUBJECTS.taskError, body: reason });
  draft.emit({ t: "failed", at: draft.at, code, reason, message });
  notifyOtherSwarms(draft, message, SYSTEM_SUBJECTS.taskError);
  leaveNoCallOpen(draft, "not answered: the task failed");
  goOnIfSomeoneWaits(draft);
}

/**
 * Ends the task immediately: waiting mail and pending calls are dropped, results of running turns are discarded
 * (decision B14).
 */
export function cancel(draft: DecisionBuilder, by: string): void {
  const message = draft.systemComplete({
    subject: SYSTEM_SUBJECTS.taskCancelled,
    body: `The task was cancelled by ${by}.`,
  });
  draft.emit({ t: "cancelled", at: draft.at, by, message });
  notifyOtherSwarms(draft, message, SYSTEM_SUBJECTS.taskCancelled);
  leaveNoCallOpen(draft, "not answered: the task was cancelled");
  dropAllPendingCalls(draft, "not carried out: the task was cancelled");
}

/** The remaining calls of running turns are not executed. */
function dropAllPendingCalls(draft: DecisionBuilder, content: string): void {
  for (const [name, agent] of draft.state.agents) {
    dropPendingCalls(draft, name, agent.turn?.pending ?? [], content);
  }
}

export function timeOut(draft: DecisionBuilder): void {
  abandon(draft, TASK_TIMEOUT, "the task did not end within its time limit");
}

/**
 * Ends the task and everything in it. Users' messages that are not answered yet fail with it: if they stayed in the
 * mailbox, the task would resume with them immediately and never end.
 */
export function abandon(draft: DecisionBuilder, code: string, reason: string): void {
  for (const [agent, { mailbox }] of draft.state.agents) {
    const took = mailbox.filter((mail) => isFromPerson(mail.message)).map((mail) => mail.number);
    if (took.length > 0) draft.emit({ t: "turn_failed", at: draft.at, agent, took, code, message: reason });
  }
  fail(draft, code, reason);
  dropAllPendingCalls(draft, `not carried out: ${reason}`);
}

/** Pauses the task until a user has answered the breakpoint calls of this agent. */
export function pause(draft: DecisionBuilder, agent: string): void {
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
    body: JSON.stringify(every.map(normalizeBreakpointCall)),
  });
  draft.emit({ t: "paused", at: draft.at, agent, calls, message });
}

/** Pauses the task until a person has decided the calls that wait for approval. */
export function pauseForApproval(draft: DecisionBuilder, agent: string): void {
  const approvals = askedCalls(draft.state).map(({ call }) => call);
  const message = draft.systemComplete({
    subject: SYSTEM_SUBJECTS.approvalRequested,
    body: JSON.stringify(approvals.map(normalizeBreakpointCall)),
  });
  draft.emit({ t: "paused", at: draft.at, agent, calls: [], approvals, message });
}

/** Pauses the task until an agent has what it needs for its turn. The messages of the turn stay in the mailbox. */
export function hold(draft: DecisionBuilder, command: Omit<HoldTurn, "type" | "took">): void {
  const { agent, reason, limit, message: text, usage, counted } = command;
  const used = { ...(usage !== undefined && { usage }), ...(counted !== undefined && { counted }) };
  if (draft.state.status !== "running") {
    if (usage !== undefined) draft.emit({ t: "usage", at: draft.at, agent, ...used, usage });
    return;
  }
  const message = draft.systemComplete({
    subject: SYSTEM_SUBJECTS.taskHeld,
    body: `Agent '${agent}' cannot continue: ${text}`,
  });
  draft.emit({
    t: "paused",
    at: draft.at,
    agent,
    calls: [],
    message,
    reason,
    ...(limit !== undefined && { limit }),
    ...used,
  });
}

export function resume(draft: DecisionBuilder, maxSteps?: number | null): void {
  const { taskTimeout } = draft.rules.limits;
  noteDefinition(draft);
  draft.emit({
    t: "resumed",
    at: draft.at,
    ...(taskTimeout > 0 && { deadline: draft.at + taskTimeout }),
    ...(maxSteps !== undefined && { maxSteps }),
  });
}

/** The task continues with the current definition, and its journal records the change (decision B17). */
export function noteDefinition(draft: DecisionBuilder): void {
  if (draft.state.definition === draft.rules.hash) return;
  draft.emit({ t: "redefined", at: draft.at, definition: draft.rules.hash });
}

/** Every call in a history has a result (decision B4). */
export function leaveNoCallOpen(draft: DecisionBuilder, content: string): void {
  for (const [name, agent] of draft.state.agents) {
    dropPendingCalls(draft, name, agent.open, content);
    const { turn } = agent;
    if (turn === undefined || turn.asked.length === 0) continue;
    dropPendingCalls(
      draft,
      name,
      turn.asked.map(({ call }) => call),
      content,
    );
    // What follows in the same answer may rely on them.
    dropPendingCalls(draft, name, turn.pending, content);
  }
}

export function dropPendingCalls(
  draft: DecisionBuilder,
  agent: string,
  calls: readonly { readonly id: string; readonly name: string }[],
  content: string,
): void {
  for (const call of [...calls]) {
    draft.emit({ t: "result", at: draft.at, agent, call: call.id, name: call.name, ok: false, content });
  }
}

/** A user's message that no agent has taken yet keeps the task running (decision B6). */
function goOnIfSomeoneWaits(draft: DecisionBuilder): void {
  if (personWaits(draft.state)) resume(draft);
}

function personWaits(state: TaskState): boolean {
  for (const agent of state.agents.values()) {
    if (agent.mailbox.length === agent.others) continue;
    if (agent.mailbox.some((mail) => isFromPerson(mail.message) && !wasTaken(state, mail))) return true;
  }
  return false;
}
