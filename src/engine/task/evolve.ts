/**
 * `evolve(state, entry)` applies an entry to the state of a task. Deterministic: no clock, no I/O and no decisions. It
 * never checks whether something is allowed, because the entry states that it happened.
 *
 * The state is changed in place and belongs to the caller. The same journal always gives the same state.
 */

import type { AgentToolCall, MAILMessage } from "../../mail/pure.js";
import { isEndingNotice, isInterswarmAddress, SYSTEM_SUBJECTS, tierOf } from "../../mail/pure.js";
import type { HistoryItem, ResultItem } from "../agent.js";
import { addTotals, changedLimits, NO_USAGE, usedIn } from "../usage.js";
import {
  type ActionFinished,
  type ApprovalAnswered,
  type Compacted,
  type Entry,
  JOURNAL_VERSION,
  type Opened,
  type Sent,
  TASK_TIMEOUT,
  type TurnTaken,
} from "./entries.js";
import { noteCarried, requestIdOf, trackPeers, trackRequests } from "./requests.js";
import {
  type AgentState,
  type Asker,
  agentOf,
  enqueue,
  isFromPerson,
  isPerson,
  type MailboxItem,
  type OngoingTurn,
  senderOf,
  type TaskState,
} from "./state.js";
import { isErrorSubject } from "./system-messages.js";

/** How many of the last messages are kept to detect repetition (decision B9). */
const REPETITION_WINDOW = 12;

export function open(entry: Opened): TaskState {
  const { task } = entry;
  if (entry.v > JOURNAL_VERSION) {
    throw new Error(
      `journal ${task.key} has version ${entry.v}, and this version of Mailroom reads journals up to version ` +
        `${JOURNAL_VERSION}: use a later version of Mailroom`,
    );
  }
  return {
    key: task.key,
    instance: task.instance,
    taskId: task.taskId,
    swarm: task.swarm,
    owner: task.owner,
    contributors: [...task.contributors],
    approvers: undefined,
    entrypoint: task.entrypoint,
    definition: entry.definition,
    manual: task.manual === true,
    createdAt: entry.at,
    updatedAt: entry.at,
    deadline: task.deadline,
    number: 1,
    status: "running",
    stoppedAt: 0,
    ending: undefined,
    error: undefined,
    maxSteps: task.maxSteps,
    steps: 0,
    stepped: new Set(),
    taken: new Set(),
    lastTurn: undefined,
    idleTold: false,
    recent: [],
    agents: new Map(),
    outstanding: [],
    outbound: [],
    remoteSwarms: [],
    peers: {},
    endings: [],
    notified: undefined,
    replies: undefined,
    held: undefined,
    copied: undefined,
    usage: undefined,
    budget: task.budget,
    adminBudget: undefined,
  };
}

export function evolve(state: TaskState, entry: Entry): void {
  state.number++;
  state.updatedAt = entry.at;
  switch (entry.t) {
    case "opened":
      throw new Error(`journal ${state.key} contains a second 'opened' entry at number ${state.number}`);
    case "sent":
      return sent(state, entry);
    case "turn":
      countUsage(state, entry);
      return turn(state, entry);
    case "turn_failed": {
      countUsage(state, entry);
      const agent = agentOf(state, entry.agent);
      const took = take(state, agent, entry.took);
      for (const mail of took) countStep(state, mail);
      rememberMail(agent, took, state.number);
      return;
    }
    case "result": {
      const agent = agentOf(state, entry.agent);
      if (entry.error !== undefined) agent.turn?.errors.push({ kind: entry.error, text: entry.content });
      if (entry.hides !== undefined) forget(agent, entry.hides);
      return settleCall(state, entry.agent, entry.call, entry.name, entry.ok, entry.content);
    }
    case "action_started": {
      const { turn } = agentOf(state, entry.agent);
      if (turn === undefined) return;
      const again = turn.running.findIndex(({ call }) => call.id === entry.call);
      const before = turn.running[again];
      if (before !== undefined) {
        turn.running[again] = { ...before, attempt: entry.attempt };
        return;
      }
      const call = turn.pending.shift();
      if (call === undefined) return;
      turn.running.push({ call, index: turn.calls.indexOf(call.id), attempt: entry.attempt });
      return;
    }
    case "action_finished": {
      const { turn } = agentOf(state, entry.agent);
      const content = withEditedArguments(turn, entry);
      if (turn !== undefined) {
        turn.running = turn.running.filter(({ call }) => call.id !== entry.call);
        turn.acted = true;
      }
      // After an action, messages do not count as repetitions of earlier ones.
      state.recent = [];
      return settleCall(state, entry.agent, entry.call, entry.name, entry.ok, content);
    }
    case "approval_asked": {
      const { turn } = agentOf(state, entry.agent);
      const call = turn?.pending.shift();
      if (call !== undefined) turn?.asked.push({ call, since: entry.at, expires: entry.expires });
      return;
    }
    case "approval_answered":
      return settleApproval(agentOf(state, entry.agent), entry);
    case "paused":
      countUsage(state, entry);
      state.status = "paused";
      state.ending = { number: state.number, message: entry.message };
      if (entry.reason !== undefined) state.held = entry.reason;
      return;
    case "completed":
      end(state, "completed", entry.message);
      if (entry.call !== undefined) {
        settleCall(state, entry.call.agent, entry.call.id, entry.call.name, true, "task completed");
      }
      return;
    case "failed":
      end(state, "failed", entry.message);
      if (entry.code === TASK_TIMEOUT) state.stoppedAt = state.number;
      state.error = { code: entry.code, message: entry.reason };
      return;
    case "cancelled":
      end(state, "cancelled", entry.message);
      state.stoppedAt = state.number;
      state.outbound = [];
      for (const agent of state.agents.values()) {
        agent.mailbox = [];
        agent.others = 0;
        agent.lent = undefined;
      }
      state.taken.clear();
      return;
    case "resumed":
      return resume(state, entry);
    case "step_limit":
      state.lastTurn = entry.notice;
      return;
    case "idle":
      state.idleTold = true;
      return;
    case "recovered": {
      const agent = agentOf(state, entry.agent);
      // Another message goes first now: it must not pay for the crashes of the one behind it.
      if (agent.recovering !== undefined && entry.number !== agent.recovering) agent.recoveries = 0;
      agent.recovering = entry.number;
      if (agent.parked) agent.parked = false;
      else agent.recoveries++;
      return;
    }
    case "parked":
      agentOf(state, entry.agent).parked = true;
      return;
    case "lent": {
      const agent = agentOf(state, entry.agent);
      agent.lent = { number: entry.number, attempt: entry.attempt };
      agent.lendings = entry.attempt;
      return;
    }
    case "released":
      agentOf(state, entry.agent).lent = undefined;
      return;
    case "carried":
      noteCarried(state, entry);
      state.outbound = state.outbound.filter(
        (out) => out.message.id !== entry.message || out.swarm !== entry.swarm,
      );
      addContributors(state, entry.contributors ?? []);
      return;
    case "contributed":
      addContributors(state, entry.contributors);
      return;
    case "remote_event":
      state.copied = { ...state.copied, [entry.swarm]: entry.id };
      return;
    case "compacted":
      return compact(agentOf(state, entry.agent), entry, state.number);
    case "approvers":
      state.approvers = entry.approvers;
      return;
    case "usage":
      return countUsage(state, entry);
    case "budget":
      if (entry.admin === true) state.adminBudget = { limits: entry.limits, agents: entry.agents ?? {} };
      else state.budget = changedLimits({}, entry.limits);
      return;
    case "redefined":
      state.definition = entry.definition;
      return;
    default:
      // Skipping an unknown entry would continue from a wrong state.
      throw unknownEntry(entry, state);
  }
}

function countUsage(state: TaskState, entry: Extract<Entry, { usage?: unknown }>): void {
  const used = usedIn(entry);
  if (used === undefined) return;
  const agent = agentOf(state, entry.agent);
  agent.usage = addTotals(agent.usage ?? NO_USAGE, used);
  state.usage = addTotals(state.usage ?? NO_USAGE, used);
}

function unknownEntry(entry: never, { key, number }: TaskState): Error {
  return new Error(
    `entry ${number} of journal ${key} has a kind that this version does not support: ${JSON.stringify(entry)}. ` +
      "It was written by a later version of Mailroom; use that one.",
  );
}

/** Builds the state from a journal. The first entry must be `opened`. */
export function fold(entries: Iterable<Entry>): TaskState | undefined {
  let state: TaskState | undefined;
  for (const entry of entries) {
    if (state !== undefined) evolve(state, entry);
    else if (entry.t === "opened") state = open(entry);
    else throw new Error(`a journal begins with 'opened', not with '${entry.t}'`);
  }
  return state;
}

/** Two messages with the same fingerprint count as a repetition. */
function fingerprint(entry: Pick<Sent, "message" | "to" | "remote">): string {
  const { sender, subject, body } = entry.message.message;
  const remote = entry.remote === undefined ? "" : `@${entry.remote.join()}`;
  return `${sender.address}\n${entry.to.join()}${remote}\n${subject}\n${body}`;
}

function sent(state: TaskState, entry: Sent): void {
  const { message } = entry;
  const sender = senderOf(message);
  const { number } = state;
  const tier = tierOf(message);
  const asker = trackRequests(state, entry)?.asker;
  for (const name of entry.to) {
    const agent = agentOf(state, name);
    if (!isPerson(sender)) agent.others++;
    enqueue(agent.mailbox, { number, message, tier, order: number, manual: entry.manual, asker });
    if (isError(message)) agent.errors++;
    if (message.msg_type === "interrupt" && agent.turn !== undefined) agent.turn.interrupted = true;
  }
  for (const swarm of entry.remote ?? []) {
    state.outbound.push({ message, swarm });
    if (!state.remoteSwarms.includes(swarm)) state.remoteSwarms.push(swarm);
  }
  if (entry.remote !== undefined && isEndingNotice(message)) {
    state.notified = [...(state.notified ?? []), ...entry.remote];
  }
  if (sender.address_type !== "system") {
    state.recent.push(fingerprint(entry));
    if (state.recent.length > REPETITION_WINDOW) state.recent.shift();
  }
  if (message.msg_type === "response" && isPerson(message.message.recipient) && state.status === "running") {
    const reply = { from: sender.address, body: message.message.body };
    state.replies = [...(state.replies ?? []), reply];
  }
  if (entry.remote !== undefined || isInterswarmAddress(sender.address, state.swarm))
    trackPeers(state, entry);
  if (message.message.subject === SYSTEM_SUBJECTS.help) {
    for (const name of entry.to) {
      const { turn } = agentOf(state, name);
      if (turn !== undefined) turn.helped = true;
    }
  }
  if (entry.call !== undefined) {
    settleCall(state, entry.call.agent, entry.call.id, entry.call.name, true, "message sent");
  }
}

function isError(message: MAILMessage): boolean {
  return senderOf(message).address_type === "system" && isErrorSubject(message.message.subject);
}

function turn(state: TaskState, entry: TurnTaken): void {
  const agent = agentOf(state, entry.agent);
  const took = take(state, agent, entry.took);
  for (const mail of took) countStep(state, mail);
  rememberMail(agent, took, state.number);
  const { text, reasoning, calls, memo } = entry;
  agent.history.push(
    text === undefined && reasoning === undefined && memo === undefined
      ? { kind: "answer", number: state.number, calls }
      : {
          kind: "answer",
          number: state.number,
          calls,
          ...(text !== undefined && { text }),
          ...(reasoning !== undefined && { reasoning }),
          ...(memo !== undefined && { memo }),
        },
  );
  const { breakpoints } = entry;
  const now =
    breakpoints === undefined ? calls.slice() : calls.filter((call) => !breakpoints.includes(call.id));
  if (breakpoints !== undefined) {
    agent.open.push(...calls.filter((call) => breakpoints.includes(call.id)));
  }
  if (now.length === 0) return;
  // `await_message` is evaluated after all other calls of the turn (decision B5).
  const pending = now.some(isAwait) ? [...now.filter((call) => !isAwait(call)), ...now.filter(isAwait)] : now;
  agent.turn = {
    number: state.number,
    calls: calls.map((call) => call.id),
    took,
    pending,
    running: [],
    toApprove: [...(entry.approvals ?? [])],
    asked: [],
    edited: [],
    acted: false,
    awaits: false,
    helped: false,
    interrupted: false,
    errors: [],
  } satisfies OngoingTurn;
}

function isAwait({ name }: AgentToolCall): boolean {
  return name === "await_message";
}

/** Removes messages from the mailbox. From then on they are consumed. */
function take(state: TaskState, agent: AgentState, numbers: readonly number[]): MailboxItem[] {
  const took = takeOut(agent, numbers);
  agent.lent = undefined;
  agent.recoveries = 0;
  agent.parked = false;
  agent.ownTurns++;
  for (const { message, number, asker } of took) {
    const sender = senderOf(message);
    if (!isPerson(sender)) agent.others--;
    else if (message.msg_type !== "request") state.taken.add(number);
    // A series of errors ends when the agent takes other mail, not when other mail waits: errors come before the mail of
    // agents, so that mail may wait forever.
    if (!isError(message)) agent.errors = 0;
    // What comes back from an agent that was consulted continues the work for the one that had asked.
    if (asker !== undefined) agent.onBehalfOf = asker;
    if (sender.address_type === "system") continue;
    agent.ownTurns = 0;
    if (message.msg_type !== "response") agent.onBehalfOf = askerOf(message);
    else agent.onBehalfOf ??= askerOf(message);
  }
  return took;
}

function askerOf(message: MAILMessage): Asker {
  const requestId = requestIdOf(message);
  const sender = senderOf(message);
  return requestId === undefined ? { sender } : { sender, requestId };
}

function takeOut(agent: AgentState, numbers: readonly number[]): MailboxItem[] {
  const [head] = agent.mailbox;
  if (head !== undefined && numbers.length === 1 && head.number === numbers[0]) {
    agent.mailbox.shift();
    return [head];
  }
  const took: MailboxItem[] = [];
  agent.mailbox = agent.mailbox.filter((mail) => {
    if (!numbers.includes(mail.number)) return true;
    took.push(mail);
    return false;
  });
  return took.sort((a, b) => numbers.indexOf(a.number) - numbers.indexOf(b.number));
}

function rememberMail(agent: AgentState, took: readonly MailboxItem[], number: number): void {
  for (const { message } of took) {
    // This subject only wakes the agent: the results are already in its history.
    if (message.message.subject === SYSTEM_SUBJECTS.actionCompleteBroadcast) continue;
    agent.history.push({ kind: "message", number, message });
  }
}

/** A step is a message from a user, admin or agent that an agent takes. A broadcast is one step (decision B8). */
function countStep(state: TaskState, { message }: MailboxItem): void {
  if (senderOf(message).address_type === "system") return;
  const toMany = message.msg_type === "broadcast" || message.msg_type === "interrupt";
  if (toMany) {
    if (state.stepped.has(message.id)) return;
    state.stepped.add(message.id);
  }
  state.steps++;
}

function settleCall(
  state: TaskState,
  name: string,
  callId: string,
  tool: string,
  ok: boolean,
  content: string,
): void {
  const agent = agentOf(state, name);
  addResult(agent.history, { kind: "result", number: state.number, callId, name: tool, ok, content });
  const { turn } = agent;
  if (turn !== undefined) {
    const at = turn.pending.findIndex((call) => call.id === callId);
    if (at === 0) turn.pending.shift();
    else if (at > 0) turn.pending.splice(at, 1);
    if (tool === "await_message" && ok) turn.awaits = true;
    if (turn.asked.length > 0) turn.asked = turn.asked.filter(({ call }) => call.id !== callId);
    if (turn.pending.length === 0 && turn.running.length === 0 && turn.asked.length === 0) {
      agent.turn = undefined;
    }
  }
  const open = agent.open.findIndex((call) => call.id === callId);
  if (open >= 0) agent.open.splice(open, 1);
}

/** An approved call is pending again, at its place among the calls that are left. */
function settleApproval({ turn }: AgentState, { call: id, decision, args }: ApprovalAnswered): void {
  const asked = turn?.asked.find(({ call }) => call.id === id);
  if (turn === undefined || asked === undefined) return;
  turn.acted = true;
  // Any other call keeps its place until its result.
  if (decision !== "approved") return;
  turn.asked = turn.asked.filter((other) => other !== asked);
  turn.toApprove = turn.toApprove.filter((other) => other !== id);
  if (args !== undefined) turn.edited.push(id);
  const place = turn.calls.indexOf(id);
  const at = turn.pending.findIndex((other) => isAwait(other) || turn.calls.indexOf(other.id) > place);
  const call = args === undefined ? asked.call : { ...asked.call, args };
  turn.pending.splice(at < 0 ? turn.pending.length : at, 0, call);
}

/** The agent called with other arguments, so its history says with which ones the action ran. */
function withEditedArguments(turn: OngoingTurn | undefined, { call: id, content }: ActionFinished): string {
  if (turn === undefined || !turn.edited.includes(id)) return content;
  const args = JSON.stringify(turn.running.find(({ call }) => call.id === id)?.call.args);
  return `approved with changed arguments: ${args}\n\n${content}`;
}

/** Results are in the order of their calls, whichever action ends first. */
function addResult(history: HistoryItem[], result: ResultItem): void {
  let answerAt = history.length - 1;
  while (history[answerAt]?.kind === "result") answerAt--;
  const answer = history[answerAt];
  const calls = answer?.kind === "answer" ? answer.calls : [];
  const placeOf = (item: HistoryItem | undefined) =>
    item?.kind === "result" ? calls.findIndex(({ id }) => id === item.callId) : -1;
  const place = placeOf(result);
  let at = history.length;
  while (place >= 0 && placeOf(history[at - 1]) > place) at--;
  if (at === history.length) history.push(result);
  else history.splice(at, 0, result);
}

/**
 * `ignore_broadcast` removes the broadcast from the history; the call and its result stay (decision B13,
 * [MAIL-TOOL-07]).
 */
function forget(agent: AgentState, messageIds: readonly string[]): void {
  agent.history = agent.history.filter(
    (item) => item.kind !== "message" || !messageIds.includes(item.message.id),
  );
}

function end(state: TaskState, status: "completed" | "failed" | "cancelled", message: Sent["message"]): void {
  state.status = status;
  state.ending = { number: state.number, message };
  state.endings.push(state.ending);
  state.error = undefined;
  state.lastTurn = undefined;
  state.deadline = undefined;
  state.outstanding = [];
  state.replies = undefined;
  state.held = undefined;
}

/** Mail that was waiting is placed behind the message that resumed the task (decision B6). */
function resume(state: TaskState, entry: Extract<Entry, { t: "resumed" }>): void {
  state.status = "running";
  state.notified = undefined;
  state.ending = undefined;
  state.held = undefined;
  state.error = undefined;
  state.lastTurn = undefined;
  state.deadline = undefined;
  if (entry.deadline !== undefined) state.deadline = entry.deadline;
  if (entry.maxSteps === null) state.maxSteps = undefined;
  else if (entry.maxSteps !== undefined) state.maxSteps = entry.maxSteps;
  state.steps = 0;
  state.stepped.clear();
  state.idleTold = false;
  state.recent = [];
  if (state.taken.size > 0) forgetTaken(state);
  for (const agent of state.agents.values()) {
    agent.errors = 0;
    agent.recoveries = 0;
    if (agent.others > 0 && agent.mailbox.some(isOfLastRound)) dropLastRound(agent);
    if (agent.others === 0) continue;
    const waiting = agent.mailbox;
    agent.mailbox = [];
    for (const mail of waiting) {
      if (!isFromPerson(mail.message)) {
        mail.tier = Math.max(mail.tier, 2);
        mail.order = state.number;
      }
      enqueue(agent.mailbox, mail);
    }
  }
}

/** Removes the numbers of messages that wait in no mailbox. */
function forgetTaken(state: TaskState): void {
  const waiting = new Set<number>();
  for (const { mailbox } of state.agents.values()) for (const { number } of mailbox) waiting.add(number);
  for (const number of state.taken) if (!waiting.has(number)) state.taken.delete(number);
}

function dropLastRound(agent: AgentState): void {
  const { lent } = agent;
  agent.mailbox = agent.mailbox.filter((mail) => !isOfLastRound(mail));
  agent.others = agent.mailbox.filter((mail) => !isFromPerson(mail.message)).length;
  // While this message counted as lent, no other message could be lent.
  if (agent.mailbox.every(({ number }) => number !== lent?.number)) agent.lent = undefined;
}

/** Removes the notices of idleness and of the step limit, which do not apply to the new round. */
function isOfLastRound({ message }: MailboxItem): boolean {
  const { subject } = message.message;
  return (
    senderOf(message).address_type === "system" &&
    (subject === SYSTEM_SUBJECTS.taskIdle || subject === SYSTEM_SUBJECTS.maximumStepsReached)
  );
}

function addContributors(state: TaskState, contributors: readonly string[]): void {
  for (const contributor of contributors) {
    if (!state.contributors.includes(contributor)) state.contributors.push(contributor);
  }
}

/** Removes results whose call was removed, because a history must not have a result without its call. */
function compact(agent: AgentState, { upTo, summary, keep = [] }: Compacted, number: number): void {
  const gone = new Set<string>();
  const requests = agent.history.filter(
    (item) => item.kind === "message" && item.number <= upTo && keep.includes(item.message.id),
  );
  const kept = agent.history.filter((item) => {
    if (item.kind === "result") return item.number > upTo && !gone.has(item.callId);
    const stays = item.number > upTo;
    if (item.kind === "answer") {
      // A later answer may use an id again; it then identifies the later call.
      for (const call of item.calls) stays ? gone.delete(call.id) : gone.add(call.id);
    }
    return stays;
  });
  const item = { kind: "summary", number: Math.min(upTo, number), text: summary } as const;
  agent.history = [...requests, item, ...kept];
}
