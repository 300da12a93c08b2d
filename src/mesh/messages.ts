/** Stored messages: received (ASP: Message Queue) and sent. */
import type { MessageType } from "./message/types.js";

export const QUEUE_STATUSES = ["pending", "processing", "completed", "failed", "expired"] as const;
/** The progress of a message toward local agents. */
export type QueueStatus = (typeof QUEUE_STATUSES)[number];

/** The statuses of unfinished messages. */
export type WaitingStatus = Extract<QueueStatus, "pending" | "processing">;

export const BOX_STATUSES = ["unread", "read", "archived", "deleted"] as const;
/** The state of a message for the user or program that reads the inbox. */
export type BoxStatus = (typeof BOX_STATUSES)[number];

/** A message id is unique only together with its swarm and sender (decision A4). */
export function queueKey(swarmId: string, senderId: string, messageId: string): string {
  return `${swarmId}/${senderId}/${messageId}`;
}

/** Splits a key. Only the sender of an imported message can contain a slash. */
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
  /** `queueKey` of the next three fields. */
  readonly id: string;
  readonly messageId: string;
  readonly swarmId: string;
  readonly senderId: string;
  /** Absent for the agent's own event records. */
  readonly recipientId?: string;
  readonly type: MessageType;
  readonly content: string;
  /** The whole message as JSON; for an event record, its content. */
  readonly envelope: string;
  readonly receivedAt: number;
  readonly status: QueueStatus;
  readonly box: BoxStatus;
  readonly inReplyTo?: string;
  readonly threadId?: string;
  readonly processedAt?: number;
  readonly readAt?: number;
  /** The task that the message became part of. */
  readonly taskKey?: string;
}

export const SENT_STATUSES = ["sent", "delivered", "failed"] as const;
export type SentStatus = (typeof SENT_STATUSES)[number];

/** One row per recipient. */
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
  /** The local origin, so that a reply can be delivered to it. */
  readonly origin?: string;
}
