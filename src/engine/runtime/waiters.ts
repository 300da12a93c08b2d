/**
 * Callers that wait for the outcome of a message. An ending releases the waiters whose message an agent has taken; a
 * waiter whose message is still in a mailbox waits for the next ending. The rule uses only numbers and entries, so it
 * gives the same result in memory and when the journal is read again.
 */
import { deferred } from "../../base/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { AgentToolCall, MAILMessage } from "../../mail/index.js";
import type { HoldReason } from "../agent.js";
import type { TaskStatus } from "../ports.js";
import type { Entry } from "../task/entries.js";

/** How a round of a task ended: from a user's message to the next completion, pause, failure or cancellation. */
export interface RoundOutcome {
  readonly status: Exclude<TaskStatus, "running">;
  readonly message: MAILMessage;
  readonly error?: { readonly code: string; readonly message: string };
  /** The calls that wait for a user's answer, if it is paused. */
  readonly breakpoints?: readonly AgentToolCall[];
  /** The calls that wait for approval, if it is paused for them. */
  readonly approvals?: readonly AgentToolCall[];
  /** What an agent requires, if it is paused for that. */
  readonly reason?: HoldReason;
}

/** Where a round begins: the journal number of the user's message or answer. */
export interface RoundStart {
  readonly number: number;
}

/** Called once, at the end of its round. */
interface Listener {
  tell(outcome: RoundOutcome): void;
}

/** The rounds of one task that callers wait for. */
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
        // A cancellation empties every mailbox.
        this.#takeAllBefore(number);
        break;
      case "paused":
        // A held task takes no message before it has what it requires: all waiters are released.
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
  #outcome: RoundOutcome | undefined;

  constructor({ number }: RoundStart) {
    this.#start = number;
  }

  /** Must see every entry from the first of the round, in order. Returns the outcome when an entry ends the round. */
  see(number: number, entry: Entry): RoundOutcome | undefined {
    if (number < this.#start) return undefined;
    if (number === this.#start) {
      const tell = (outcome: RoundOutcome) => {
        this.#outcome = outcome;
      };
      this.#rounds.add(number, !waitsInMailbox(entry), { tell });
    }
    this.#rounds.see(number, entry);
    return this.#outcome;
  }
}

/** An answer to a breakpoint, or a message to other swarms only, waits in no mailbox. */
function waitsInMailbox(entry: Entry | undefined): boolean {
  return entry?.t === "sent" && entry.to.length > 0;
}

/** One waiting caller. The number of its message is known once it is decided, and can change before it is durable. */
export class Waiter implements Listener {
  readonly promise: Promise<RoundOutcome>;
  readonly tell: (outcome: RoundOutcome) => void;
  readonly #waiters: Waiters;
  readonly #key: JournalKey;
  readonly #reject: (error: Error) => void;
  #number: number | undefined;

  constructor(waiters: Waiters, key: JournalKey) {
    const { promise, resolve, reject } = deferred<RoundOutcome>();
    // A caller that ignores the outcome must not crash the process.
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

  /** Must see every durable entry, in order. */
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

export function outcomeOf(entry: Entry): RoundOutcome | undefined {
  switch (entry.t) {
    case "completed":
      return { status: "completed", message: entry.message };
    case "paused":
      if (entry.approvals !== undefined) {
        return { status: "paused", message: entry.message, approvals: entry.approvals };
      }
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
