/**
 * The state of a task, built from its journal. Only `evolve` writes to it.
 *
 * Absent values are `undefined` rather than missing, because objects that gain and lose properties are slow and these are
 * used for every message.
 */
import type { AgentToolCall, MAILAddress, MAILMessage } from "../../mail/index.js";
import type { HistoryItem, HoldReason } from "../agent.js";
import type { InstanceId, TaskStatus } from "../ports.js";
import type { BudgetChange, BudgetLimits, UsageTotals } from "../usage.js";
import type { ManualReply, TurnError } from "./entries.js";

/** A message that waits for an agent. */
export interface MailboxItem {
  /** Journal number of the `sent` entry. */
  readonly number: number;
  readonly message: MAILMessage;
  /** MAIL: Priority and Ordering. */
  tier: number;
  /** Position within the tier: the journal number, until a resume places it behind the user's mail. */
  order: number;
  readonly manual: ManualReply | undefined;
  /** Of an answer: on whose behalf the recipient had asked. */
  readonly asker: Asker | undefined;
}

/** The sender of a message that an agent works on, and the id that an answer to it names. */
export interface Asker {
  readonly sender: MAILAddress;
  readonly requestId?: string;
}

export interface RunningAction {
  readonly call: AgentToolCall;
  /** Place of the call in the answer. */
  readonly index: number;
  readonly attempt: number;
}

export interface AskedCall {
  readonly call: AgentToolCall;
  readonly since: number;
  readonly expires: number | undefined;
}

/** An agent's turn after its answer, while calls remain to be executed. */
export interface OngoingTurn {
  /** Journal number of the answer. Together with the index of a call it identifies the call permanently. */
  readonly number: number;
  readonly took: readonly MailboxItem[];
  /** Calls without a result, in the order of execution. */
  pending: AgentToolCall[];
  /** The running actions, in the order in which they were started. */
  running: RunningAction[];
  /** Ids of calls that need approval and do not have it. */
  toApprove: string[];
  /** Calls that wait for approval. */
  asked: AskedCall[];
  /** Ids of calls whose arguments were changed by the person that approved them. */
  edited: string[];
  acted: boolean;
  awaits: boolean;
  /** Its `help` text has been sent and will wake the agent. */
  helped: boolean;
  interrupted: boolean;
  readonly errors: TurnError[];
  /** Ids of the answer's calls, in their order. */
  readonly calls: readonly string[];
}

export interface AgentState {
  mailbox: MailboxItem[];
  /** How many of them were not written by a user. */
  others: number;
  history: HistoryItem[];
  turn: OngoingTurn | undefined;
  /** Breakpoint calls that wait for a user. */
  open: AgentToolCall[];
  lent: { readonly number: number; readonly attempt: number } | undefined;
  /** Counts the lent messages of this task, so that an answer to an earlier attempt is detected. */
  lendings: number;
  /** Recoveries of the turn with the message `recovering`, since the agent last made progress. */
  recoveries: number;
  recovering: number | undefined;
  /** Its turn was running at an orderly shutdown: starting it again does not count as a recovery. */
  parked: boolean;
  /** System error messages in a row. */
  errors: number;
  /** Turns in a row that were caused only by the system's notices, without mail from another sender. */
  ownTurns: number;
  /** The sender that waits for this agent: that of the last request it took, or of the one it consulted others for. */
  onBehalfOf: Asker | undefined;
  /** What its model calls used in this task. */
  usage: UsageTotals | undefined;
}

/** A request that has not been answered. */
export interface OutstandingRequest {
  readonly requestId: string;
  /** The sender, as `partyOf` formats it. */
  readonly from: string;
  readonly to: string;
  readonly remote: boolean;
  /** On whose behalf it was asked. */
  readonly asker?: Asker;
  /** When the other swarm accepted a remote request: its answer is due from then on (decision E6). */
  acceptedAt?: number;
}

/** A message to another swarm whose delivery is not settled. */
export interface OutboundMessage {
  readonly message: MAILMessage;
  readonly swarm: string;
}

/** The agent of another swarm that this task last communicated with. */
export interface RemoteAgentLink {
  /** `name@swarm` */
  readonly address: string;
  /** Its request, until it is answered. */
  readonly requestId?: string;
  /** Of the last mail from that swarm: how many swarms it had passed through, and its journal number (decision E9). */
  readonly hops?: number;
  readonly number?: number;
}

/** The answer of an agent of another swarm to a local user. */
export interface Reply {
  readonly from: string;
  readonly body: string;
}

export interface TaskEnding {
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
  /** Who may answer for the owner; `undefined` until approvers are named. */
  approvers: readonly string[] | undefined;
  entrypoint: string;
  definition: string;
  readonly manual: boolean;
  readonly createdAt: number;
  updatedAt: number;
  deadline: number | undefined;
  /** The journal's last number. */
  number: number;
  status: TaskStatus;
  /** Number of the last cancellation or timeout. An action that was ordered before it must not start after it. */
  stoppedAt: number;
  /** What last ended or paused the task: the message that waiting callers get, and the error if it failed. */
  ending: TaskEnding | undefined;
  error: { readonly code: string; readonly message: string } | undefined;
  /** What an agent needs before the task can continue, if it is paused for that reason. */
  held: HoldReason | undefined;
  maxSteps: number | undefined;
  steps: number;
  /** Ids of messages to several agents that already counted as a step. */
  stepped: Set<string>;
  /** Numbers of users' messages to several agents that one agent has taken and others have not. */
  taken: Set<number>;
  /** Number of the notice that the step limit is reached. Only the entrypoint's turn with it remains. */
  lastTurn: number | undefined;
  idleTold: boolean;
  /** Fingerprints of the last messages, newest last (decision B9). */
  recent: string[];
  agents: Map<string, AgentState>;
  outstanding: OutstandingRequest[];
  /** Messages to other swarms that no `carried` entry has settled yet. */
  outbound: OutboundMessage[];
  /** Swarms that local agents addressed. */
  remoteSwarms: string[];
  /** By swarm. */
  peers: Readonly<Record<string, RemoteAgentLink>>;
  /** Completions are part of every agent's history. They are stored once and merged in when a history is read. */
  endings: TaskEnding[];
  /** Answers in this round to a user's mail to other swarms. */
  replies: Reply[] | undefined;
  /** Swarms that were notified of the end of this round. */
  notified: readonly string[] | undefined;
  /** By swarm: the last of its events that was copied into this journal (decision E7). */
  copied: Readonly<Record<string, string>> | undefined;
  /** What model calls used in this task. */
  usage: UsageTotals | undefined;
  /** Limits that the owner set. */
  budget: BudgetLimits | undefined;
  /** Limits that an admin set in place of the configured ones. */
  adminBudget: AdminBudget | undefined;
}

export interface AdminBudget {
  /** `null`: no limit, whatever is configured. */
  readonly limits: BudgetChange;
  /** By agent. */
  readonly agents: Readonly<Record<string, BudgetChange>>;
}

function newAgentState(): AgentState {
  return {
    mailbox: [],
    others: 0,
    history: [],
    turn: undefined,
    open: [],
    lent: undefined,
    lendings: 0,
    recoveries: 0,
    recovering: undefined,
    parked: false,
    errors: 0,
    ownTurns: 0,
    onBehalfOf: undefined,
    usage: undefined,
  };
}

/** The calls of a task that wait for approval. */
export function askedCalls(state: TaskState): (AskedCall & { readonly agent: string })[] {
  return [...state.agents].flatMap(([agent, { turn }]) =>
    (turn?.asked ?? []).map((asked) => ({ agent, ...asked })),
  );
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
export function comesBefore(a: MailboxItem, b: MailboxItem): boolean {
  if (a.tier !== b.tier) return a.tier < b.tier;
  if (a.order !== b.order) return a.order < b.order;
  return a.number < b.number;
}

export function enqueue(mailbox: MailboxItem[], mail: MailboxItem): void {
  let at = mailbox.length;
  while (at > 0) {
    const before = mailbox[at - 1];
    if (before === undefined || comesBefore(before, mail)) break;
    at--;
  }
  if (at === mailbox.length) mailbox.push(mail);
  else mailbox.splice(at, 0, mail);
}

/** Agents are identified by name. Users and admins have their kind as a prefix, because their ids could be equal. */
export function partyOf({ address_type, address }: MAILAddress): string {
  return address_type === "agent" ? address : `${address_type}:${address}`;
}

export function senderOf(message: MAILMessage): MAILAddress {
  return message.message.sender;
}

/** Whether a user or admin wrote the message. Such mail is never set aside when a task ends (decision B6). */
export function isFromPerson(message: MAILMessage): boolean {
  return isPerson(senderOf(message));
}

export function isPerson({ address_type }: MAILAddress): boolean {
  return address_type === "user" || address_type === "admin";
}

/** Whether an agent has taken a message that waits in this mailbox. A broadcast can wait in the mailboxes of others. */
export function wasTaken(state: TaskState, { number }: MailboxItem): boolean {
  return state.taken.has(number);
}

/**
 * An agent's history of the task: its messages, answers and results, and every ending of the task. An ending is never
 * placed between a call and its result.
 */
export function historyOf(state: TaskState, name: string): HistoryItem[] {
  const own = state.agents.get(name)?.history ?? [];
  const endings = state.endings.filter(({ message }) => {
    const { address_type, address } = senderOf(message);
    // The agent that completed the task has its own call in the history.
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
