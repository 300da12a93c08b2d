/**
 * Messages for sessions that are disconnected. They are held for a while, limited by number and bytes per session, by
 * bytes per caller and in total; the oldest are dropped first. Released when they expire.
 */
import type { Clock } from "../../base/index.js";
import { partyOf, type Session } from "./session.js";
import type { MapLimits } from "./settings.js";

interface Held {
  readonly session: Session;
  readonly frame: string;
  readonly until: number;
}

/** Messages in the order of arrival, with their size. */
class Group {
  readonly messages = new Set<Held>();
  size = 0;

  add(message: Held): void {
    this.messages.add(message);
    this.size += message.frame.length;
  }

  delete(message: Held): void {
    if (this.messages.delete(message)) this.size -= message.frame.length;
  }
}

export class HeldMessages {
  readonly #limits: MapLimits;
  readonly #clock: Clock;
  readonly #all = new Group();
  readonly #bySession = new Map<Session, Group>();
  readonly #byCaller = new Map<string, Group>();
  #cancelSweep: (() => void) | undefined;

  constructor(limits: MapLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Characters of all messages. */
  get size(): number {
    return this.#all.size;
  }

  has(session: Session): boolean {
    return this.#bySession.has(session);
  }

  add(session: Session, frame: string): void {
    const { maxHeld, maxHeldSize, maxHeldSizePerCaller, maxHeldSizeTotal, heldFor } = this.#limits;
    const message = { session, frame, until: this.#clock.now() + heldFor };
    const own = this.#bySession.get(session) ?? new Group();
    const callers = this.#byCaller.get(partyOf(session)) ?? new Group();
    this.#bySession.set(session, own);
    this.#byCaller.set(partyOf(session), callers);
    for (const group of [own, callers, this.#all]) group.add(message);
    this.#trim(own, maxHeldSize, maxHeld);
    this.#trim(callers, maxHeldSizePerCaller);
    this.#trim(this.#all, maxHeldSizeTotal);
    this.#sweepLater();
  }

  /** Returns the session's messages in order, and holds them no longer. */
  take(session: Session): readonly string[] {
    const messages = [...(this.#bySession.get(session)?.messages ?? [])];
    for (const message of messages) this.#drop(message);
    const now = this.#clock.now();
    return messages.filter(({ until }) => until > now).map(({ frame }) => frame);
  }

  close(): void {
    this.#cancelSweep?.();
  }

  #trim(group: Group, size: number, count = Number.POSITIVE_INFINITY): void {
    for (const message of group.messages) {
      if (group.size <= size && group.messages.size <= count) return;
      this.#drop(message);
    }
  }

  #drop(message: Held): void {
    const { session } = message;
    this.#all.delete(message);
    const own = this.#bySession.get(session);
    own?.delete(message);
    if (own?.messages.size === 0) this.#bySession.delete(session);
    const callers = this.#byCaller.get(partyOf(session));
    callers?.delete(message);
    if (callers?.messages.size === 0) this.#byCaller.delete(partyOf(session));
  }

  /** All are held equally long, so the oldest expires first. */
  #sweepLater(): void {
    const [oldest] = this.#all.messages;
    if (oldest === undefined || this.#cancelSweep !== undefined) return;
    this.#cancelSweep = this.#clock.after(Math.max(1, oldest.until - this.#clock.now()), () => {
      this.#cancelSweep = undefined;
      const now = this.#clock.now();
      for (const message of this.#all.messages) {
        if (message.until > now) break;
        this.#drop(message);
      }
      this.#sweepLater();
    });
  }
}
