/**
 * A task as it follows from its journal. Only `evolve` writes to it.
 *
 * What may be absent is `undefined`, not missing: objects that gain and lose properties are slow, and these are the
 * hottest there are.
 */
import type { AgentToolCall } from "../mail/calls.js";
import type { MAILAddress, MAILMessage } from "../mail/message.js";
import type { HistoryItem, HoldReason } from "./agent.js";
import type { ManualReply } from "./entries.js";
import type { InstanceId, TaskStatus } from "./ports.js";

/** A message that waits for an agent. */
export interface Mail {
  /** Journal number of the `sent` entry. */
  readonly number: number;
  readonly message: MAILMessage;
  /** MAIL: Priority and Ordering. */
  tier: number;
  /** Place within the tier: the journal number, until a resume puts it behind the user's mail. */
  order: number;
  readonly manual: ManualReply | undefined;
}

/** Something that went wrong in a turn and that the agent will be told about when the turn ends. */
export interface TurnError {
  readonly kind: "recipient" | "user_recipient" | "tool" | "action";
  readonly text: string;
}

/** An agent's turn after its answer, while calls are still to be carried out. */
export interface OngoingTurn {
  /** Journal number of the answer. Together with the index of a call it names the call for good. */
  readonly number: number;
  readonly took: readonly Mail[];
  /** Calls without a result, in the order in which they are carried out. */
  pending: AgentToolCall[];
  /** The action under way: always the call before `pending`. */
  running: { readonly call: AgentToolCall; readonly index: number; readonly attempt: number } | undefined;
  acted: boolean;
  awaits: boolean;
  /** Its `help` text is on the way and will wake the agent. */
  helped: boolean;
  interrupted: boolean;
  readonly errors: TurnError[];
  /** Ids of the answer's calls, in their order. */
  readonly calls: readonly string[];
}

export interface AgentState {
  mailbox: Mail[];
  /** How many of them nobody wrote who is a person. */
  others: number;
  history: HistoryItem[];
  turn: OngoingTurn | undefined;
  /** Breakpoint calls that wait for a person. */
  open: AgentToolCall[];
  lent: { readonly number: number; readonly attempt: number } | undefined;
  /** Counts every lending in this task, so that an answer to an older one is recognised. */
  lendings: number;
  /** Recoveries of the turn under way since the agent last got anywhere. */
  recoveries: number;
  /** Its turn was under way when the last process was closed in order: starting it again is no recovery. */
  parked: boolean;
  /** System error messages in a row. */
  errors: number;
  /** Turns in a row that nobody but the system's notices caused: the agent keeps itself busy. */
  ownTurns: number;
  /** Who is waiting for this agent: the sender of the last message it took that was not the system's. */
  onBehalfOf: { readonly sender: MAILAddress; readonly requestId?: string } | undefined;
}

/** A request that has not been answered. */
export interface OutstandingRequest {
  readonly requestId: string;
  /** Who asked, as `partyOf` writes it. */
  readonly from: string;
  readonly to: string;
  readonly remote: boolean;
  /** When the other swarm took a remote one over: from then on an answer is awaited (decisions E6). */
  acceptedAt?: number;
}

/** The agent of another swarm that this task last had to do with there. */
export interface Peer {
  /** `name@swarm` */
  readonly address: string;
  /** Its request, as long as it was not answered. */
  readonly requestId?: string;
  /** Of the last mail from there: how many swarms it had come through, and its journal number (decisions E9). */
  readonly hops?: number;
  readonly number?: number;
}

/** What an agent of another swarm answered to a person of ours. */
export interface Reply {
  readonly from: string;
  readonly body: string;
}

export interface Ending {
  readonly number: number;
  readonly message: MAILMessage;
}

export interface TaskState {
  readonly key: string;
  readonly instance: InstanceId;
  readonly taskId: string;
  readonly swarm: string;
  readonly owner: string;
  contributors: string[];
  entrypoint: string;
  definition: string;
  readonly manual: boolean;
  readonly createdAt: number;
  updatedAt: number;
  deadline: number | undefined;
  /** The journal's last number. */
  number: number;
  status: TaskStatus;
  /** Number of the last cancellation or time-out: no effect that was ordered before it begins after it. */
  stoppedAt: number;
  /** What ended or paused the task last: the message that its waiters get, and the error if it failed. */
  ending: Ending | undefined;
  error: { readonly code: string; readonly message: string } | undefined;
  /** What an agent needs before the task can go on, if it is paused for that. */
  held: HoldReason | undefined;
  maxSteps: number | undefined;
  steps: number;
  /** Ids of messages to several agents that were counted as a step already. */
  stepped: Set<string>;
  /** Numbers of messages from people to several agents that one of them has taken and others still have. */
  taken: Set<number>;
  /** Number of the notice that the step limit is reached: only the entrypoint's turn with it remains. */
  lastTurn: number | undefined;
  idleTold: boolean;
  /** Fingerprints of the last messages, newest last (decisions B9). */
  recent: string[];
  agents: Map<string, AgentState>;
  outstanding: OutstandingRequest[];
  /** Messages to other swarms that no `carried` entry has settled yet. */
  outbound: { readonly message: MAILMessage; readonly swarm: string }[];
  /** Swarms that local agents addressed. */
  remoteSwarms: string[];
  /** By swarm. */
  peers: Readonly<Record<string, Peer>>;
  /** Completions are in the memory of every agent; they are kept once and woven in when a history is read. */
  endings: Ending[];
  /** Answers to a person's mail to other swarms, in this round. */
  replies: Reply[] | undefined;
  /** By swarm: the last of its events that was copied into this journal (decisions E7). */
  copied: Readonly<Record<string, string>> | undefined;
}

export function newAgentState(): AgentState {
  return {
    mailbox: [],
    others: 0,
    history: [],
    turn: undefined,
    open: [],
    lent: undefined,
    lendings: 0,
    recoveries: 0,
    parked: false,
    errors: 0,
    ownTurns: 0,
    onBehalfOf: undefined,
  };
}

export function agentOf(state: TaskState, name: string): AgentState {
  let agent = state.agents.get(name);
  if (agent === undefined) {
    agent = newAgentState();
    state.agents.set(name, agent);
  }
  return agent;
}

/** MAIL: Priority and Ordering. */
export function comesBefore(a: Mail, b: Mail): boolean {
  if (a.tier !== b.tier) return a.tier < b.tier;
  if (a.order !== b.order) return a.order < b.order;
  return a.number < b.number;
}

export function enqueue(mailbox: Mail[], mail: Mail): void {
  let at = mailbox.length;
  while (at > 0) {
    const before = mailbox[at - 1];
    if (before === undefined || comesBefore(before, mail)) break;
    at--;
  }
  mailbox.splice(at, 0, mail);
}

/** Agents go by their name; people, whose ids might be the same, with their kind before it. */
export function partyOf({ address_type, address }: MAILAddress): string {
  return address_type === "agent" ? address : `${address_type}:${address}`;
}

export function senderOf(message: MAILMessage): MAILAddress {
  return message.message.sender;
}

/** Written by a person: never put aside when a task ends (decisions B6). */
export function isFromPerson(message: MAILMessage): boolean {
  return isPerson(senderOf(message));
}

export function isPerson({ address_type }: MAILAddress): boolean {
  return address_type === "user" || address_type === "admin";
}

/** Whether any agent has taken a message that waits in this mailbox; of one to many, others may still have it. */
export function wasTaken(state: TaskState, { number }: Mail): boolean {
  return state.taken.has(number);
}

/**
 * An agent's memory of the task: what it saw and did, and how the task ended whenever it did. An ending is never
 * put between a call and its result.
 */
export function historyOf(state: TaskState, name: string): HistoryItem[] {
  const own = state.agents.get(name)?.history ?? [];
  const endings = state.endings.filter(({ message }) => {
    const { address_type, address } = senderOf(message);
    // Whoever completed the task has its own call in memory.
    return address_type !== "agent" || address !== name;
  });
  if (endings.length === 0) return own.slice();
  const first = own[0];
  const compactedUpTo = first?.kind === "summary" ? first.number : 0;
  const woven: HistoryItem[] = [];
  let unanswered = 0;
  let next = 0;
  const weave = (before: number) => {
    for (
      let ending = endings[next];
      ending !== undefined && ending.number < before;
      ending = endings[++next]
    ) {
      if (ending.number > compactedUpTo) {
        woven.push({ kind: "message", number: ending.number, message: ending.message });
      }
    }
  };
  for (const item of own) {
    if (unanswered === 0) weave(item.number);
    woven.push(item);
    if (item.kind === "answer") unanswered += item.calls.length;
    else if (item.kind === "result") unanswered--;
  }
  if (unanswered === 0) weave(Number.POSITIVE_INFINITY);
  return woven;
}
