/** Operations on messages: sending, reading, and putting away. */
import { z } from "zod";
import { MeshError } from "../errors.js";
import { BROADCAST } from "../identity/agent-id.js";
import { carriedBriefly } from "../message/carried.js";
import { isUuid } from "../message/check.js";
import type { MessageExtras } from "../message/types.js";
import {
  BOX_STATUSES,
  type BoxStatus,
  messageNamed,
  type QueuedMessage,
  type SentMessage,
} from "../queue.js";
import { replyExtras } from "../sending.js";
import { formatTime } from "../time.js";
import type { MeshRowWrite } from "../writes.js";
import { type Operation, type OperatorParts, operation, swarmNamed } from "./operation.js";

const swarm = z.string().min(1).optional();
const limit = z.number().int().min(1).max(100);
const OPEN_BOXES: readonly BoxStatus[] = ["unread", "read", "archived"];
/** In one go of `archive_all`; it is repeated until none is left. */
const PAGE = 100;

/** Senders choose them, and what was imported has those of other software. */
const messageId = z.string().min(1);

/** The fields of the protocol, null being absent; what is wrong with one is said by the message's own check. */
const Extras = z
  .looseObject({})
  .transform(
    (given): MessageExtras => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)),
  );

export const MESSAGE_OPERATIONS = {
  send: operation(
    z.object({
      swarm,
      to: z.string().optional(),
      message: z.string(),
      type: z.enum(["message", "notification"]).default("message"),
      reply_to: messageId.optional(),
      extras: Extras.optional(),
    }),
    async ({ node, reads }, args) => {
      const original = args.reply_to === undefined ? undefined : await found(reads, args.reply_to);
      const swarmId = original?.swarmId ?? swarmNamed(node, args.swarm).id;
      const to = args.to ?? original?.senderId ?? BROADCAST;
      // The protocol cannot name a message by an id of other software: such a reply just goes to its sender.
      const replying = original !== undefined && isUuid(original.messageId) ? replyExtras(original) : {};
      const sent = await node.send({
        swarmId,
        to,
        content: args.message,
        type: args.type,
        extras: { ...replying, ...args.extras },
      });
      const { recipients, leftOut } = sent;
      return {
        status: "sent",
        message_id: sent.messageId,
        swarm_id: swarmId,
        recipient: to,
        recipients,
        ...(leftOut !== undefined && { left_out: leftOut }),
      };
    },
  ),
  messages: operation(
    z.object({
      swarm,
      limit: limit.default(10),
      status: z.enum([...BOX_STATUSES, "all"]).default("all"),
      mark_read: z.boolean().default(true),
    }),
    async ({ node, reads }, args) => {
      const messages = await reads.inbox({
        limit: args.limit,
        ...(args.swarm !== undefined && { swarmId: swarmNamed(node, args.swarm).id }),
        ...(args.status !== "all" && { box: args.status }),
      });
      const unread = messages.filter(({ box }) => box === "unread");
      if (args.mark_read) await mark(node, unread, "read", ["unread"]);
      return { count: messages.length, messages: messages.map(shown) };
    },
  ),
  count_messages: operation(z.object({ swarm }), async ({ node, reads }, args) => {
    const counts = await reads.inboxCounts(swarmIdOf(node, args.swarm));
    return { ...counts, total: Object.values(counts).reduce((sum, one) => sum + one, 0) };
  }),
  archive: operation(z.object({ message_id: messageId }), async ({ node, reads }, args) => {
    const message = await found(reads, args.message_id);
    await mark(node, [message], "archived", ["unread", "read"]);
    return { status: "archived", message_id: message.messageId };
  }),
  delete: operation(z.object({ message_id: messageId }), async ({ node, reads }, args) => {
    const message = await found(reads, args.message_id);
    await mark(node, [message], "deleted", OPEN_BOXES);
    return { status: "deleted", message_id: message.messageId };
  }),
  archive_all: operation(z.object({ swarm }), async ({ node, reads }, args) => {
    const swarmId = swarmIdOf(node, args.swarm);
    const within = swarmId === undefined ? {} : { swarmId };
    let archived = 0;
    for (const box of ["unread", "read"] as const) {
      let newest: string | undefined;
      for (;;) {
        const page = await reads.inbox({ limit: PAGE, box, ...within });
        // What is still there after it was archived cannot be: better some left than a loop without end.
        if (page.length === 0 || page[0]?.id === newest) break;
        newest = page[0]?.id;
        await mark(node, page, "archived", [box]);
        archived += page.length;
      }
    }
    return { status: "archived", count: archived };
  }),
  sent: operation(z.object({ swarm, limit: limit.default(20) }), async ({ node, reads }, args) => {
    const swarmId = swarmIdOf(node, args.swarm);
    const messages = await reads.sent({ limit: args.limit, ...(swarmId !== undefined && { swarmId }) });
    return { swarm_id: swarmId ?? null, count: messages.length, messages: messages.map(sentShown) };
  }),
  count_sent: operation(z.object({ swarm }), async ({ node, reads }, args) => {
    const counts = await reads.sentCounts(swarmIdOf(node, args.swarm));
    return { ...counts, total: Object.values(counts).reduce((sum, one) => sum + one, 0) };
  }),
} satisfies Record<string, Operation>;

function swarmIdOf(node: OperatorParts["node"], wanted: string | undefined): string | undefined {
  return wanted === undefined ? undefined : swarmNamed(node, wanted).id;
}

async function found(reads: OperatorParts["reads"], id: string): Promise<QueuedMessage> {
  const message = await messageNamed(reads, id);
  if (message === undefined)
    throw new MeshError("message_not_found", `there is no message ${id} in the inbox`);
  return message;
}

async function mark(
  node: OperatorParts["node"],
  messages: readonly QueuedMessage[],
  status: BoxStatus,
  from: readonly BoxStatus[],
): Promise<void> {
  const at = node.core.now;
  const writes = messages.map(({ id }): MeshRowWrite => ({ kind: "mesh.box.mark", id, from, status, at }));
  if (writes.length > 0) await node.core.commit(writes, "");
}

function shown(message: QueuedMessage) {
  return {
    message_id: message.messageId,
    swarm_id: message.swarmId,
    sender_id: message.senderId,
    recipient: message.recipientId ?? null,
    type: message.type,
    content: message.content,
    received_at: formatTime(message.receivedAt),
    status: message.box,
    in_reply_to: message.inReplyTo ?? null,
    thread_id: message.threadId ?? null,
    extras: carriedBriefly(message),
  };
}

function sentShown(message: SentMessage) {
  return {
    message_id: message.messageId,
    swarm_id: message.swarmId,
    recipient: message.recipientId,
    type: message.type,
    content: message.content,
    sent_at: formatTime(message.sentAt),
    status: message.status,
    error: message.error ?? null,
  };
}
