/**
 * Reads a task's journal as a conversation's (decision F4). Nothing of it is stored: each entry of the task yields
 * entries of a conversation, determined by the entry, its number and the journal before it. So the same entry gives
 * the same turns and events whenever it is read.
 */

import type { Entry, InstanceId, Opened, TaskStatus, TurnTaken } from "../../engine/index.js";
import type { MAILAddress, MAILMessage } from "../../mail/index.js";
import { isEndingNotice, recipientsOf } from "../../mail/index.js";
import {
  CONVERSATION_JOURNAL_VERSION,
  type ConversationEntry,
  type Created,
  type OpenCall,
} from "../rules/entries.js";
import { permissionsFor } from "../rules/roles.js";
import type { ConversationStatus, Participant, Turn } from "../rules/types.js";

/** The author of turns that come from neither a user nor an agent. */
export const SYSTEM = "system";

/**
 * Membership of a task follows its mail, and it has no threads: nothing can be invited, removed or branched.
 */
const IN_A_TASK = { canInvite: false, canRemove: false, canCreateThreads: false } as const;
const OWNER = permissionsFor("initiator", IN_A_TASK);
const WORKER = permissionsFor("assistant", IN_A_TASK);

export const conversationIdOf = (key: string): string => `conv-${key}`;
export const keyOfConversation = (id: string): string | undefined => /^conv-([0-9a-f-]{36})$/.exec(id)?.[1];

const turnIdOf = (key: string, number: number): string => `turn-${key}-${number}`;
/** The journal number of the entry that a turn was made from. */
export const numberOfTurn = (id: string): number => Number(id.slice(id.lastIndexOf("-") + 1));

/** The participant id of a task's owner (decision F1). */
export const ownerIdOf = ({ role, id }: InstanceId): string => `${role}:${id}`;

/**
 * Facts from earlier entries that later entries need. Each is set once, so it is valid for any earlier
 * number.
 */
export interface DerivationState {
  readonly key: string;
  readonly instance: InstanceId;
  /** Participants by the number of the entry that added them. */
  readonly since: Map<string, number>;
  /** Requests by id: the number of the turn that a response answers. */
  readonly requests: Map<string, number>;
  /** Tool calls by agent and id: the number of the entry that holds their arguments. */
  readonly asked: Map<string, number>;
  /**
   * Messages that resumed an ended task. The journal records that after the message, a conversation before
   * it.
   */
  readonly resuming: Set<number>;
  lastSent: number;
  /** Calls that wait for a user, by agent and id. */
  readonly open: Map<string, OpenCall>;
  /** Calls that wait for approval. */
  toApprove: readonly OpenCall[];
}

export function beginDerivation({ task }: Opened): DerivationState {
  const { key, instance } = task;
  return {
    key,
    instance,
    since: new Map([[ownerIdOf(instance), 1]]),
    requests: new Map(),
    asked: new Map(),
    resuming: new Set(),
    lastSent: 0,
    open: new Map(),
    toApprove: [],
  };
}

/**
 * Records the facts of an entry. Called once per entry, in order, for a whole batch before any of it is
 * derived.
 */
export function remember(derivation: DerivationState, number: number, entry: Entry): void {
  const message = messageOf(entry);
  if (message !== undefined) {
    for (const id of partiesOf(entry, message))
      if (!derivation.since.has(id)) derivation.since.set(id, number);
    if (message.msg_type === "request" && !derivation.requests.has(message.message.request_id)) {
      derivation.requests.set(message.message.request_id, number);
    }
  }
  if (entry.t === "sent") derivation.lastSent = number;
  if (entry.t === "resumed" && derivation.lastSent === number - 1) derivation.resuming.add(number - 1);
  noteOpenCalls(derivation, entry);
  if (entry.t !== "turn") return;
  for (const { id } of entry.calls) derivation.asked.set(callKey(entry.agent, id), number);
}

function noteOpenCalls(derivation: DerivationState, entry: Entry): void {
  const { open } = derivation;
  switch (entry.t) {
    case "paused":
      // Each pause for approval lists all calls that wait for it.
      derivation.toApprove = (entry.approvals ?? []).map(openCall);
      for (const call of entry.calls) open.set(callKey(entry.agent, call.id), openCall(call));
      return;
    case "result":
      if (entry.breakpoint === true) open.delete(callKey(entry.agent, entry.call));
      return;
    case "resumed":
      derivation.toApprove = [];
      return;
    case "completed":
    case "failed":
    case "cancelled":
      open.clear();
      derivation.toApprove = [];
      return;
    default:
  }
}

export function openCall({ id, name, args }: { id: string; name: string; args: unknown }): OpenCall {
  return { callId: id, name, arguments: args };
}

/** The number of the entry that holds the arguments, if this entry ends a tool call. */
export function askedBy(derivation: DerivationState, entry: Entry): number | undefined {
  if (entry.t === "action_finished" || (entry.t === "result" && entry.breakpoint === true)) {
    return derivation.asked.get(callKey(entry.agent, entry.call));
  }
  return undefined;
}

/** The conversation entries of a task's entry. `asked` is the entry that `askedBy` names. */
export function derive(
  derivation: DerivationState,
  number: number,
  entry: Entry,
  asked: TurnTaken | undefined,
): ConversationEntry[] {
  const { at } = entry;
  const derived: ConversationEntry[] = entry.t === "opened" ? [created(entry)] : [];
  for (const [id, since] of derivation.since) {
    if (since === number) derived.push(joined(derivation, id, at));
  }
  // The first turn of a resumed task says so (decision F4).
  const early = derivation.resuming.has(number);
  const moved = entry.t === "resumed" && derivation.resuming.has(number - 1);
  if (early || (entry.t === "resumed" && !moved)) {
    derived.push({ t: "status", at, status: "active", by: SYSTEM });
  }
  if (early) derived.push({ t: "turn", at, turn: resumption(derivation, number + 1, at) });
  const turn = moved ? undefined : turnOf(derivation, number, entry, asked);
  if (turn !== undefined) derived.push({ t: "turn", at, turn });
  switch (entry.t) {
    case "paused":
      derived.push({
        t: "status",
        at,
        status: "paused",
        by: entry.agent,
        ...(entry.reason !== undefined && { reason: entry.reason }),
        ...(entry.calls.length > 0 && { openCalls: entry.calls.map(openCall) }),
        ...(entry.approvals !== undefined && { approvals: entry.approvals.map(openCall) }),
      });
      break;
    case "completed":
      derived.push({ t: "closed", at, by: authorOf(entry.message.message.sender) });
      break;
    case "failed":
    case "cancelled":
      derived.push({ t: "closed", at, by: SYSTEM, reason: reasonOf(entry) });
      // A close entry without a status means completion.
      derived.push({ t: "status", at, status: "failed", by: SYSTEM });
      break;
    default:
  }
  return derived;
}

/** Maps the task's status to a conversation's; the exact word is in `metadata.task_status` (decision F4). */
export function statusOfTask(status: TaskStatus): ConversationStatus {
  switch (status) {
    case "running":
      return "active";
    case "paused":
    case "completed":
      return status;
    case "failed":
    case "cancelled":
      return "failed";
    default:
      return status satisfies never;
  }
}

/** A task of another swarm that this one works on is a conversation between agents (decision F4). */
export function typeOfTask({ role }: InstanceId): "user-session" | "multi-agent" {
  return role === "swarm" ? "multi-agent" : "user-session";
}

function created({ at, task }: Opened): Created {
  return {
    t: "created",
    v: CONVERSATION_JOURNAL_VERSION,
    at,
    conversation: {
      id: conversationIdOf(task.key),
      type: typeOfTask(task.instance),
      createdBy: ownerIdOf(task.instance),
      metadata: { task_id: task.taskId, task_owner: task.owner, swarm: task.swarm },
      space: "",
    },
    founders: 1,
  };
}

function joined(derivation: DerivationState, id: string, at: number): ConversationEntry {
  const owner = id === ownerIdOf(derivation.instance);
  const participant: Participant = owner
    ? {
        id,
        type: derivation.instance.role === "swarm" ? "system" : "user",
        role: "initiator",
        joinedAt: at,
        permissions: OWNER,
      }
    : {
        id,
        type: "agent",
        role: "assistant",
        joinedAt: at,
        permissions: WORKER,
        agentInfo: { agentId: id, name: id },
      };
  return { t: "joined", at, by: owner ? id : SYSTEM, participant };
}

/** Content type of decisions on calls that wait for approval, as they are sent and shown. */
export const APPROVAL = "x-approval";

/** The turn of an entry, if it has one. */
export function turnOf(
  derivation: DerivationState,
  number: number,
  entry: Entry,
  asked: TurnTaken | undefined,
): Turn | undefined {
  const common = {
    id: turnIdOf(derivation.key, number),
    conversationId: conversationIdOf(derivation.key),
    timestamp: entry.at,
    status: "complete",
  } as const;
  const message = messageOf(entry);
  if (message !== undefined) return { ...common, ...messageTurn(derivation, message) };
  switch (entry.t) {
    case "resumed":
      return resumption(derivation, number, entry.at);
    case "approval_answered":
      return {
        ...common,
        participant: entry.agent,
        contentType: APPROVAL,
        content: {
          callId: entry.call,
          name: entry.name,
          decision: entry.decision,
          ...(entry.by !== undefined && { by: entry.by }),
          ...(entry.args !== undefined && { arguments: entry.args }),
          ...(entry.reason !== undefined && { reason: entry.reason }),
        },
        source: EXPLICIT,
        metadata: {},
      };
    case "result":
    case "action_finished": {
      if (entry.t === "result" && entry.breakpoint !== true) return undefined;
      const call = asked?.calls.find(({ id }) => id === entry.call);
      return {
        ...common,
        status: entry.ok ? "complete" : "failed",
        participant: entry.agent,
        contentType: "x-tool-call",
        content: {
          callId: entry.call,
          name: entry.name,
          ...(call !== undefined && { arguments: call.args }),
          ok: entry.ok,
          result: entry.content,
        },
        source: EXPLICIT,
        metadata: { internal: true },
      };
    }
    default:
      return undefined;
  }
}

function resumption({ key }: DerivationState, number: number, at: number): Turn {
  return {
    id: turnIdOf(key, number),
    conversationId: conversationIdOf(key),
    timestamp: at,
    status: "complete",
    participant: SYSTEM,
    contentType: "event",
    content: { event: "task_resumed" },
    source: EXPLICIT,
    metadata: {},
  };
}

/** The protocol has two sources [MAP-CONV-04]; everything that is not a message counts as explicit. */
const EXPLICIT = { type: "explicit", method: "mail/turn" } as const;

function messageTurn(derivation: DerivationState, envelope: MAILMessage) {
  const { message, msg_type, id } = envelope;
  const answered =
    envelope.msg_type === "response" ? derivation.requests.get(envelope.message.request_id) : undefined;
  return {
    participant: authorOf(message.sender),
    contentType: "text",
    content: { text: message.body },
    source: { type: "intercepted", messageId: id },
    ...(answered !== undefined && { inReplyTo: turnIdOf(derivation.key, answered) }),
    metadata: {
      subject: message.subject,
      msg_type,
      to: recipientsOf(envelope).map(({ address }) => address),
      ...(message.sender.address_type === "system" && { internal: true }),
    },
  } as const;
}

/** The MAIL message of an entry, if it has one. */
function messageOf(entry: Entry): MAILMessage | undefined {
  switch (entry.t) {
    case "sent":
      // The notice of the ending to other swarms repeats the text of the ending, which is a turn of its own.
      return entry.to.length === 0 && isEndingNotice(entry.message) ? undefined : entry.message;
    case "paused":
    case "completed":
    case "failed":
    case "cancelled":
      return entry.message;
    default:
      return undefined;
  }
}

/** Agents that send or receive. The owner is a member from the start, and the system is not a member. */
function partiesOf(entry: Entry, { message: { sender } }: MAILMessage): string[] {
  const author = sender.address_type === "system" ? [] : [authorOf(sender)];
  return entry.t === "sent" ? [...author, ...entry.to] : author;
}

/** Only a display name: access depends on the task's owner, never on an author's name. */
function authorOf({ address_type, address }: MAILAddress): string {
  switch (address_type) {
    case "agent":
      return address;
    case "system":
      return SYSTEM;
    case "user":
    case "admin":
      return `${address_type}:${address}`;
    default:
      return address_type satisfies never;
  }
}

function reasonOf(entry: Extract<Entry, { t: "failed" | "cancelled" }>): string {
  return entry.t === "failed" ? entry.code : "cancelled";
}

function callKey(agent: string, call: string): string {
  return `${agent}\n${call}`;
}
