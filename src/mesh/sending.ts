/** Messages of ours: checked, committed to the outbox, and recognised when the same one is sent again. */
import { createHash } from "node:crypto";
import type { RowWrite } from "../engine/ports.js";
import { type MeshCore, type Outgoing, placeOf } from "./core.js";
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
  // One that is away for long does not keep the others from hearing.
  const { room, full } = byRoom(core, members);
  const sent =
    messageId === undefined || full.length === 0 ? [] : await core.parts.store.mesh.sentById(messageId);
  const hadIt = new Set(sent.map(({ recipientId }) => recipientId));
  const leftOut = full.filter((agentId) => !hadIt.has(agentId));
  if (leftOut.length > 0 && leftOut.length === members.length) {
    const { maxWaiting } = core.parts.options;
    throw new MeshError("overloaded", `${maxWaiting} messages already wait for ${leftOut.join(", ")}`);
  }
  const [id = ""] = await core.commit([], swarmId, [{ ...outgoing, to: room }]);
  const recipients = members.map(({ agentId }) => agentId).filter((agentId) => !leftOut.includes(agentId));
  return { messageId: id, recipients, ...(leftOut.length > 0 && { leftOut }) };
}

/** Several members may be behind one place. */
function byRoom(core: MeshCore, members: readonly Member[]) {
  const places = new Map<string, number>();
  const room: Member[] = [];
  const full: string[] = [];
  for (const member of members) {
    const place = placeOf(member);
    const before = places.get(place) ?? 0;
    if (core.isFull(member, before)) full.push(member.agentId);
    else {
      places.set(place, before + 1);
      room.push(member);
    }
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
  };
  return core.outgoingRows(swarm.id, outgoing).rows;
}

/** A UUID that is always the same for the same text: so that a repeated effort is recognised as the same message. */
export function derivedUuid(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
}
