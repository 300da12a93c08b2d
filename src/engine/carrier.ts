/** Delivers mail to other swarms: federation, mesh and A2A each deliver to the swarm names they own (decision I1). */

import type { JournalKey, RowWrite } from "../journal/index.js";
import type { MAILMessage } from "../mail/index.js";
import type { TaskInfo } from "./agent.js";
import type { InstanceId } from "./ports.js";

/** A message for another swarm. */
export interface OutgoingMail {
  readonly swarm: string;
  readonly message: MAILMessage;
  readonly task: TaskInfo;
  readonly instance: InstanceId;
  /** How many swarms the mail that led to this one has passed through, including this hop (decision E9). */
  readonly hops: number;
}

/** The result of a delivery: the other side has accepted the mail, or it certainly never will. */
export type DeliveryResult =
  | { readonly ok: true; readonly contributors?: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/**
 * A carrier returns rows for its outbox and gets their results from the outbox. It reports a result to the task with the
 * command `carried`, in one commit with the rows that settle the delivery (see `settleMail`). After a restart mail is not
 * handed over again: the outbox continues with its rows.
 */
export interface Carrier {
  /** Whether this carrier delivers to this swarm. A name that two carriers own is a configuration error. */
  owns(swarm: string): boolean;
  /**
   * Returns rows that become durable together with the message, so that a crash cannot lose it; or the delivery result,
   * if it is already known. No row may be refused. The same mail always gives the same rows, and rows that already exist
   * change nothing. A thrown error counts as a refusal with its message.
   */
  rows(mail: OutgoingMail): readonly RowWrite[] | DeliveryResult;
  /** Called when the mail and its rows are durable: it may be sent. */
  wake?(mails: readonly OutgoingMail[]): void;
  /**
   * Looks up mail of a task that was read from the store without a result. `undefined` if the carrier has no rows for it:
   * they are then committed now.
   */
  find?(mail: OutgoingMail): Promise<DeliveryResult | "waiting" | undefined>;
  /** A task that was read from the store waits for an answer of this swarm, which accepted its mail. */
  awaits?(key: JournalKey, swarm: string): void;
}
