/** The way out of the swarm: federation, mesh and A2A each carry mail to the swarms they know (decisions I). */
import type { MAILMessage } from "../mail/message.js";
import type { TaskFacts } from "./agent.js";
import type { InstanceId, RowWrite } from "./ports.js";

export interface OutgoingMail {
  readonly swarm: string;
  readonly message: MAILMessage;
  readonly task: TaskFacts;
  readonly instance: InstanceId;
  /** How many swarms the mail that led to this one has come through, this way out included (decisions E9). */
  readonly hops: number;
}

/** What became of mail: the other side has taken it over, or it is certain that it never will. */
export type Carriage =
  | { readonly ok: true; readonly contributors?: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/**
 * A carrier gives rows for its outbox, and hears from the outbox what became of them. It tells the task with the command
 * `carried`, in one commit with the rows that settle the matter on its side (see `settleMail`). No mail is handed over
 * again because a process ended: the rows are taken up instead.
 */
export interface Carrier {
  /** Whether mail to this swarm is this carrier's business. A name that two carriers own is a configuration error. */
  owns(swarm: string): boolean;
  /**
   * Rows that become durable together with the message, so that it is on its way whatever happens next; or what becomes
   * of it, where that is known at once. None of the rows may be refused, and the same mail gives the same rows: where
   * they are there already, they change nothing. A throw counts as a refusal with its message.
   */
  rows(mail: OutgoingMail): readonly RowWrite[] | Carriage;
  /** This mail is durable, and so are its rows: it may leave. */
  wake?(mails: readonly OutgoingMail[]): void;
  /**
   * A task was read from the store that does not know what became of this mail. Nothing if the carrier has never heard of
   * it: then its rows are committed now.
   */
  find?(mail: OutgoingMail): Promise<Carriage | "waiting" | undefined>;
}
