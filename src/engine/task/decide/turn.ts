/** One agent's turn: its answer, its calls in order, and the message that the agent receives at the end. */

import type { AgentToolCall } from "../../../mail/index.js";
import { createAgentAddress, isMailToolName, UNDELIVERED_ANSWER } from "../../../mail/index.js";
import type { TurnResult, Usage } from "../../agent.js";
import type { FailTurn, VettedCall } from "../commands.js";
import type { TurnError, TurnTaken } from "../entries.js";
import type { AgentRules } from "../rules.js";
import type { AgentState, MailboxItem, OngoingTurn, TaskState } from "../state.js";
import { ACTION_COMPLETE, agentErrorText, turnErrorText } from "../system-messages.js";
import type { DecisionBuilder } from "./decision-builder.js";
import { dropPendingCalls, fail, pause, pauseForApproval } from "./endings.js";
import { callMailTool, sendManualReply, sendTextToSender } from "./tools.js";

/** Records an answer and executes its calls up to the first one that must be waited for. */
export function takeTurn(
  draft: DecisionBuilder,
  rules: AgentRules,
  mails: readonly MailboxItem[],
  answer: TurnResult,
  vetted: readonly VettedCall[] = [],
  counted?: Usage,
): void {
  const { name } = rules;
  const took = mails.map((mail) => mail.number);
  const calls = withDistinctIds(draft, answer.calls);
  const breakpoints = breakpointsAmong(draft, rules, calls);
  const lastTurn = isLastTurn(draft, name, took);
  const entry: { -readonly [K in keyof TurnTaken]: TurnTaken[K] } = {
    t: "turn",
    at: draft.at,
    agent: name,
    took,
    calls,
  };
  if (answer.text !== undefined && answer.text !== "") entry.text = answer.text;
  if (answer.reasoning !== undefined) entry.reasoning = answer.reasoning;
  if (breakpoints.length > 0 && !lastTurn) entry.breakpoints = breakpoints;
  const approvals = lastTurn ? [] : approvalsAmong(draft, rules, calls, breakpoints, vetted);
  if (approvals.length > 0) entry.approvals = approvals;
  if (answer.memo !== undefined) entry.memo = answer.memo;
  if (answer.usage !== undefined) entry.usage = answer.usage;
  if (counted !== undefined) entry.counted = counted;
  draft.emit(entry);
  if (answer.compaction !== undefined) {
    const { summary, keep } = answer.compaction;
    // The current answer is kept; otherwise its results would belong to no call.
    const upTo = Math.min(answer.compaction.upTo, draft.state.number - 1);
    draft.emit({
      t: "compacted",
      at: draft.at,
      agent: name,
      upTo,
      summary,
      ...(keep !== undefined && keep.length > 0 && { keep }),
    });
  }
  if (calls.length === 0) {
    const errors = sendText(draft, rules, mails, entry.text ?? "");
    endTurn(draft, rules, { acted: false, awaits: false, helped: false, interrupted: false, errors });
  } else {
    const { turn } = agentState(draft, name);
    for (const one of vetted) {
      const call = "problem" in one ? calls[one.index] : undefined;
      if (call === undefined || lastTurn || !turn?.toApprove.includes(call.id)) continue;
      refuseCall(draft, name, call, { kind: "action", text: "problem" in one ? one.problem : "" });
    }
    executeCalls(draft, rules, turn, lastTurn);
  }
  if (draft.state.lastTurn !== undefined && lastTurn) failAtStepLimit(draft);
}

/** Executes calls in order until one must be waited for or none is left. */
function executeCalls(
  draft: DecisionBuilder,
  rules: AgentRules,
  turn: OngoingTurn | undefined,
  lastTurn = false,
): void {
  if (turn === undefined) {
    // The answer has only breakpoint calls.
    pause(draft, rules.name);
    return;
  }
  const askedBefore = turn.asked.length;
  while (turn.pending.length > 0) {
    const call = turn.pending[0];
    if (call === undefined || !mayBegin(draft, rules, turn, call)) break;
    if (turn.interrupted) {
      dropPendingCalls(draft, rules.name, [call], "interrupted");
      continue;
    }
    const error = carryOutOne(draft, rules, turn, call, lastTurn);
    if (error !== undefined) refuseCall(draft, rules.name, call, error);
    else if (call.name === "task_complete") {
      // Its answer is final: whatever the agent wanted to do after it no longer has a purpose.
      const rest = turn.pending.filter(({ name }) => name !== "task_complete");
      dropPendingCalls(draft, rules.name, rest, "not carried out: the task was completed");
    }
  }
  if (turn.asked.length > askedBefore) pauseForApproval(draft, rules.name);
  const isDone = turn.running.length === 0 && turn.pending.length === 0 && turn.asked.length === 0;
  if (isDone) endTurn(draft, rules, turn);
}

/** An action of this turn has ended: it continues, and so do turns that waited for the number of actions to fall. */
export function continueTurns(draft: DecisionBuilder, agent: string, turn: OngoingTurn): void {
  continueTurn(draft, agent, turn);
  for (const [name, { turn: other }] of draft.state.agents) {
    if (other !== undefined && other !== turn && other.pending.length > 0) continueTurn(draft, name, other);
  }
}

export function continueTurn(draft: DecisionBuilder, agent: string, turn: OngoingTurn): void {
  const rules = draft.agentRules(agent);
  if (rules !== undefined) executeCalls(draft, rules, turn);
  else dropPendingCalls(draft, agent, turn.pending, "the agent is no longer part of the swarm");
}

/**
 * Adjacent actions of one answer run together. Every other call waits until the actions before it have ended, because
 * it may depend on their effects.
 */
function mayBegin(
  draft: DecisionBuilder,
  rules: AgentRules,
  turn: OngoingTurn,
  call: AgentToolCall,
): boolean {
  const before = [...turn.running, ...turn.asked];
  if (!isAction(call.name)) return before.length === 0;
  // These do not run: the loop refuses or drops them.
  if (turn.interrupted || !mayCall(rules, call.name)) return true;
  const { sequential, limits } = draft.rules;
  const isSequential = ({ name }: AgentToolCall) => sequential.has(name);
  if (before.length > 0 && (isSequential(call) || before.some((other) => isSequential(other.call))))
    return false;
  return turn.toApprove.includes(call.id) || runningActions(draft.state) < limits.actionsPerTask;
}

function isAction(name: string): boolean {
  return name === "discover_swarms" || !isMailToolName(name);
}

function runningActions({ agents }: TaskState): number {
  let count = 0;
  for (const { turn } of agents.values()) count += turn?.running.length ?? 0;
  return count;
}

function carryOutOne(
  draft: DecisionBuilder,
  rules: AgentRules,
  turn: OngoingTurn,
  call: AgentToolCall,
  lastTurn: boolean,
): TurnError | undefined {
  if (lastTurn && call.name !== "task_complete") {
    return { kind: "tool", text: "the step limit is reached: only `task_complete` is allowed" };
  }
  if (isMailToolName(call.name)) {
    if (!rules.tools.has(call.name)) {
      return { kind: "tool", text: `tool '${call.name}' is not available to agent '${rules.name}'` };
    }
    // Executed like an action, by the module that connects to other swarms.
    if (call.name !== "discover_swarms") return callMailTool(draft, rules, turn, call, call.name);
  } else if (!draft.rules.actions.has(call.name)) {
    return { kind: "action", text: `unknown tool or action '${call.name}'` };
  } else if (!rules.actions.has(call.name)) {
    return { kind: "action", text: `action '${call.name}' is not available to agent '${rules.name}'` };
  }
  if (turn.toApprove.includes(call.id)) {
    askApproval(draft, rules.name, call);
    return undefined;
  }
  draft.emit({
    t: "action_started",
    at: draft.at,
    agent: rules.name,
    call: call.id,
    name: call.name,
    attempt: 1,
  });
  return undefined;
}

function askApproval(draft: DecisionBuilder, agent: string, call: AgentToolCall): void {
  const { status } = draft.state;
  if (status !== "running" && status !== "paused") {
    dropPendingCalls(draft, agent, [call], "not approved: the task has ended");
    return;
  }
  const timeout = draft.rules.approvals.get(call.name) ?? 0;
  draft.emit({
    t: "approval_asked",
    at: draft.at,
    agent,
    call: call.id,
    name: call.name,
    args: call.args,
    ...(timeout > 0 && { expires: draft.at + timeout }),
  });
}

function refuseCall(draft: DecisionBuilder, agent: string, call: AgentToolCall, error: TurnError): void {
  draft.emit({
    t: "result",
    at: draft.at,
    agent,
    call: call.id,
    name: call.name,
    ok: false,
    content: error.text,
    error: error.kind,
  });
}

/** Ends the turn. At most one message wakes the agent again. */
function endTurn(
  draft: DecisionBuilder,
  rules: AgentRules,
  turn: Pick<OngoingTurn, "acted" | "awaits" | "helped" | "interrupted" | "errors">,
): void {
  if (draft.state.status === "cancelled") return;
  const agent = agentState(draft, rules.name);
  if (agent.open.length > 0) pause(draft, rules.name);
  const [first, ...rest] = turn.errors;
  if (first !== undefined) {
    draft.tell(createAgentAddress(rules.name), turnErrorText(first, rest));
  } else if (turn.acted && !turn.awaits && !turn.helped && !turn.interrupted && agent.open.length === 0) {
    draft.wake(rules.name, ACTION_COMPLETE);
  }
  if (agent.errors >= draft.rules.limits.errorsInARow) {
    draft.trouble ??= {
      code: "error_loop",
      reason: `agent '${rules.name}' made ${agent.errors} errors in a row; the last one: ${first?.text ?? "unknown"}`,
    };
  }
  const { ownTurns } = draft.rules.limits;
  if (ownTurns > 0 && agent.ownTurns >= ownTurns) {
    draft.trouble ??= {
      code: "action_loop",
      reason: `agent '${rules.name}' took ${agent.ownTurns} turns in a row without mail from others (limits.own_turns)`,
    };
  }
}

/** The last turn at the step limit always ends the task (decision B8). */
function failAtStepLimit(draft: DecisionBuilder): void {
  fail(draft, "step_limit", `the task was not completed within ${draft.state.maxSteps} steps`);
}

function isLastTurn(draft: DecisionBuilder, agent: string, took: readonly number[]): boolean {
  const { lastTurn, entrypoint } = draft.state;
  return lastTurn !== undefined && agent === entrypoint && took.includes(lastTurn);
}

function sendText(
  draft: DecisionBuilder,
  rules: AgentRules,
  mails: readonly MailboxItem[],
  text: string,
): TurnError[] {
  const step = mails.find((mail) => mail.manual !== undefined)?.manual;
  // Text about a lost answer is no answer, and the agent that asked would take it for one.
  if (step === undefined && mails.every(isAboutLostAnswer)) return [];
  const error =
    step === undefined ? sendTextToSender(draft, rules, text) : sendManualReply(draft, rules, step, text);
  return error === undefined ? [] : [error];
}

function isAboutLostAnswer({ message }: MailboxItem): boolean {
  const { sender, routing_info } = message.message;
  return sender.address_type === "system" && routing_info?.[UNDELIVERED_ANSWER] !== undefined;
}

/** The agent failed: the agent that asked it gets the error; a user gets it as the end of the task (compare REF-5). */
export function failTurn(
  draft: DecisionBuilder,
  mails: readonly MailboxItem[],
  { agent: name, code, message, usage, counted }: Omit<FailTurn, "type" | "took">,
): void {
  const took = mails.map((mail) => mail.number);
  const lastTurn = isLastTurn(draft, name, took);
  draft.emit({
    t: "turn_failed",
    at: draft.at,
    agent: name,
    took,
    code,
    message,
    ...(usage !== undefined && { usage }),
    ...(counted !== undefined && { counted }),
  });
  if (draft.state.status === "cancelled") return;
  if (lastTurn) return failAtStepLimit(draft);
  const waiting = agentState(draft, name).onBehalfOf;
  if (waiting === undefined || waiting.sender.address_type !== "agent") {
    draft.trouble ??= { code, reason: `agent '${name}' failed: ${message}` };
    return;
  }
  draft.tell(waiting.sender, agentErrorText(name, message), waiting.requestId, name);
  const told = draft.state.agents.get(waiting.sender.address);
  if (told !== undefined && told.errors >= draft.rules.limits.errorsInARow) {
    draft.trouble ??= { code: "error_loop", reason: `agent '${name}' keeps failing: ${message}` };
  }
}

/**
 * Calls that wait for a result must not share an id, even if different agents made them, because results are matched by
 * id. Many agents number their calls from 1 in every answer.
 */
function withDistinctIds(draft: DecisionBuilder, calls: readonly AgentToolCall[]): readonly AgentToolCall[] {
  const { agents } = draft.state;
  if (calls.length < 2 && !someCallWaits(agents)) return calls;
  const seen = new Set<string>();
  for (const { turn, open } of agents.values()) {
    for (const call of open) seen.add(call.id);
    for (const call of turn?.pending ?? []) seen.add(call.id);
    for (const { call } of turn?.running ?? []) seen.add(call.id);
    for (const { call } of turn?.asked ?? []) seen.add(call.id);
  }
  return calls.map((call) => {
    const distinct = seen.has(call.id) ? { ...call, id: draft.id() } : call;
    seen.add(distinct.id);
    return distinct;
  });
}

function someCallWaits(agents: ReadonlyMap<string, AgentState>): boolean {
  for (const { turn, open } of agents.values()) if (turn !== undefined || open.length > 0) return true;
  return false;
}

function breakpointsAmong(
  draft: DecisionBuilder,
  rules: AgentRules,
  calls: readonly AgentToolCall[],
): string[] {
  const { breakpointTools } = draft.rules;
  if (breakpointTools.size === 0) return [];
  return calls
    .filter((call) => breakpointTools.has(call.name) && mayCall(rules, call.name))
    .map((call) => call.id);
}

/** A call that may need approval needs it, unless its action says otherwise. */
function approvalsAmong(
  draft: DecisionBuilder,
  rules: AgentRules,
  calls: readonly AgentToolCall[],
  breakpoints: readonly string[],
  vetted: readonly VettedCall[],
): string[] {
  const { approvals } = draft.rules;
  if (approvals.size === 0) return [];
  const free = new Set<number>();
  for (const one of vetted) if ("approval" in one && !one.approval) free.add(one.index);
  return calls
    .filter(({ id, name }, index) => {
      return approvals.has(name) && mayCall(rules, name) && !breakpoints.includes(id) && !free.has(index);
    })
    .map(({ id }) => id);
}

function mayCall(rules: AgentRules, name: string): boolean {
  return isMailToolName(name) ? rules.tools.has(name) : rules.actions.has(name);
}

function agentState(draft: DecisionBuilder, name: string): AgentState {
  const agent = draft.state.agents.get(name);
  if (agent === undefined) throw new Error(`agent '${name}' has no state in task ${draft.state.key}`);
  return agent;
}
