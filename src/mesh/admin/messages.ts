/** Operations on messages: sending, reading, archiving and deleting. */
import { z } from "zod";
import { isUuid, MailroomError, unknownField } from "../../base/index.js";
import { BROADCAST } from "../identity/agent-id.js";
import { viewExtrasBriefly } from "../message/extras-view.js";
import type { MessageExtras } from "../message/types.js";
import { BOX_STATUSES, type BoxStatus, type QueuedMessage, type SentMessage } from "../messages.js";
import { findMessage } from "../ports.js";
import { replyExtras } from "../send/message.js";
import type { WaitingMessage } from "../send/waiting.js";
import { formatTime } from "../time.js";
import type { MeshRowWrite } from "../writes.js";
import { type AdminOperation, type AdminParts, operation, swarmNamed } from "./operation.js";

const swarm = z.string().min(1).optional();
const limit = z.number().int().min(1).max(100);
const OPEN_BOXES: readonly BoxStatus[] = ["unread", "read", "archived"];
/** Batch size of `archive_all`, which repeats until no message is left. */
const PAGE = 100;

/** Senders choose message ids, and imported messages keep the ids of other software. */
const messageId = z.string().min(1);

const EXTRAS = [
  "in_reply_to",
  "thread_id",
  "priority",
  "expires_at",
  "attachments",
  "references",
  "metadata",
] as const satisfies readonly (keyof MessageExtras)[];

/** The extra fields of the protocol; null means absent. The check of the message reports invalid values. */
const Extras = z
  .looseObject({})
  .superRefine((given, context) => {
    for (const name of Object.keys(given)) {
      if (EXTRAS.some((known) => known === name)) continue;
      context.addIssue({ code: "custom", message: unknownField(name, EXTRAS) });
    }
  })
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
    async ({ agent, reads }, args) => {
      const original = args.reply_to === undefined ? undefined : await found(reads, args.reply_to);
      const swarmId = original?.swarmId ?? swarmNamed(agent, args.swarm).id;
      const to = args.to ?? original?.senderId ?? BROADCAST;
      // The protocol cannot refer to an id of other software, so such a reply is sent without a reference.
      const replying = original !== undefined && isUuid(original.messageId) ? replyExtras(original) : {};
      const sent = await agent.send({
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
    async ({ agent, reads }, args) => {
      const messages = await reads.inbox({
        limit: args.limit,
        ...(args.swarm !== undefined && { swarmId: swarmNamed(agent, args.swarm).id }),
        ...(args.status !== "all" && { box: args.status }),
      });
      const unread = messages.filter(({ box }) => box === "unread");
      if (args.mark_read) await mark(agent, unread, "read", ["unread"]);
      return { count: messages.length, messages: messages.map(shown) };
    },
  ),
  count_messages: operation(z.object({ swarm }), async ({ agent, reads }, args) => {
    const counts = await reads.inboxCounts(swarmIdOf(agent, args.swarm));
    return { ...counts, total: Object.values(counts).reduce((sum, one) => sum + one, 0) };
  }),
  archive: operation(z.object({ message_id: messageId }), async ({ agent, reads }, args) => {
    const message = await found(reads, args.message_id);
    await mark(agent, [message], "archived", ["unread", "read"]);
    return { status: "archived", message_id: message.messageId };
  }),
  delete: operation(z.object({ message_id: messageId }), async ({ agent, reads }, args) => {
    const message = await found(reads, args.message_id);
    await mark(agent, [message], "deleted", OPEN_BOXES);
    return { status: "deleted", message_id: message.messageId };
  }),
  archive_all: operation(z.object({ swarm }), async ({ agent, reads }, args) => {
    const swarmId = swarmIdOf(agent, args.swarm);
    const within = swarmId === undefined ? {} : { swarmId };
    let archived = 0;
    for (const box of ["unread", "read"] as const) {
      let newest: string | undefined;
      for (;;) {
        const page = await reads.inbox({ limit: PAGE, box, ...within });
        // Messages that remain after a batch would make this loop endless, so stop instead.
        if (page.length === 0 || page[0]?.id === newest) break;
        newest = page[0]?.id;
        await mark(agent, page, "archived", [box]);
        archived += page.length;
      }
    }
    return { status: "archived", count: archived };
  }),
  sent: operation(z.object({ swarm, limit: limit.default(20) }), async ({ agent, reads }, args) => {
    const swarmId = swarmIdOf(agent, args.swarm);
    const messages = await reads.sent({ limit: args.limit, ...(swarmId !== undefined && { swarmId }) });
    const shown = await Promise.all(messages.map((message) => sentShown(agent, message)));
    return { swarm_id: swarmId ?? null, count: messages.length, messages: shown };
  }),
  retry: operation(
    z.object({ message_id: messageId.optional(), agent: z.string().min(1).optional() }),
    async ({ agent }, args) => ({ status: "retried", recipients: await agent.retry(selectionOf(args)) }),
  ),
  drop: operation(
    z.object({ message_id: messageId, agent: z.string().min(1).optional() }),
    async ({ agent }, args) => {
      const recipients = await agent.drop({ ...selectionOf(args), messageId: args.message_id });
      return { status: "dropped", message_id: args.message_id, recipients };
    },
  ),
  count_sent: operation(z.object({ swarm }), async ({ agent, reads }, args) => {
    const counts = await reads.sentCounts(swarmIdOf(agent, args.swarm));
    return { ...counts, total: Object.values(counts).reduce((sum, one) => sum + one, 0) };
  }),
} satisfies Record<string, AdminOperation>;

function swarmIdOf(agent: AdminParts["agent"], wanted: string | undefined): string | undefined {
  return wanted === undefined ? undefined : swarmNamed(agent, wanted).id;
}

async function found(reads: AdminParts["reads"], id: string): Promise<QueuedMessage> {
  const message = await findMessage(reads, id);
  if (message === undefined)
    throw new MailroomError("message_not_found", `message ${id} is not in the inbox`);
  return message;
}

async function mark(
  agent: AdminParts["agent"],
  messages: readonly QueuedMessage[],
  status: BoxStatus,
  from: readonly BoxStatus[],
): Promise<void> {
  const at = agent.context.now;
  const writes = messages.map(({ id }): MeshRowWrite => ({ kind: "mesh.box.mark", id, from, status, at }));
  if (writes.length > 0) await agent.context.commit(writes, "");
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
    extras: viewExtrasBriefly(message),
  };
}

/** A message without a final result waits: `sent` would look as if it had arrived. */
async function sentShown(agent: AdminParts["agent"], message: SentMessage) {
  const { messageId, recipientId, status } = message;
  const waiting = status === "sent" ? await agent.waitingFor(messageId, recipientId) : undefined;
  return {
    message_id: messageId,
    swarm_id: message.swarmId,
    recipient: recipientId,
    type: message.type,
    content: message.content,
    sent_at: formatTime(message.sentAt),
    status: waiting === undefined ? status : "waiting",
    error: message.error ?? null,
    ...(waiting !== undefined && waitingShown(waiting)),
  };
}

export function waitingShown({ since, attempts, nextAttempt, deadline, reason }: WaitingMessage) {
  return {
    since: formatTime(since),
    attempts,
    next_attempt: formatTime(nextAttempt),
    abandoned_at: deadline === undefined ? null : formatTime(deadline),
    reason: reason ?? null,
  };
}

function selectionOf(args: {
  readonly message_id?: string | undefined;
  readonly agent?: string | undefined;
}) {
  return {
    ...(args.message_id !== undefined && { messageId: args.message_id }),
    ...(args.agent !== undefined && { recipientId: args.agent }),
  };
}
