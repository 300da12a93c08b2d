/** A queue of the outbox, for administrators. */
export interface OutboxQueue {
  readonly queue: string;
  /** Makes waiting items for a target due now. */
  retryNow(target: string): void;
  /** Gives a waiting item up. Returns whether it was waiting, and not being delivered. */
  abandon(id: string, reason: string): Promise<boolean>;
}
