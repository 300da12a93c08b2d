/** The subscriptions of all sessions. */

import type { Clock } from "../../base/index.js";
import type { EventLog, ReplayStart } from "../../conversations/index.js";
import type { Registrations } from "./registrations.js";
import { partyOf, type Session } from "./session.js";
import type { Subscription } from "./subscription.js";

/** Milliseconds between checks whether a slow reader has caught up. */
const SLOW_READER_PAUSE = 10;

export class Subscriptions {
  readonly #log: EventLog;
  readonly #clock: Clock;
  /** Flat, because every event is offered to each of them. */
  readonly #all = new Set<Subscription>();
  readonly #bySession = new Map<Session, Map<string, Subscription>>();
  readonly #byParty = new Map<string, number>();
  readonly #registrations: Registrations;
  #unfollow: (() => void) | undefined;

  constructor(log: EventLog, clock: Clock, registrations: Registrations) {
    this.#log = log;
    this.#clock = clock;
    this.#registrations = registrations;
  }

  /** Starts to deliver events. To be called before a subscription is added. */
  async follow(): Promise<void> {
    if (this.#unfollow !== undefined) return;
    const unfollow = await this.#log.listen((event) => {
      for (const subscription of this.#all) subscription.deliver(event);
    });
    if (this.#unfollow === undefined) this.#unfollow = unfollow;
    else unfollow();
  }

  get size(): number {
    return this.#all.size;
  }

  countOf(session: Session): number {
    return this.#bySession.get(session)?.size ?? 0;
  }

  /** Of all sessions of the same caller. */
  countOfParty(session: Session): number {
    return this.#byParty.get(partyOf(session)) ?? 0;
  }

  add(subscription: Subscription): void {
    const { session, id, filter } = subscription;
    this.#byParty.set(partyOf(session), this.countOfParty(session) + 1);
    this.#registrations.charge(subscription, partyOf(session), filter);
    const known = this.#bySession.get(session) ?? new Map<string, Subscription>();
    this.#bySession.set(session, known.set(id, subscription));
    this.#all.add(subscription);
  }

  /** False if the session has no such subscription: those of other sessions do not exist for it. */
  end(session: Session, id: string): boolean {
    const known = this.#bySession.get(session);
    const subscription = known?.get(id);
    if (known === undefined || subscription === undefined) return false;
    known.delete(id);
    if (known.size === 0) this.#bySession.delete(session);
    this.#close(subscription);
    return true;
  }

  endAll(session: Session): void {
    for (const subscription of this.#bySession.get(session)?.values() ?? []) this.#close(subscription);
    this.#bySession.delete(session);
  }

  /** The connection is lost: the subscriptions wait for the session to be resumed. */
  suspendAll(session: Session): void {
    for (const subscription of [...(this.#bySession.get(session)?.values() ?? [])]) {
      subscription.suspend();
      this.#all.delete(subscription);
      // The connection was lost before its first event: there is no place to continue from.
      if (subscription.seen === "") this.end(session, subscription.id);
    }
  }

  /** The session has been resumed. Each of these has to catch up. */
  resumeAll(session: Session): Subscription[] {
    const suspended = [...(this.#bySession.get(session)?.values() ?? [])];
    for (const subscription of suspended) this.#all.add(subscription);
    return suspended;
  }

  /** Sends what the subscription has missed. Waits while its reader is slow. */
  async replay(subscription: Subscription, from: ReplayStart): Promise<void> {
    await subscription.replay(this.#log, from, () => this.#pause());
  }

  close(): void {
    this.#unfollow?.();
  }

  #close(subscription: Subscription): void {
    subscription.close();
    this.#all.delete(subscription);
    this.#registrations.release(subscription);
    const left = this.countOfParty(subscription.session) - 1;
    if (left > 0) this.#byParty.set(partyOf(subscription.session), left);
    else this.#byParty.delete(partyOf(subscription.session));
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(SLOW_READER_PAUSE, resolve);
    });
  }
}
