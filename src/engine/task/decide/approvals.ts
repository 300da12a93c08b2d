/** Calls that run only after a person has approved them. */
import { actorName } from "../approvers.js";
import type { AnswerApprovals, Refusal } from "../commands.js";
import type { ApprovalAnswered } from "../entries.js";
import { askedCalls, type OngoingTurn, type TaskState } from "../state.js";
import type { DecisionBuilder } from "./decision-builder.js";
import { dropPendingCalls, pause, pauseForApproval, resume } from "./endings.js";
import { continueTurn } from "./turn.js";

/** Decides calls that wait for approval. The task continues when no call waits for a person any longer. */
export function answerApprovals(draft: DecisionBuilder, command: AnswerApprovals): Refusal | undefined {
  const { state } = draft;
  const { by, decisions } = command;
  const asked = new Map(askedCalls(state).map((one) => [one.call.id, one]));
  if (asked.size === 0) {
    return {
      code: "not_paused",
      message: `task '${state.taskId}' is ${state.status} and has no call that waits for approval`,
    };
  }
  const ids = decisions.map(({ callId }) => callId);
  if (ids.length === 0) return approvalNeeded(state);
  const unknown = ids.filter((id) => !asked.has(id));
  if (unknown.length > 0) {
    const open = [...asked.keys()];
    return {
      code: "unknown_calls",
      message: `these calls do not wait for approval: ${unknown.join(", ")}; these do: ${open.join(", ")}`,
      details: { unknown, open },
    };
  }
  if (new Set(ids).size < ids.length) {
    return {
      code: "bad_answer",
      message: "each call takes one decision; at least one call was given several",
    };
  }
  // Its timer may be late: after a restart, the answer can come first.
  const late = decisions.find(({ callId }) => hasExpired(asked.get(callId), draft.at));
  if (late !== undefined) {
    return {
      code: "unknown_calls",
      message: `call '${late.callId}' no longer waits for approval: its time limit has passed`,
      details: { unknown: [late.callId] },
    };
  }
  settleApprovals(
    draft,
    decisions.map((decision) => ({
      ...(decision.decision === "approve"
        ? { decision: "approved", args: decision.args }
        : { decision: "rejected", reason: decision.reason }),
      callId: decision.callId,
      by: by === undefined ? undefined : actorName(by),
    })),
  );
  return undefined;
}

export function expireApprovals(draft: DecisionBuilder): void {
  const due = askedCalls(draft.state).filter((asked) => hasExpired(asked, draft.at));
  if (due.length > 0)
    settleApprovals(
      draft,
      due.map(({ call }) => ({ callId: call.id, decision: "expired" })),
    );
}

function hasExpired(asked: { readonly expires?: number | undefined } | undefined, at: number): boolean {
  return asked?.expires !== undefined && asked.expires <= at;
}

interface SettledApproval extends Pick<ApprovalAnswered, "decision"> {
  readonly callId: string;
  readonly by?: string | undefined;
  readonly args?: ApprovalAnswered["args"] | undefined;
  readonly reason?: string | undefined;
}

function settleApprovals(draft: DecisionBuilder, settled: readonly SettledApproval[]): void {
  const { state } = draft;
  const turns = new Map<string, OngoingTurn>();
  const approved = new Set(
    settled.filter(({ decision }) => decision === "approved").map(({ callId }) => callId),
  );
  for (const { callId, decision, by, args, reason } of settled) {
    const asked = askedCalls(state).find(({ call }) => call.id === callId);
    const turn = asked === undefined ? undefined : state.agents.get(asked.agent)?.turn;
    if (asked === undefined || turn === undefined) continue;
    const { agent, call } = asked;
    turns.set(agent, turn);
    draft.emit({
      t: "approval_answered",
      at: draft.at,
      agent,
      call: call.id,
      name: call.name,
      decision,
      ...(by !== undefined && { by }),
      ...(args !== undefined && { args }),
      ...(reason !== undefined && { reason }),
    });
    if (decision === "approved") continue;
    const content =
      decision === "expired"
        ? "not approved in time"
        : `rejected${reason === undefined ? "" : `: ${reason}`}`;
    dropPendingCalls(draft, agent, [call], content);
    const place = turn.calls.indexOf(call.id);
    const later = turn.pending.filter(({ id }) => !approved.has(id) && turn.calls.indexOf(id) > place);
    dropPendingCalls(draft, agent, later, `not carried out: an earlier call of the answer was ${decision}`);
  }
  // First, so that the calls after an approved one find a running task.
  if (agentsThatWait(state).length === 0 && state.status === "paused") resume(draft);
  for (const [agent, turn] of turns) continueTurn(draft, agent, turn);
  const [waits] = agentsThatWait(state);
  if (waits === undefined || draft.entries.at(-1)?.t === "paused") return;
  if (askedCalls(state).length > 0) pauseForApproval(draft, waits);
  else pause(draft, waits);
}

export function approvalNeeded(state: TaskState): Refusal {
  const calls = askedCalls(state).map(({ agent, call }) => ({ agent, call_id: call.id, name: call.name }));
  const names = calls.map(({ call_id, name }) => `${name} (${call_id})`).join(", ");
  return {
    code: "approval_needed",
    message:
      `task '${state.taskId}' waits for a decision on ${names}. Text decides nothing: send a decision for each call, ` +
      'with its call_id, "approve" or "reject", and optionally changed arguments or a reason',
    details: { calls },
  };
}

/** The agents with calls that wait for a person. */
export function agentsThatWait(state: TaskState): string[] {
  return [...state.agents]
    .filter(([, { open, turn }]) => open.length > 0 || (turn?.asked.length ?? 0) > 0)
    .map(([name]) => name);
}
