/**
 * Those who wait for what becomes of a message. An ending releases those whose message an agent has taken; whoever's
 * message still waits in a mailbox waits for the next one. The rule sees numbers and entries alone, so it gives the
 * same answer in memory and when a journal is read again.
 */
import type { AgentToolCall } from "../../mail/calls.js";
import type { MAILMessage } from "../../mail/message.js";
import type { HoldReason } from "../agent.js";
import type { Entry } from "../entries.js";
import type { JournalKey, TaskStatus } from "../ports.js";

/** How a round of a task ended: from a person's message to the next completion, pause, failure or cancellation. */
export interface Outcome {
  readonly status: Exclude<TaskStatus, "running">;
  readonly message: MAILMessage;
  readonly error?: { readonly code: string; readonly message: string };
  /** The calls that wait for a person, if it is paused. */
  readonly breakpoints?: readonly AgentToolCall[];
  /** What an agent needs, if it is paused for that. */
  readonly reason?: HoldReason;
}

/** Where a round begins: the number that a person's message or answer has in the journal. */
export interface RoundStart {
  readonly number: number;
}

/** Told once, at the end of its round. */
interface Listener {
  tell(outcome: Outcome): void;
}

/** The rounds of one task that somebody waits for. */
class Rounds<L extends Listener> {
  /** By the number of a message that no agent has taken. */
  readonly #waiting = new Map<number, Set<L>>();
  /** Of messages that were taken, or wait in no mailbox. */
  readonly #taken = new Map<L, number>();

  get size(): number {
    return this.#waiting.size + this.#taken.size;
  }

  all(): L[] {
    return [...[...this.#waiting.values()].flatMap((listeners) => [...listeners]), ...this.#taken.keys()];
  }

  add(number: number, isTaken: boolean, listener: L): void {
    if (isTaken) {
      this.#taken.set(listener, number);
      return;
    }
    const others = this.#waiting.get(number);
    if (others === undefined) this.#waiting.set(number, new Set([listener]));
    else others.add(listener);
  }

  remove(number: number, listener: L): void {
    this.#taken.delete(listener);
    const others = this.#waiting.get(number);
    if (others?.delete(listener) === true && others.size === 0) this.#waiting.delete(number);
  }

  see(number: number, entry: Entry): void {
    switch (entry.t) {
      case "turn":
      case "turn_failed":
        for (const taken of entry.took) this.#take(taken);
        return;
      case "cancelled":
        // Empties every mailbox, of what was there by then.
        this.#takeAllBefore(number);
        break;
      case "paused":
        // A held task takes nobody's message before it has what it needs: all are told.
        if (entry.reason !== undefined) this.#takeAllBefore(number);
        break;
      case "completed":
      case "failed":
        break;
      default:
        return;
    }
    const outcome = outcomeOf(entry);
    if (outcome === undefined) return;
    for (const [listener, start] of this.#taken) {
      if (start > number) continue;
      this.#taken.delete(listener);
      listener.tell(outcome);
    }
  }

  #take(number: number): void {
    const waiting = this.#waiting.get(number);
    if (waiting === undefined) return;
    this.#waiting.delete(number);
    for (const listener of waiting) this.#taken.set(listener, number);
  }

  #takeAllBefore(number: number): void {
    for (const start of [...this.#waiting.keys()]) if (start < number) this.#take(start);
  }
}

/** One round, read from the journal. */
export class Round {
  readonly #start: number;
  readonly #rounds = new Rounds<Listener>();
  #outcome: Outcome | undefined;

  constructor({ number }: RoundStart) {
    this.#start = number;
  }

  /** To be shown every entry from the round's first on, in order. The outcome, once an entry ends the round. */
  see(number: number, entry: Entry): Outcome | undefined {
    if (number < this.#start) return undefined;
    if (number === this.#start) {
      const tell = (outcome: Outcome) => {
        this.#outcome = outcome;
      };
      this.#rounds.add(number, !waitsInMailbox(entry), { tell });
    }
    this.#rounds.see(number, entry);
    return this.#outcome;
  }
}

/** What is not a message (the answer to a breakpoint), or one to other swarms alone, waits in no mailbox. */
function waitsInMailbox(entry: Entry | undefined): boolean {
  return entry?.t === "sent" && entry.to.length > 0;
}

/** Somebody who waits; where the message stands is known once it is decided, and may change before it is durable. */
export class Waiter implements Listener {
  readonly promise: Promise<Outcome>;
  readonly tell: (outcome: Outcome) => void;
  readonly #waiters: Waiters;
  readonly #key: JournalKey;
  readonly #reject: (error: Error) => void;
  #number: number | undefined;

  constructor(waiters: Waiters, key: JournalKey) {
    const { promise, resolve, reject } = withResolvers<Outcome>();
    // Whoever does not look must not bring the process down.
    promise.catch(() => {});
    this.promise = promise;
    this.tell = resolve;
    this.#waiters = waiters;
    this.#key = key;
    this.#reject = reject;
  }

  /** @param entry the message, or whatever else begins the round */
  place(number: number, entry: Entry | undefined): void {
    this.forget();
    this.#number = number;
    this.#waiters.add(this.#key, number, entry, this);
  }

  forget(): void {
    if (this.#number !== undefined) this.#waiters.remove(this.#key, this.#number, this);
    this.#number = undefined;
  }

  fail(error: Error): void {
    this.forget();
    this.#reject(error);
  }
}

export class Waiters {
  readonly #tasks = new Map<JournalKey, Rounds<Waiter>>();

  has(key: JournalKey): boolean {
    return this.#tasks.has(key);
  }

  add(key: JournalKey, number: number, entry: Entry | undefined, waiter: Waiter): void {
    let rounds = this.#tasks.get(key);
    if (rounds === undefined) {
      rounds = new Rounds();
      this.#tasks.set(key, rounds);
    }
    rounds.add(number, !waitsInMailbox(entry), waiter);
  }

  remove(key: JournalKey, number: number, waiter: Waiter): void {
    const rounds = this.#tasks.get(key);
    rounds?.remove(number, waiter);
    if (rounds?.size === 0) this.#tasks.delete(key);
  }

  /** To be shown every durable entry, in order. */
  see(key: JournalKey, first: number, entries: readonly Entry[]): void {
    const rounds = this.#tasks.get(key);
    if (rounds === undefined) return;
    let number = first;
    for (const entry of entries) rounds.see(number++, entry);
    if (rounds.size === 0) this.#tasks.delete(key);
  }

  failAll(error: Error): void {
    for (const rounds of [...this.#tasks.values()]) for (const waiter of rounds.all()) waiter.fail(error);
  }
}

export function outcomeOf(entry: Entry): Outcome | undefined {
  switch (entry.t) {
    case "completed":
      return { status: "completed", message: entry.message };
    case "paused":
      return entry.reason === undefined
        ? { status: "paused", message: entry.message, breakpoints: entry.calls }
        : { status: "paused", message: entry.message, reason: entry.reason };
    case "cancelled":
      return { status: "cancelled", message: entry.message };
    case "failed":
      return {
        status: "failed",
        message: entry.message,
        error: { code: entry.code, message: entry.reason },
      };
    default:
      return undefined;
  }
}

/** `Promise.withResolvers` came with Node 22. */
export function withResolvers<T>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: Error) => void;
} {
  let resolve: (value: T) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
