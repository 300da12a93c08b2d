/** One subscription: numbers what passes its filter, and never gets ahead of the response that opened it. */
import { compileFilter, type EventTest, type SubscriptionFilter } from "../domain/filter.js";
import { eventText, type MapEvent } from "../log/event.js";
import type { EventLog, ReplayStart } from "../log/event-log.js";
import type { Session } from "./session.js";

/** Replayed events that may wait to be sent before reading goes on. */
const REPLAY_PAUSE_BYTES = 1024 * 1024;
/** Events kept while older ones are being replayed. */
const LONGEST_BACKLOG = 1000;

export class Subscription {
  readonly id: string;
  readonly session: Session;
  readonly #test: EventTest;
  #sequence = 0;
  /** The newest event considered; everything up to it was sent or is not for this subscription. */
  #seen = "";
  #live = false;
  #backlog: MapEvent[] | undefined;
  #closed = false;

  constructor(id: string, session: Session, filter: SubscriptionFilter | undefined) {
    this.id = id;
    this.session = session;
    this.#test = compileFilter(filter);
  }

  /** To be called when the response has been written. */
  goLive(): void {
    this.#live = true;
  }

  /** Sends what was missed, in the same sequence, and then goes live without a gap. */
  async replay(log: EventLog, from: ReplayStart, pause: () => Promise<void>): Promise<void> {
    if (from.afterEventId !== undefined) this.#seen = from.afterEventId;
    let start: ReplayStart = from;
    do {
      this.#backlog = [];
      for await (const event of log.replay(start)) {
        if (this.#closed) return;
        if (event.id <= this.#seen) continue;
        this.#seen = event.id;
        if (from.fromTimestamp !== undefined && event.timestamp < from.fromTimestamp) continue;
        if (event.toldAgain(this.session.caller) && this.#test(event)) this.#send(event);
        while ((this.session.connection?.buffered ?? 0) > REPLAY_PAUSE_BYTES && !this.#closed) await pause();
      }
      if (this.#seen !== "") start = { afterEventId: this.#seen };
      // Too much has happened meanwhile to be kept: it is read, too.
    } while (this.#backlog === undefined);
    const meanwhile = this.#backlog;
    this.#live = true;
    for (const event of meanwhile) this.deliver(event);
  }

  deliver(event: MapEvent): void {
    if (this.#closed || event.id <= this.#seen) return;
    if (!this.#live) {
      if (this.#backlog !== undefined && this.#backlog.push(event) > LONGEST_BACKLOG)
        this.#backlog = undefined;
      return;
    }
    this.#seen = event.id;
    // Permission first: a filter only narrows.
    if (event.toldLive(this.session.caller) && this.#test(event)) this.#send(event);
  }

  close(): void {
    this.#closed = true;
  }

  #send(event: MapEvent): void {
    this.#sequence++;
    this.session.connection?.send(
      `{"jsonrpc":"2.0","method":"map/event","params":{"subscriptionId":"${this.id}","sequenceNumber":${this.#sequence},${eventText(event, this.session.caller)}}}`,
    );
  }
}
