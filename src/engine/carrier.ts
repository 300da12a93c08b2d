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

export type Carriage =
  | { readonly accepted: true; readonly contributors?: readonly string[] }
  | { readonly accepted: false; readonly reason: string };

export interface Carrier {
  /** Whether mail to this swarm is this carrier's business. A name that two carriers own is a configuration error. */
  owns(swarm: string): boolean;
  /**
   * Resolves when the other side has taken the message over or it is certain that it never will. After a crash the
   * same message is handed over again: the carrier recognises it by its id.
   */
  send(mail: OutgoingMail): Promise<Carriage>;
  /**
   * Rows that become durable together with the message itself, so that it is on its way whatever happens next, even
   * if the task has ended by then. `send` follows after the commit.
   */
  rows?(mail: OutgoingMail): readonly RowWrite[];
}
