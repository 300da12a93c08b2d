/** What waits for delivery, why, and the operator's control over it. */
import { MailroomError } from "../../base/index.js";
import { type Dispatcher, finish, type OutboxRetry, type StoredItem } from "../../outbox/index.js";
import { asideKey, deliveryKey, MESH_QUEUE, type MeshContext } from "../context.js";
import type { MeshRowWrite } from "../writes.js";
import { toOutboundMessage } from "./delivery.js";

/** Why and since when a message waits. Times are milliseconds since the epoch. */
export interface WaitingMessage {
  readonly messageId: string;
  readonly swarmId: string;
  readonly recipientId: string;
  readonly since: number;
  readonly attempts: number;
  readonly nextAttempt: number;
  readonly deadline?: number;
  /** Absent before the first attempt. */
  readonly reason?: string;
}

/** The messages that are delivered next, one for each recipient that something waits for. Oldest first. */
export async function firstWaiting({ parts }: MeshContext, limit: number): Promise<WaitingMessage[]> {
  const { outbox } = parts.store;
  const heads = await outbox.heads(MESH_QUEUE, 0, limit);
  const items = await Promise.all(heads.map(({ id }) => outbox.item(id)));
  return items.flatMap((item) => (item === undefined || item.outcome !== undefined ? [] : describe(item)));
}

/** `undefined` if the message does not wait. */
export async function waitingFor(
  context: MeshContext,
  messageId: string,
  recipientId: string,
): Promise<WaitingMessage | undefined> {
  const { outbox } = context.parts.store;
  const item = await findItem(context, messageId, recipientId);
  if (item === undefined) return undefined;
  const waiting = describe(item);
  if (waiting.reason !== undefined) return waiting;
  const first = await outbox.head(MESH_QUEUE, item.lane);
  const ahead = first === undefined || first.id === item.id ? undefined : await outbox.item(first.id);
  if (ahead === undefined) return waiting;
  const why = ahead.reason === undefined ? "" : `: ${ahead.reason}`;
  return { ...waiting, nextAttempt: ahead.dueAt, reason: `earlier messages are delivered first${why}` };
}

async function findItem(
  { parts }: MeshContext,
  messageId: string,
  recipientId: string,
): Promise<StoredItem | undefined> {
  const { outbox } = parts.store;
  for (const key of [deliveryKey(messageId, recipientId), asideKey(messageId, recipientId)]) {
    const item = await outbox.byDedupeKey(MESH_QUEUE, key);
    if (item !== undefined && item.outcome === undefined) return item;
  }
  return undefined;
}

function describe(item: StoredItem): WaitingMessage {
  const { draft, recipientId } = toOutboundMessage(item);
  return {
    messageId: draft.message_id,
    swarmId: draft.swarm_id,
    recipientId,
    since: item.createdAt,
    attempts: item.attempts,
    nextAttempt: item.dueAt,
    ...(item.deadlineAt !== undefined && { deadline: item.deadlineAt }),
    ...(item.reason !== undefined && { reason: item.reason }),
  };
}

export interface WaitingSelection {
  readonly messageId?: string;
  readonly recipientId?: string;
}

/** Retries what waits, now. Returns the recipients. */
export async function retryWaiting(
  context: MeshContext,
  dispatcher: Dispatcher,
  selection: WaitingSelection,
): Promise<readonly string[]> {
  const items = await selected(context, selection);
  const { now } = context;
  const rows = items.map(
    ({ id, attempts, reason = "", interrupted }): OutboxRetry => ({
      kind: "outbox.retry",
      id,
      attempts,
      dueAt: now,
      reason,
      uncertain: interrupted,
    }),
  );
  await context.parts.store.commit({ appends: [], rows });
  for (const target of new Set(items.map((item) => item.target))) dispatcher.retryNow(target);
  dispatcher.wake();
  return recipientsOf(items);
}

/** Abandons waiting messages. A message that is being sent at this moment may still arrive. Returns the recipients. */
export async function dropWaiting(
  context: MeshContext,
  dispatcher: Dispatcher,
  selection: WaitingSelection & { readonly messageId: string },
): Promise<readonly string[]> {
  const items = await selected(context, selection);
  const at = context.now;
  for (const item of items) {
    const outbound = toOutboundMessage(item);
    const { attempts } = item;
    const final = { outcome: "refused", attempts, at, reason: "dropped by the operator" } as const;
    const mark: MeshRowWrite = {
      kind: "mesh.sent.mark",
      messageId: outbound.draft.message_id,
      recipientId: outbound.recipientId,
      status: "failed",
      at,
      error: final.reason,
    };
    await context.commitOutcome(outbound, final, [finish(item.id, final), mark]);
    dispatcher.backlog.remove(item.target);
    // Its lane continues with the next message.
    dispatcher.retryNow(item.target);
  }
  return recipientsOf(items);
}

async function selected(
  context: MeshContext,
  { messageId, recipientId }: WaitingSelection,
): Promise<StoredItem[]> {
  const { store } = context.parts;
  if (messageId === undefined) {
    const heads = await store.outbox.heads(MESH_QUEUE, 0, MOST_HEADS);
    const items = await Promise.all(heads.map(({ id }) => store.outbox.item(id)));
    return items.flatMap((item) => {
      const isMeant =
        item?.outcome === undefined &&
        item !== undefined &&
        (recipientId === undefined || toOutboundMessage(item).recipientId === recipientId);
      return isMeant ? [item] : [];
    });
  }
  const sent = await store.mesh.sentById(messageId.toLowerCase());
  const meant = sent.filter((one) => recipientId === undefined || one.recipientId === recipientId);
  const items = await Promise.all(meant.map((one) => findItem(context, one.messageId, one.recipientId)));
  const waiting = items.flatMap((item) => item ?? []);
  if (waiting.length > 0) return waiting;
  throw new MailroomError("message_not_found", `no sent message ${messageId} waits for delivery`);
}

/** Lanes that one command retries. */
const MOST_HEADS = 10_000;

function recipientsOf(items: readonly StoredItem[]): readonly string[] {
  return [...new Set(items.map((item) => toOutboundMessage(item).recipientId))].sort();
}
