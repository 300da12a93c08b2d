/** Messages as they are kept: what came in (ASP: Message Queue), and what we sent. */
import type { MessageType } from "./message/types.js";
import type { ViewWrite } from "./writes.js";

export const QUEUE_STATUSES = ["pending", "processing", "completed", "failed", "expired"] as const;
/** Where a message is on its way to our agents. */
export type QueueStatus = (typeof QUEUE_STATUSES)[number];

/** Of those that still have to be dealt with. */
export type WaitingStatus = Extract<QueueStatus, "pending" | "processing">;

export const BOX_STATUSES = ["unread", "read", "archived", "deleted"] as const;
/** Where a message is for the person or program that reads the inbox. */
export type BoxStatus = (typeof BOX_STATUSES)[number];

/** A message id is unique only together with its swarm and sender (decisions A4). */
export function queueKey(swarmId: string, senderId: string, messageId: string): string {
  return `${swarmId}/${senderId}/${messageId}`;
}

/** What a key was made of. A sender that was imported may have a slash in its id; the other two have none. */
export function readQueueKey(key: string): {
  readonly swarmId: string;
  readonly senderId: string;
  readonly messageId: string;
} {
  const first = key.indexOf("/");
  const last = key.lastIndexOf("/");
  return {
    swarmId: key.slice(0, first),
    senderId: key.slice(first + 1, last),
    messageId: key.slice(last + 1),
  };
}

export interface QueuedMessage {
  /** `queueKey` of the three that follow. */
  readonly id: string;
  readonly messageId: string;
  readonly swarmId: string;
  readonly senderId: string;
  /** Absent for what we noted ourselves. */
  readonly recipientId?: string;
  readonly type: MessageType;
  readonly content: string;
  /** The whole message as JSON; of a note of ours, its fields. */
  readonly envelope: string;
  readonly receivedAt: number;
  readonly status: QueueStatus;
  readonly box: BoxStatus;
  readonly inReplyTo?: string;
  readonly threadId?: string;
  readonly processedAt?: number;
  readonly readAt?: number;
  /** The task that it became part of. */
  readonly taskKey?: string;
}

export const SENT_STATUSES = ["sent", "delivered", "failed"] as const;
export type SentStatus = (typeof SENT_STATUSES)[number];

/** One row for each recipient. */
export interface SentMessage {
  readonly messageId: string;
  readonly swarmId: string;
  readonly recipientId: string;
  readonly type: MessageType;
  readonly content: string;
  readonly sentAt: number;
  readonly status: SentStatus;
  readonly deliveredAt?: number;
  readonly error?: string;
  /** Where in our own swarm it came from, so that an answer finds its way back. */
  readonly origin?: string;
}

export interface InboxFilter {
  readonly box?: BoxStatus;
  readonly swarmId?: string;
  readonly senderId?: string;
  readonly limit: number;
}

export type InboxCounts = Readonly<Record<BoxStatus, number>>;
export type SentCounts = Readonly<Record<SentStatus, number>>;

/** What the mesh reads from the store. */
export interface MeshReads {
  /** Everything that the view is made of, as the writes that make it. */
  view(): Promise<readonly ViewWrite[]>;
  seen(swarmId: string, senderId: string, messageId: string): Promise<boolean>;
  /** Oldest first; only those behind a message, if its `id` is given and it is still there. */
  queued(status: WaitingStatus, limit: number, after?: string): Promise<QueuedMessage[]>;
  /** Counts no further than told, so that it costs the same however many there are. */
  queuedCount(status: WaitingStatus, upTo: number): Promise<number>;
  message(id: string): Promise<QueuedMessage | undefined>;
  byMessageId(messageId: string): Promise<QueuedMessage | undefined>;
  /** Newest first, deleted ones only when asked for. */
  inbox(filter: InboxFilter): Promise<QueuedMessage[]>;
  inboxCounts(swarmId?: string): Promise<InboxCounts>;
  /** Counts no further than told. */
  unreadCount(swarmId: string, upTo: number): Promise<number>;
  sent(filter: { swarmId?: string; limit: number }): Promise<SentMessage[]>;
  sentById(messageId: string): Promise<SentMessage[]>;
  sentCounts(swarmId?: string): Promise<SentCounts>;
}

/** By its id, however that is spelled: those of the protocol are kept in lower case, imported ones as they came. */
export async function messageNamed(
  reads: Pick<MeshReads, "byMessageId">,
  messageId: string,
): Promise<QueuedMessage | undefined> {
  return (await reads.byMessageId(messageId)) ?? (await reads.byMessageId(messageId.toLowerCase()));
}
