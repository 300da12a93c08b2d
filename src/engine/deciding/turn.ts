/** One agent's turn: its answer, the calls in it one after the other, and what the agent is told at the end. */
import { createAgentAddress } from "../../mail/address.js";
import type { AgentToolCall } from "../../mail/calls.js";
import { isMailToolName } from "../../mail/tool-table.js";
import type { AgentAnswer } from "../agent.js";
import type { TurnTaken } from "../entries.js";
import type { AgentRules } from "../rules.js";
import type { AgentState, Mail, OngoingTurn, TurnError } from "../state.js";
import { ACTION_COMPLETE, agentErrorText, turnErrorText } from "../system-messages.js";
import type { Draft } from "./draft.js";
import { dropPendingCalls, fail, pause } from "./endings.js";
import { callMailTool, sendManualReply, sendTextToSender } from "./tools.js";

/** Commits an answer and carries out its calls as far as they need nobody else. */
export function takeTurn(draft: Draft, rules: AgentRules, mails: readonly Mail[], answer: AgentAnswer): void {
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
  if (answer.memo !== undefined) entry.memo = answer.memo;
  if (answer.usage !== undefined) entry.usage = answer.usage;
  draft.emit(entry);
  if (answer.compaction !== undefined) {
    const { summary } = answer.compaction;
    // The answer that is being carried out stays, or its results would belong to no call.
    const upTo = Math.min(answer.compaction.upTo, draft.state.number - 1);
    draft.emit({ t: "compacted", at: draft.at, agent: name, upTo, summary });
  }
  if (calls.length === 0) {
    const errors = sendText(draft, rules, mails, entry.text ?? "");
    endTurn(draft, rules, { acted: false, awaits: false, helped: false, interrupted: false, errors });
  } else {
    carryOut(draft, rules, agentState(draft, name).turn, lastTurn);
  }
  if (draft.state.lastTurn !== undefined && lastTurn) failAtStepLimit(draft);
}

/** Carries out calls in order until one has to be waited for or none is left. */
export function carryOut(
  draft: Draft,
  rules: AgentRules,
  turn: OngoingTurn | undefined,
  lastTurn = false,
): void {
  if (turn === undefined) {
    // Nothing but breakpoint calls.
    pause(draft, rules.name);
    return;
  }
  while (turn.pending.length > 0 && turn.running === undefined) {
    const call = turn.pending[0];
    if (call === undefined) break;
    if (turn.interrupted) {
      dropPendingCalls(draft, rules.name, [call], "interrupted");
      continue;
    }
    const error = carryOutOne(draft, rules, turn, call, lastTurn);
    if (error !== undefined) refuseCall(draft, rules.name, call, error);
  }
  if (turn.running === undefined) endTurn(draft, rules, turn);
}

function carryOutOne(
  draft: Draft,
  rules: AgentRules,
  turn: OngoingTurn,
  call: AgentToolCall,
  lastTurn: boolean,
): TurnError | undefined {
  if (lastTurn && call.name !== "task_complete") {
    return { kind: "tool", text: "the step limit is reached: only `task_complete` is possible" };
  }
  if (isMailToolName(call.name)) {
    if (!rules.tools.has(call.name)) {
      return { kind: "tool", text: `tool '${call.name}' is not available to agent '${rules.name}'` };
    }
    // Carried out by whoever connects us with other swarms, like an action.
    if (call.name !== "discover_swarms") return callMailTool(draft, rules, turn, call, call.name);
  } else if (!draft.rules.actions.has(call.name)) {
    return { kind: "action", text: `there is no tool or action named '${call.name}'` };
  } else if (!rules.actions.has(call.name)) {
    return { kind: "action", text: `action '${call.name}' is not available to agent '${rules.name}'` };
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

function refuseCall(draft: Draft, agent: string, call: AgentToolCall, error: TurnError): void {
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

/** What follows from the turn as a whole. At most one message wakes the agent again. */
function endTurn(
  draft: Draft,
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
      reason: `agent '${rules.name}' took ${agent.ownTurns} turns in a row without mail from anybody else`,
    };
  }
}

/** Decisions B8: whatever the last turn did, the task ends with it. */
function failAtStepLimit(draft: Draft): void {
  fail(draft, "step_limit", `the task was not completed within ${draft.state.maxSteps} steps`);
}

function isLastTurn(draft: Draft, agent: string, took: readonly number[]): boolean {
  const { lastTurn, entrypoint } = draft.state;
  return lastTurn !== undefined && agent === entrypoint && took.includes(lastTurn);
}

function sendText(draft: Draft, rules: AgentRules, mails: readonly Mail[], text: string): TurnError[] {
  const step = mails.find((mail) => mail.manual !== undefined)?.manual;
  const error =
    step === undefined ? sendTextToSender(draft, rules, text) : sendManualReply(draft, rules, step, text);
  return error === undefined ? [] : [error];
}

/** The agent failed: whoever waits for it is told, a person by the end of the task (mail.md 3.13). */
export function failTurn(
  draft: Draft,
  name: string,
  mails: readonly Mail[],
  code: string,
  message: string,
): void {
  const took = mails.map((mail) => mail.number);
  const lastTurn = isLastTurn(draft, name, took);
  draft.emit({ t: "turn_failed", at: draft.at, agent: name, took, code, message });
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
 * Calls that wait for a result must not share an id, whichever agents made them: results are matched by it. Many
 * agents number their calls from 1 in every answer.
 */
function withDistinctIds(draft: Draft, calls: readonly AgentToolCall[]): readonly AgentToolCall[] {
  const seen = new Set<string>();
  for (const { turn, open } of draft.state.agents.values()) {
    for (const call of open) seen.add(call.id);
    for (const call of turn?.pending ?? []) seen.add(call.id);
    if (turn?.running !== undefined) seen.add(turn.running.call.id);
  }
  if (calls.length < 2 && seen.size === 0) return calls;
  return calls.map((call) => {
    const distinct = seen.has(call.id) ? { ...call, id: draft.id() } : call;
    seen.add(distinct.id);
    return distinct;
  });
}

function breakpointsAmong(draft: Draft, rules: AgentRules, calls: readonly AgentToolCall[]): string[] {
  const { breakpointTools } = draft.rules;
  if (breakpointTools.size === 0) return [];
  return calls
    .filter((call) => breakpointTools.has(call.name) && mayCall(rules, call.name))
    .map((call) => call.id);
}

function mayCall(rules: AgentRules, name: string): boolean {
  return isMailToolName(name) ? rules.tools.has(name) : rules.actions.has(name);
}

function agentState(draft: Draft, name: string): AgentState {
  const agent = draft.state.agents.get(name);
  if (agent === undefined) throw new Error(`agent '${name}' has no state in task ${draft.state.key}`);
  return agent;
}
