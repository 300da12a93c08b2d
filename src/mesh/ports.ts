/** What the mesh requires of the store. */
import type { Store } from "../engine/index.js";
import type { OutboxReads } from "../outbox/index.js";
import type { BoxStatus, QueuedMessage, SentMessage, SentStatus, WaitingStatus } from "./messages.js";
import type { ViewWrite } from "./writes.js";

export interface MeshStore {
  readonly commit: Store["commit"];
  readonly mesh: MeshReads;
  readonly outbox: OutboxReads;
}

export interface InboxFilter {
  readonly box?: BoxStatus;
  readonly swarmId?: string;
  readonly senderId?: string;
  readonly limit: number;
}

export interface ContextFilter {
  readonly swarmId: string;
  readonly senderId: string;
  readonly threadId: string;
  readonly limit: number;
}

export type InboxCounts = Readonly<Record<BoxStatus, number>>;
export type SentCounts = Readonly<Record<SentStatus, number>>;

/** What the mesh reads from the store. */
export interface MeshReads {
  /** The whole membership state, as the writes that create it. */
  view(): Promise<readonly ViewWrite[]>;
  seen(swarmId: string, senderId: string, messageId: string): Promise<boolean>;
  /** Oldest first. With `after`, only messages after the one with this `id`, if it still exists. */
  queued(status: WaitingStatus, limit: number, after?: string): Promise<QueuedMessage[]>;
  /** Counts up to `upTo`, so that the cost is bounded. */
  queuedCount(status: WaitingStatus, upTo: number): Promise<number>;
  message(id: string): Promise<QueuedMessage | undefined>;
  byMessageId(messageId: string): Promise<QueuedMessage | undefined>;
  /** Newest first. Deleted messages only when requested. */
  inbox(filter: InboxFilter): Promise<QueuedMessage[]>;
  /** What every member of a swarm may read, and one sender's messages of one thread. Newest first. */
  context(filter: ContextFilter): Promise<QueuedMessage[]>;
  inboxCounts(swarmId?: string): Promise<InboxCounts>;
  /** Counts up to `upTo`. */
  unreadCount(swarmId: string, upTo: number): Promise<number>;
  sent(filter: { swarmId?: string; limit: number }): Promise<SentMessage[]>;
  sentById(messageId: string): Promise<SentMessage[]>;
  sentCounts(swarmId?: string): Promise<SentCounts>;
}

/** Finds a message by its id in any spelling: ids of the protocol are stored in lower case, imported ones unchanged. */
export async function findMessage(
  reads: Pick<MeshReads, "byMessageId">,
  messageId: string,
): Promise<QueuedMessage | undefined> {
  return (await reads.byMessageId(messageId)) ?? (await reads.byMessageId(messageId.toLowerCase()));
}
