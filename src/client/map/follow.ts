/**
 * One subscription over any number of connections, and the queue of its events. It continues after the last received
 * event, so that no event is lost or repeated. A slow reader costs no memory: beyond a limit the subscription is given
 * up, and continued when the queue is empty.
 */
import { isRecord, sleep, urgentClock } from "../../base/index.js";
import { ConversationError, detailsOf, isTemporary, reasonOf } from "../conversations-errors.js";
import { backoff } from "../retry.js";
import type { ConversationEvent } from "./events.js";
import type { MapLink } from "./link.js";
import type { EventFilter } from "./methods.js";
import { isLost } from "./session.js";

/** Events, and characters of their frames, that may wait for the reader. */
const MAX_EVENTS = 5_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;

export interface FollowParts {
  readonly filter: EventFilter;
  readonly after: string | undefined;
  readonly timeout: number;
  /** The current connection, if there is one. */
  readonly link: () => MapLink | undefined;
  /** The reader has stopped. */
  readonly onStop: (follow: Follow) => void;
}

export class Follow {
  readonly #parts: FollowParts;
  /** The last received event, or the position at which the subscription began. */
  #last: string | undefined;
  /** The subscription on the current connection. */
  #subscription: { readonly id: string; readonly link: MapLink } | undefined;
  /** The subscription that is being opened. */
  #subscribing: { readonly link: MapLink; readonly done: Promise<void> } | undefined;
  #events: { readonly event: ConversationEvent; readonly size: number }[] = [];
  #size = 0;
  /** The subscription was given up because the reader is slow. */
  #full = false;
  #error: unknown;
  #over = false;
  #wake: (() => void) | undefined;

  constructor(parts: FollowParts) {
    this.#parts = parts;
    this.#last = parts.after;
  }

  /**
   * Subscribes on a connection, once.
   * @throws ConversationError, also `connection_lost`
   */
  async subscribe(link: MapLink): Promise<void> {
    if (this.#over || this.#full || this.#subscription?.link === link) return;
    if (this.#subscribing?.link === link) return this.#subscribing.done;
    const subscribing = { link, done: this.#open(link) };
    this.#subscribing = subscribing;
    try {
      await subscribing.done;
    } finally {
      if (this.#subscribing === subscribing) this.#subscribing = undefined;
    }
  }

  async #open(link: MapLink): Promise<void> {
    const { filter, timeout } = this.#parts;
    for (let failures = 1; ; failures++) {
      const params = { filter, ...(this.#last !== undefined && { replayFrom: this.#last }) };
      try {
        await link.request("map/subscribe", params, {
          timeout,
          onResult: ({ subscriptionId, _meta }) => {
            this.#subscription = { id: String(subscriptionId), link };
            if (isRecord(_meta) && typeof _meta.position === "string") this.#last ??= _meta.position;
          },
        });
        // The reader may have stopped meanwhile.
        if (this.#over) this.#unsubscribe();
        return;
      } catch (error) {
        if (!this.#canRepeat(error)) throw error;
        await sleep(urgentClock, error.retryAfter ?? backoff(failures, error));
        if (this.#over) return;
        if (!link.isOpen) throw link.lost("map/subscribe");
      }
    }
  }

  /** The same for a subscription that existed before: a rejection is the reader's. */
  async resume(link: MapLink): Promise<void> {
    try {
      await this.subscribe(link);
    } catch (error) {
      if (isLost(error)) return;
      // A server that does not respond: another connection may help.
      if (error instanceof ConversationError && error.code === "timeout") {
        link.abort({ code: 1006, reason: error.message });
      } else this.fail(error);
    }
  }

  /** Whether the event belongs to this subscription. */
  receives(subscriptionId: unknown, link: MapLink): boolean {
    return this.#subscription?.id === subscriptionId && this.#subscription?.link === link;
  }

  add(event: ConversationEvent, size: number): void {
    this.#last = event.id;
    this.#events.push({ event, size });
    this.#size += size;
    if (this.#events.length >= MAX_EVENTS || this.#size >= MAX_CHARACTERS) {
      this.#full = true;
      this.#unsubscribe();
    }
    this.#wake?.();
  }

  /** The reader gets the queued events, then this error. */
  fail(error: unknown): void {
    this.#error ??= error;
    this.#wake?.();
  }

  /** The reader gets no further event. */
  stop(): void {
    if (this.#over) return;
    this.#over = true;
    this.#events = [];
    this.#unsubscribe();
    this.#parts.onStop(this);
    this.#wake?.();
  }

  async *events(): AsyncGenerator<ConversationEvent, void, undefined> {
    try {
      for (;;) {
        const event = await this.#next();
        if (event === undefined) return;
        yield event;
      }
    } finally {
      this.stop();
    }
  }

  async #next(): Promise<ConversationEvent | undefined> {
    for (;;) {
      if (this.#over) return undefined;
      const item = this.#events.shift();
      if (item !== undefined) {
        this.#size -= item.size;
        return item.event;
      }
      if (this.#error !== undefined) throw this.#error;
      if (this.#full) {
        this.#full = false;
        const link = this.#parts.link();
        if (link !== undefined) void this.resume(link);
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #canRepeat(error: unknown): error is ConversationError {
    if (!(error instanceof ConversationError) || error.code !== "refused") return false;
    if (isTemporary(error)) return true;
    // Some events are kept in memory only. After a restart the durable ones continue from their position.
    const { position } = detailsOf(error);
    if (reasonOf(error) !== "event_expired" || typeof position !== "string") return false;
    if (this.#last === undefined || this.#last === position || this.#last === this.#parts.after) return false;
    this.#last = position;
    return true;
  }

  #unsubscribe(): void {
    const { id, link } = this.#subscription ?? {};
    this.#subscription = undefined;
    if (link?.isOpen !== true) return;
    const { timeout } = this.#parts;
    link.request("map/unsubscribe", { subscriptionId: id }, { timeout }).catch(() => {});
  }
}
