/** The outbox behind a carrier that only delivers: mail is durable, retried, and settled with its task. */
import {
  CircuitBreaker,
  type Clock,
  type Ids,
  messageOf,
  type Report,
  type RetryPolicy,
} from "../base/index.js";
import type { Carrier, DeliveryResult, OutgoingMail } from "../engine/index.js";
import { type Runtime, settleMail } from "../engine/index.js";
import type { DeliveryCarrier } from "../extension/index.js";
import type { RowWrite } from "../journal/index.js";
import {
  type Attempt,
  type AttemptResult,
  Dispatcher,
  deliveryResult,
  enqueueMail,
  type FinalOutcome,
  mailIn,
  mailKey,
  type OutboxFinish,
  purgeFinished,
  type StoredItem,
} from "../outbox/index.js";
import type { FullStore } from "../store/index.js";

const RETRY: RetryPolicy = { base: 250, factor: 2, cap: 60_000, jitter: 0.5 };
/** Milliseconds after which undelivered mail is returned to its sender. */
const DELIVERY_TIMEOUT = 24 * 60 * 60 * 1000;
/** How long results are stored after the task has received them. */
const KEEP_FINISHED = 24 * 60 * 60 * 1000;

export interface OutboxCarrierParts {
  /** The name of the extension: its queue in the outbox. */
  readonly name: string;
  readonly store: FullStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly report: Report;
}

export class OutboxCarrier implements Carrier {
  readonly #carrier: DeliveryCarrier;
  readonly #parts: OutboxCarrierParts;
  readonly #queue: string;
  readonly #dispatcher: Dispatcher;
  #runtime: Runtime | undefined;

  constructor(carrier: DeliveryCarrier, parts: OutboxCarrierParts) {
    this.#carrier = carrier;
    this.#parts = parts;
    this.#queue = `extension:${parts.name}`;
    const { store, clock, report } = parts;
    this.#dispatcher = new Dispatcher(
      { store, reads: store.outbox, clock, report },
      {
        queue: this.#queue,
        handler: (attempt) => this.#attempt(attempt),
        settle: (item, outcome, finish) => this.#settle(item, outcome, finish),
        backoff: RETRY,
        circuits: new CircuitBreaker(),
      },
    );
  }

  /** For administrators. */
  get outbox(): Dispatcher {
    return this.#dispatcher;
  }

  /** Starts delivering. */
  start(runtime: Runtime): void {
    this.#runtime = runtime;
    this.#dispatcher.wake();
  }

  /** Leaves unfinished deliveries to the next process. */
  stop(): Promise<void> {
    return this.#dispatcher.stop();
  }

  owns(swarm: string): boolean {
    return this.#carrier.owns(swarm);
  }

  rows(mail: OutgoingMail): readonly RowWrite[] {
    const { clock, ids } = this.#parts;
    const now = clock.now();
    this.#dispatcher.backlog.add(mail.swarm);
    return [enqueueMail(mail, { queue: this.#queue, id: ids.ordered(), lane: laneOf(mail), now })];
  }

  wake(mails: readonly OutgoingMail[]): void {
    if (this.#runtime !== undefined) this.#dispatcher.wake(mails.map(laneOf));
  }

  async find(mail: OutgoingMail): Promise<DeliveryResult | "waiting" | undefined> {
    const item = await this.#parts.store.outbox.byDedupeKey(this.#queue, mailKey(mail));
    if (item === undefined) return undefined;
    return item.outcome === undefined ? "waiting" : deliveryResult(item.outcome, item.reason);
  }

  async #attempt({ item, number, signal }: Attempt): Promise<AttemptResult> {
    try {
      const result = await this.#carrier.deliver(mailIn(item), { number, signal });
      return result.ok ? { kind: "delivered" } : { kind: "refused", reason: result.reason };
    } catch (error) {
      const reason = messageOf(error);
      const isLate = this.#parts.clock.now() >= item.createdAt + DELIVERY_TIMEOUT;
      return isLate ? { kind: "refused", reason } : { kind: "retry", reason };
    }
  }

  async #settle(item: StoredItem, { outcome, reason }: FinalOutcome, finish: OutboxFinish): Promise<void> {
    const { store, clock } = this.#parts;
    if (this.#runtime === undefined) throw new Error("the carrier has not been started");
    const { task, message, swarm } = mailIn(item);
    const forget = purgeFinished(this.#queue, clock.now() - KEEP_FINISHED);
    const mail = { key: task.key, messageId: message.id, swarm };
    await settleMail({ runtime: this.#runtime, store }, mail, deliveryResult(outcome, reason), [
      finish,
      forget,
    ]);
  }
}

/** Mail of one task to one swarm is delivered in order. */
function laneOf({ task, swarm }: OutgoingMail): string {
  return `${task.key}/${swarm}`;
}
