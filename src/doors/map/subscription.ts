/** One subscription: filters and numbers events, and sends none before the response that opened it. */
import {
  compileFilter,
  type EventLog,
  type EventTest,
  type MapEvent,
  type ReplayStart,
  type SubscriptionFilter,
} from "../../conversations/index.js";
import { eventText } from "./event-text.js";
import { notificationFrame } from "./rpc.js";
import type { Session } from "./session.js";

/** Bytes of replayed events that may wait to be sent before reading pauses. */
const REPLAY_PAUSE_BYTES = 1024 * 1024;
/** Live events kept while older ones are replayed. */
const MAX_BACKLOG = 1000;

export interface SubscriptionOptions {
  /** Turns arrive as `mail/turn.received` instead of `map/event`. */
  readonly turnReceived?: boolean | undefined;
}

export class Subscription {
  readonly id: string;
  readonly session: Session;
  readonly filter: SubscriptionFilter | undefined;
  readonly #test: EventTest;
  #sequence = 0;
  /** The last event considered: it was sent or does not match. */
  #seen = "";
  #live = false;
  #backlog: MapEvent[] | undefined;
  #closed = false;
  /** Counts suspensions: a replay for an earlier connection ends. */
  #suspensions = 0;
  readonly #turnReceived: boolean;

  constructor(
    id: string,
    session: Session,
    filter: SubscriptionFilter | undefined,
    options: SubscriptionOptions = {},
  ) {
    this.id = id;
    this.session = session;
    this.filter = filter;
    this.#turnReceived = options.turnReceived === true;
    const test = compileFilter(filter);
    this.#test = this.#turnReceived ? (event) => event.type === "mail.turn.added" && test(event) : test;
  }

  /** To be called after the response is written, with the point in the log from which on events are sent. */
  goLive(mark: string): void {
    this.#seen = mark;
    this.#live = true;
  }

  /** The connection is lost. `replay` after `seen` continues on the next one. */
  suspend(): void {
    this.#suspensions++;
    this.#live = false;
    this.#backlog = undefined;
  }

  /** The last event that was sent or did not match. Empty if there was none. */
  get seen(): string {
    return this.#seen;
  }

  /** Sends missed events in sequence, then continues live without a gap. */
  async replay(log: EventLog, from: ReplayStart, pause: () => Promise<void>): Promise<void> {
    const { afterEventId, afterMark = afterEventId } = from;
    if (afterMark !== undefined) this.#seen = afterMark;
    const suspensions = this.#suspensions;
    const isOver = (): boolean => this.#closed || suspensions !== this.#suspensions;
    let start: ReplayStart = from;
    do {
      this.#backlog = [];
      for await (const event of log.replay(start)) {
        if (isOver()) return;
        if (event.id <= this.#seen) continue;
        this.#seen = event.id;
        if (from.fromTimestamp !== undefined && event.timestamp < from.fromTimestamp) continue;
        if (event.visibleInReplay(this.session.actor) && this.#test(event)) this.#send(event);
        while ((this.session.connection?.buffered ?? 0) > REPLAY_PAUSE_BYTES && !isOver()) await pause();
      }
      if (isOver()) return;
      if (this.#seen !== "" && this.#seen !== afterMark) start = { afterEventId: this.#seen };
      // Too many live events to keep: read them from the log, too.
    } while (this.#backlog === undefined);
    const meanwhile = this.#backlog;
    this.#live = true;
    for (const event of meanwhile) this.deliver(event);
  }

  deliver(event: MapEvent): void {
    if (this.#closed || event.id <= this.#seen) return;
    if (!this.#live) {
      if (this.#backlog !== undefined && this.#backlog.push(event) > MAX_BACKLOG) this.#backlog = undefined;
      return;
    }
    this.#seen = event.id;
    // Permission first; a filter only narrows.
    if (event.visibleLive(this.session.actor) && this.#test(event)) this.#send(event);
  }

  close(): void {
    this.#closed = true;
  }

  #send(event: MapEvent): void {
    this.#sequence++;
    if (this.#turnReceived) {
      const params = { subscriptionId: this.id, sequenceNumber: this.#sequence, ...event.data };
      this.session.connection?.send(notificationFrame("mail/turn.received", params));
      return;
    }
    this.session.connection?.send(
      `{"jsonrpc":"2.0","method":"map/event","params":{"subscriptionId":"${this.id}","sequenceNumber":${this.#sequence},${eventText(event, this.session.actor)}}}`,
    );
  }
}
