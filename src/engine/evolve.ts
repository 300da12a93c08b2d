/**
 * `evolve(state, entry)`: what a fact does to the picture of a task. Deterministic, no clock, no I/O, and no
 * decision: it never asks whether something is allowed, because the entry says that it happened.
 *
 * The state is written in place and belongs to the caller. Folding a journal always gives the same state.
 */
import { isInterswarmAddress } from "../mail/address.js";
import type { MAILMessage } from "../mail/message.js";
import { tierOf } from "../mail/priority.js";
import { SYSTEM_SUBJECTS } from "../mail/subjects.js";
import {
  type Entry,
  JOURNAL_VERSION,
  type Opened,
  type Sent,
  TASK_TIMEOUT,
  type TurnTaken,
} from "./entries.js";
import { noteAccepted, trackPeers, trackRequests } from "./requests.js";
import {
  type AgentState,
  agentOf,
  enqueue,
  isFromPerson,
  isPerson,
  type Mail,
  type OngoingTurn,
  senderOf,
  type TaskState,
} from "./state.js";
import { isErrorSubject } from "./system-messages.js";

/** How many of the last messages are remembered to recognise repetition (decisions B9). */
const REPETITION_WINDOW = 12;

export function open(entry: Opened): TaskState {
  const { task } = entry;
  if (entry.v > JOURNAL_VERSION) {
    throw new Error(
      `journal ${task.key} is of version ${entry.v}, and this version of Mailroom reads journals up to version ` +
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
    replies: undefined,
    held: undefined,
    copied: undefined,
  };
}

export function evolve(state: TaskState, entry: Entry): void {
  state.number++;
  state.updatedAt = entry.at;
  switch (entry.t) {
    case "opened":
      throw new Error(`journal ${state.key} says at number ${state.number} that the task was opened again`);
    case "sent":
      return sent(state, entry);
    case "turn":
      return turn(state, entry);
    case "turn_failed": {
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
      if (turn.running !== undefined) {
        turn.running = { ...turn.running, attempt: entry.attempt };
        return;
      }
      const call = turn.pending.shift();
      if (call === undefined) return;
      turn.running = { call, index: turn.calls.indexOf(call.id), attempt: entry.attempt };
      return;
    }
    case "action_finished": {
      const { turn } = agentOf(state, entry.agent);
      if (turn !== undefined) {
        turn.running = undefined;
        turn.acted = true;
      }
      // Something was done: what agents say after it is not a repetition of what they said before.
      state.recent = [];
      return settleCall(state, entry.agent, entry.call, entry.name, entry.ok, entry.content);
    }
    case "paused":
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
      if (entry.ok) noteAccepted(state, entry.message, entry.at);
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
      return compact(agentOf(state, entry.agent), entry.upTo, entry.summary, state.number);
    case "redefined":
      state.definition = entry.definition;
      return;
    default:
      // Skipping what is not understood would make a wrong picture of the task and go on from there.
      throw unknownEntry(entry, state);
  }
}

function unknownEntry(entry: never, { key, number }: TaskState): Error {
  return new Error(
    `entry ${number} of journal ${key} is of a kind that this version does not know: ${JSON.stringify(entry)}. ` +
      "It was written by a later version of Mailroom; use that one.",
  );
}

/** The state that a journal tells of. The first entry must be `opened`. */
export function fold(entries: Iterable<Entry>): TaskState | undefined {
  let state: TaskState | undefined;
  for (const entry of entries) {
    if (state !== undefined) evolve(state, entry);
    else if (entry.t === "opened") state = open(entry);
    else throw new Error(`a journal begins with 'opened', not with '${entry.t}'`);
  }
  return state;
}

/** What makes two messages the same for the guard against repetition. */
export function fingerprint(entry: Pick<Sent, "message" | "to" | "remote">): string {
  const { sender, subject, body } = entry.message.message;
  const remote = entry.remote === undefined ? "" : `@${entry.remote.join()}`;
  return `${sender.address}\n${entry.to.join()}${remote}\n${subject}\n${body}`;
}

function sent(state: TaskState, entry: Sent): void {
  const { message } = entry;
  const sender = senderOf(message);
  const { number } = state;
  const tier = tierOf(message);
  for (const name of entry.to) {
    const agent = agentOf(state, name);
    if (!isPerson(sender)) agent.others++;
    enqueue(agent.mailbox, { number, message, tier, order: number, manual: entry.manual });
    if (isError(message)) agent.errors++;
    if (message.msg_type === "interrupt" && agent.turn !== undefined) agent.turn.interrupted = true;
  }
  for (const swarm of entry.remote ?? []) {
    state.outbound.push({ message, swarm });
    if (!state.remoteSwarms.includes(swarm)) state.remoteSwarms.push(swarm);
  }
  if (sender.address_type !== "system") {
    state.recent.push(fingerprint(entry));
    if (state.recent.length > REPETITION_WINDOW) state.recent.shift();
  }
  trackRequests(state, entry);
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
  const waiting = entry.breakpoints ?? [];
  const now = calls.filter((call) => !waiting.includes(call.id));
  if (waiting.length > 0) agent.open.push(...calls.filter((call) => waiting.includes(call.id)));
  if (now.length === 0) return;
  // `await_message` is judged when everything else of the turn is done (decisions B5).
  const isAwait = (call: { name: string }) => call.name === "await_message";
  const pending = now.some(isAwait) ? [...now.filter((call) => !isAwait(call)), ...now.filter(isAwait)] : now;
  agent.turn = {
    number: state.number,
    calls: calls.map((call) => call.id),
    took,
    pending,
    running: undefined,
    acted: false,
    awaits: false,
    helped: false,
    interrupted: false,
    errors: [],
  } satisfies OngoingTurn;
}

/** Takes messages out of the mailbox; this is what makes them consumed. */
function take(state: TaskState, agent: AgentState, numbers: readonly number[]): Mail[] {
  const took: Mail[] = [];
  if (numbers.length === 1 && agent.mailbox[0]?.number === numbers[0]) {
    const head = agent.mailbox.shift();
    if (head !== undefined) took.push(head);
  } else {
    agent.mailbox = agent.mailbox.filter((mail) => {
      if (!numbers.includes(mail.number)) return true;
      took.push(mail);
      return false;
    });
    took.sort((a, b) => numbers.indexOf(a.number) - numbers.indexOf(b.number));
  }
  agent.lent = undefined;
  agent.recoveries = 0;
  agent.parked = false;
  agent.ownTurns++;
  for (const { message, number } of took) {
    const sender = senderOf(message);
    if (!isPerson(sender)) agent.others--;
    else if (message.msg_type !== "request") state.taken.add(number);
    // What breaks a row of errors is that the agent got to something else, not that something else waits for it:
    // errors go before the mail of agents, so it may wait for ever.
    if (!isError(message)) agent.errors = 0;
    if (sender.address_type === "system") continue;
    agent.ownTurns = 0;
    agent.onBehalfOf =
      message.msg_type === "request" ? { sender, requestId: message.message.request_id } : { sender };
  }
  return took;
}

function rememberMail(agent: AgentState, took: readonly Mail[], number: number): void {
  for (const { message } of took) {
    // This subject only wakes the agent: the results are in its memory already.
    if (message.message.subject === SYSTEM_SUBJECTS.actionCompleteBroadcast) continue;
    agent.history.push({ kind: "message", number, message });
  }
}

/** A step is a message from a person or an agent that an agent takes up; a broadcast is one (decisions B8). */
function countStep(state: TaskState, { message }: Mail): void {
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
  agent.history.push({ kind: "result", number: state.number, callId, name: tool, ok, content });
  const { turn } = agent;
  if (turn !== undefined) {
    const at = turn.pending.findIndex((call) => call.id === callId);
    if (at >= 0) turn.pending.splice(at, 1);
    if (tool === "await_message" && ok) turn.awaits = true;
    if (turn.pending.length === 0 && turn.running === undefined) agent.turn = undefined;
  }
  const open = agent.open.findIndex((call) => call.id === callId);
  if (open >= 0) agent.open.splice(open, 1);
}

/** `ignore_broadcast`: the broadcast leaves the memory, the call and its result stay (mail.md 14 #43). */
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

/** Decisions B6: what waited comes back behind the mail of the person who made the task go on. */
function resume(state: TaskState, entry: Extract<Entry, { t: "resumed" }>): void {
  state.status = "running";
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

/** Of messages that wait nowhere nobody will ask any more. */
function forgetTaken(state: TaskState): void {
  const waiting = new Set<number>();
  for (const { mailbox } of state.agents.values()) for (const { number } of mailbox) waiting.add(number);
  for (const number of state.taken) if (!waiting.has(number)) state.taken.delete(number);
}

function dropLastRound(agent: AgentState): void {
  const { lent } = agent;
  agent.mailbox = agent.mailbox.filter((mail) => !isOfLastRound(mail));
  agent.others = agent.mailbox.filter((mail) => !isFromPerson(mail.message)).length;
  // Nothing else could be lent as long as this counted as being in somebody's hands.
  if (agent.mailbox.every(({ number }) => number !== lent?.number)) agent.lent = undefined;
}

/** That nothing happened any more, or that the steps were used up, is not true of the round that begins. */
function isOfLastRound({ message }: Mail): boolean {
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

/** A call whose answer item goes takes its results along: a result without its call is no valid history. */
function compact(agent: AgentState, upTo: number, summary: string, number: number): void {
  const gone = new Set<string>();
  const kept = agent.history.filter((item) => {
    if (item.kind === "result") return item.number > upTo && !gone.has(item.callId);
    const stays = item.number > upTo;
    if (item.kind === "answer") {
      // An id may be used again by a later answer; it then means the later call.
      for (const call of item.calls) stays ? gone.delete(call.id) : gone.add(call.id);
    }
    return stays;
  });
  agent.history = [{ kind: "summary", number: Math.min(upTo, number), text: summary }, ...kept];
}
