/**
 * A task's journal read as a conversation's (decisions F4). Nothing of it is stored: each entry of the task stands for
 * some entries of a conversation, and what they are follows from the entry, its number, and what the journal said up
 * to it. So the same entry gives the same turns and events whenever it is read.
 */
import { isEndingNotice } from "../../engine/deciding/interswarm.js";
import type { Entry, Opened, TurnTaken } from "../../engine/entries.js";
import type { InstanceId, TaskStatus } from "../../engine/ports.js";
import type { MAILAddress, MAILMessage } from "../../mail/message.js";
import { recipientsOf } from "../../mail/render.js";
import { CONVERSATION_JOURNAL_VERSION, type ConversationEntry, type Created } from "../domain/entries.js";
import { permissionsFor } from "../domain/roles.js";
import type { ConversationStatus, Participant, Turn } from "../domain/types.js";

/** The author of what no person and no agent has said. */
export const SYSTEM = "system";

/** Members of a task come and go with its mail, and it has no threads: nobody invites, removes or branches. */
const IN_A_TASK = { canInvite: false, canRemove: false, canCreateThreads: false } as const;
const OWNER = permissionsFor("initiator", IN_A_TASK);
const WORKER = permissionsFor("assistant", IN_A_TASK);

export const conversationIdOf = (key: string): string => `conv-${key}`;
export const keyOfConversation = (id: string): string | undefined => /^conv-([0-9a-f-]{36})$/.exec(id)?.[1];

const turnIdOf = (key: string, number: number): string => `turn-${key}-${number}`;
/** The journal number of the entry that a turn was made from. */
export const numberOfTurn = (id: string): number => Number(id.slice(id.lastIndexOf("-") + 1));

/** Whose tasks they are, as MAP calls them (decisions F1). */
export const ownerIdOf = ({ role, id }: InstanceId): string => `${role}:${id}`;

/** What earlier entries say that later ones do not repeat. Everything is set once, so it holds for any earlier number. */
export interface Memory {
  readonly key: string;
  readonly instance: InstanceId;
  /** Participants by the number of the entry that brought them in. */
  readonly since: Map<string, number>;
  /** Requests by their id: the turn that a response answers. */
  readonly requests: Map<string, number>;
  /** Tool calls by agent and id: the entry that has their arguments. */
  readonly asked: Map<string, number>;
  /** Messages that made an ended task go on: the journal says so in the entry after them, a conversation before. */
  readonly resuming: Set<number>;
  lastSent: number;
}

export function beginMemory({ task }: Opened): Memory {
  const { key, instance } = task;
  return {
    key,
    instance,
    since: new Map([[ownerIdOf(instance), 1]]),
    requests: new Map(),
    asked: new Map(),
    resuming: new Set(),
    lastSent: 0,
  };
}

/** Takes note of an entry. Entries come in order, each once, and those that were decided together before any of them is derived. */
export function remember(memory: Memory, number: number, entry: Entry): void {
  const message = messageOf(entry);
  if (message !== undefined) {
    for (const id of partiesOf(entry, message)) if (!memory.since.has(id)) memory.since.set(id, number);
    if (message.msg_type === "request" && !memory.requests.has(message.message.request_id)) {
      memory.requests.set(message.message.request_id, number);
    }
  }
  if (entry.t === "sent") memory.lastSent = number;
  if (entry.t === "resumed" && memory.lastSent === number - 1) memory.resuming.add(number - 1);
  if (entry.t !== "turn") return;
  for (const { id } of entry.calls) memory.asked.set(callKey(entry.agent, id), number);
}

/** Where the arguments of the entry's tool call stand, if it is the end of one. */
export function askedBy(memory: Memory, entry: Entry): number | undefined {
  if (entry.t === "action_finished" || (entry.t === "result" && entry.breakpoint === true)) {
    return memory.asked.get(callKey(entry.agent, entry.call));
  }
  return undefined;
}

/** What an entry of a task is in its conversation. `asked` is the entry that `askedBy` names. */
export function derive(
  memory: Memory,
  number: number,
  entry: Entry,
  asked: TurnTaken | undefined,
): ConversationEntry[] {
  const { at } = entry;
  const derived: ConversationEntry[] = entry.t === "opened" ? [created(entry)] : [];
  for (const [id, since] of memory.since) {
    if (since === number) derived.push(joined(memory, id, at));
  }
  // Decisions F4: the first turn of a task that goes on says so.
  const early = memory.resuming.has(number);
  const moved = entry.t === "resumed" && memory.resuming.has(number - 1);
  if (early || (entry.t === "resumed" && !moved)) {
    derived.push({ t: "status", at, status: "active", by: SYSTEM });
  }
  if (early) derived.push({ t: "turn", at, turn: resumption(memory, number + 1, at) });
  const turn = moved ? undefined : turnOf(memory, number, entry, asked);
  if (turn !== undefined) derived.push({ t: "turn", at, turn });
  switch (entry.t) {
    case "paused":
      derived.push({ t: "status", at, status: "paused", by: entry.agent });
      break;
    case "completed":
      derived.push({ t: "closed", at, by: authorOf(entry.message.message.sender) });
      break;
    case "failed":
    case "cancelled":
      derived.push({ t: "closed", at, by: SYSTEM, reason: reasonOf(entry) });
      // A closing is a completion unless more is said.
      derived.push({ t: "status", at, status: "failed", by: SYSTEM });
      break;
    default:
  }
  return derived;
}

/** Decisions F4. The exact word is in `metadata.task_status`. */
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

/** Decisions F4: a task of another swarm that ours has a part in is a conversation between agents. */
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

function joined(memory: Memory, id: string, at: number): ConversationEntry {
  const owner = id === ownerIdOf(memory.instance);
  const participant: Participant = owner
    ? {
        id,
        type: memory.instance.role === "swarm" ? "system" : "user",
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

/** The turn that an entry is, wherever it stands. */
export function turnOf(
  memory: Memory,
  number: number,
  entry: Entry,
  asked: TurnTaken | undefined,
): Turn | undefined {
  const common = {
    id: turnIdOf(memory.key, number),
    conversationId: conversationIdOf(memory.key),
    timestamp: entry.at,
    status: "complete",
  } as const;
  const message = messageOf(entry);
  if (message !== undefined) return { ...common, ...messageTurn(memory, message) };
  switch (entry.t) {
    case "resumed":
      return resumption(memory, number, entry.at);
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

function resumption({ key }: Memory, number: number, at: number): Turn {
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

/** The seed knows two sources; what is not a message was at least said on purpose. */
const EXPLICIT = { type: "explicit", method: "mail/turn" } as const;

function messageTurn(memory: Memory, envelope: MAILMessage) {
  const { message, msg_type, id } = envelope;
  const answered =
    envelope.msg_type === "response" ? memory.requests.get(envelope.message.request_id) : undefined;
  return {
    participant: authorOf(message.sender),
    contentType: "text",
    content: { text: message.body },
    source: { type: "intercepted", messageId: id },
    ...(answered !== undefined && { inReplyTo: turnIdOf(memory.key, answered) }),
    metadata: {
      subject: message.subject,
      msg_type,
      to: recipientsOf(envelope).map(({ address }) => address),
      ...(message.sender.address_type === "system" && { internal: true }),
    },
  } as const;
}

/** The MAIL message that an entry brings, if it brings one. */
function messageOf(entry: Entry): MAILMessage | undefined {
  switch (entry.t) {
    case "sent":
      // That the task has ended is told to other swarms in the words of the ending, which is a turn of its own.
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

/** Agents that write or are written to. The owner is there from the beginning, and the system is nobody. */
function partiesOf(entry: Entry, { message: { sender } }: MAILMessage): string[] {
  const author = sender.address_type === "system" ? [] : [authorOf(sender)];
  return entry.t === "sent" ? [...author, ...entry.to] : author;
}

/** Only a name: who may see or write is decided by whose task it is, never by what an author is called. */
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
