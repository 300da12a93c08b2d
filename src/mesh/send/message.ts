/** Sends messages: checks them, commits them to the outbox, and detects repeated sends. */
import { createHash } from "node:crypto";
import { isUuid, MailroomError } from "../../base/index.js";
import type { RowWrite } from "../../journal/index.js";
import { deliveryTarget, type MeshContext, type Outgoing } from "../context.js";
import { BROADCAST } from "../identity/agent-id.js";
import { recipientsFor, requireSwarm } from "../membership/operations.js";
import type { Member } from "../membership/types.js";
import { checkUnsignedMessage } from "../message/build.js";
import type { MessageExtras, MessageType } from "../message/types.js";
import type { QueuedMessage } from "../messages.js";

export interface SendInput {
  readonly swarmId: string;
  /** A member of the swarm, or `broadcast` (default). */
  readonly to?: string;
  readonly content: string;
  readonly type?: Exclude<MessageType, "system">;
  readonly extras?: MessageExtras;
  /** The message id. Sending again with the same id has no effect. */
  readonly messageId?: string;
  readonly origin?: string;
}

export interface SentReceipt {
  readonly messageId: string;
  readonly recipients: readonly string[];
  /** Members that were skipped because too many messages are pending for them. */
  readonly leftOut?: readonly string[];
}

/** @throws MailroomError when the message is invalid, or too many messages are pending */
export async function sendMessage(context: MeshContext, input: SendInput): Promise<SentReceipt> {
  const { swarmId, to = BROADCAST, content, type = "message", extras, messageId, origin } = input;
  const swarm = requireSwarm(context.view, swarmId);
  if (content === "") throw new MailroomError("invalid_message", "the message must not be empty");
  if (messageId !== undefined && !isUuid(messageId)) {
    throw new MailroomError("invalid_message", "the message id must be a UUID");
  }
  checkUnsignedMessage({
    message_id: "",
    swarm_id: swarmId,
    recipient: to,
    type,
    content,
    ...(extras && { extras }),
  });
  const members = recipientsFor(swarm, context.id, to);
  const outgoing: Omit<Outgoing, "to"> = {
    recipient: to,
    type,
    content,
    ...(extras !== undefined && { extras }),
    ...(messageId !== undefined && { messageId }),
    ...(origin !== undefined && { origin }),
  };
  // A broadcast skips members whose queue is full, so that one unreachable member does not block the others.
  const { room, full } = byRoom(context, members);
  const sent =
    messageId === undefined || full.length === 0 ? [] : await context.parts.store.mesh.sentById(messageId);
  const hadIt = new Set(sent.map(({ recipientId }) => recipientId));
  const leftOut = full.filter((agentId) => !hadIt.has(agentId));
  if (leftOut.length > 0 && leftOut.length === members.length) {
    const { maxWaiting } = context.parts.options;
    throw new MailroomError(
      "overloaded",
      `${maxWaiting} messages are already pending for ${leftOut.join(", ")}`,
    );
  }
  const [id = ""] = await context.commit([], swarmId, [{ ...outgoing, to: room }]);
  const recipients = members.map(({ agentId }) => agentId).filter((agentId) => !leftOut.includes(agentId));
  return { messageId: id, recipients, ...(leftOut.length > 0 && { leftOut }) };
}

/** Several members may share a delivery target. */
function byRoom(context: MeshContext, members: readonly Member[]) {
  const places = new Map<string, number>();
  const room: Member[] = [];
  const full: string[] = [];
  for (const member of members) {
    const place = deliveryTarget(member);
    const before = places.get(place) ?? 0;
    if (context.isFull(member, before)) full.push(member.agentId);
    else {
      places.set(place, before + 1);
      room.push(member);
    }
  }
  return { room, full };
}

/** ASP: replies keep the thread, or start one that is named after the message they answer. */
export function replyExtras(original: QueuedMessage): MessageExtras {
  return { in_reply_to: original.messageId, thread_id: original.threadId ?? original.messageId };
}

/** Returns `undefined` when the sender is no longer a member of the swarm. */
export function replyRows(
  context: MeshContext,
  original: QueuedMessage,
  content: string,
  messageId: string,
): readonly RowWrite[] | undefined {
  const swarm = context.view.swarms.get(original.swarmId);
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
  return context.outgoingRows(swarm.id, outgoing).rows;
}

/** Derives a UUID from a text, so that a repeated attempt is recognized as the same message. */
export function derivedUuid(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
}
