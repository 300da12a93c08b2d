/** Messages of ours: checked, committed to the outbox, and recognised when the same one is sent again. */
import { createHash } from "node:crypto";
import { RowConflictError, type RowWrite } from "../engine/ports.js";
import { MESH_QUEUE, type MeshCore, type Outgoing } from "./core.js";
import { MeshError } from "./errors.js";
import { BROADCAST } from "./identity/agent-id.js";
import { recipientsOf, swarmOf } from "./membership/operations.js";
import type { Member } from "./membership/types.js";
import { checkDraft } from "./message/build.js";
import { isUuid } from "./message/check.js";
import type { MessageExtras, MessageType } from "./message/types.js";
import type { QueuedMessage } from "./queue.js";

export interface SendInput {
  readonly swarmId: string;
  /** An agent of the swarm, or `broadcast` (default). */
  readonly to?: string;
  readonly content: string;
  readonly type?: Exclude<MessageType, "system">;
  readonly extras?: MessageExtras;
  /** Recognised when it is sent again: the message id to use. */
  readonly messageId?: string;
  readonly origin?: string;
}

export interface SentReceipt {
  readonly messageId: string;
  readonly recipients: readonly string[];
  /** Members for whom too much waits already: to them it was not sent. */
  readonly leftOut?: readonly string[];
}

/** @throws MeshError when it cannot be sent, or too much waits already. */
export async function sendMessage(core: MeshCore, input: SendInput): Promise<SentReceipt> {
  const { swarmId, to = BROADCAST, content, type = "message", extras, messageId, origin } = input;
  const swarm = swarmOf(core.view, swarmId);
  if (content === "") throw new MeshError("invalid_message", "a message must not be empty");
  if (messageId !== undefined && !isUuid(messageId)) {
    throw new MeshError("invalid_message", "a message id must be a UUID");
  }
  checkDraft({
    message_id: "",
    swarm_id: swarmId,
    recipient: to,
    type,
    content,
    ...(extras && { extras }),
  });
  const members = recipientsOf(swarm, core.id, to);
  const outgoing: Omit<Outgoing, "to"> = {
    recipient: to,
    type,
    content,
    ...(extras !== undefined && { extras }),
    ...(messageId !== undefined && { messageId }),
    ...(origin !== undefined && { origin }),
  };
  const deliver = async (recipients: readonly Member[]): Promise<SentReceipt> => {
    const [id = ""] = await core.commit([], swarmId, [{ ...outgoing, to: recipients }]);
    return { messageId: id, recipients: recipients.map(({ agentId }) => agentId) };
  };
  try {
    return await deliver(members);
  } catch (error) {
    if (!isOverloaded(error)) throw error;
    // One that is away for long does not keep the others from hearing.
    const { room, full } = await byRoom(core, members);
    if (room.length === 0) throw overloaded(error);
    const receipt = await deliver(room).catch((again: unknown) => {
      throw isOverloaded(again) ? overloaded(again) : again;
    });
    return { ...receipt, leftOut: full };
  }
}

function isOverloaded(error: unknown): error is RowConflictError {
  return error instanceof RowConflictError && error.kind === "outbox.enqueue";
}

function overloaded(cause: RowConflictError): MeshError {
  return new MeshError("overloaded", `too much waits to be sent: ${cause.reason}`, { cause });
}

/** Several members may be behind one place. */
async function byRoom({ parts }: MeshCore, members: readonly Member[]) {
  const waiting = await parts.store.outbox.waitingByTarget(MESH_QUEUE);
  const places = new Map<string, number>();
  const room: Member[] = [];
  const full: string[] = [];
  for (const member of members) {
    const { origin } = new URL(member.endpoint);
    const left = places.get(origin) ?? parts.options.maxWaiting - (waiting.get(origin) ?? 0);
    places.set(origin, left - 1);
    if (left > 0) room.push(member);
    else full.push(member.agentId);
  }
  return { room, full };
}

/** ASP: replies keep the thread, or begin one that is named after the message they answer. */
export function replyExtras(original: QueuedMessage): MessageExtras {
  return { in_reply_to: original.messageId, thread_id: original.threadId ?? original.messageId };
}

/** Nothing when the sender is no longer in the swarm. */
export function replyRows(
  core: MeshCore,
  original: QueuedMessage,
  content: string,
  messageId: string,
): readonly RowWrite[] | undefined {
  const swarm = core.view.swarms.get(original.swarmId);
  const member = swarm?.members.get(original.senderId);
  if (swarm === undefined || member === undefined) return undefined;
  const outgoing: Outgoing = {
    recipient: member.agentId,
    type: "message",
    content,
    to: [member],
    extras: replyExtras(original),
    messageId,
    unbounded: true,
  };
  return core.outgoingRows(swarm.id, outgoing).rows;
}

/** A UUID that is always the same for the same text: so that a repeated effort is recognised as the same message. */
export function derivedUuid(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
}
