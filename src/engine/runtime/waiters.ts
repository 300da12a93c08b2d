/** Those who wait for what becomes of a message they posted (decisions B6). */
import type { AgentToolCall } from "../../mail/calls.js";
import type { MAILMessage } from "../../mail/message.js";
import type { HoldReason } from "../agent.js";
import type { Entry } from "../entries.js";
import type { TaskStatus } from "../ports.js";
import { type TaskState, wasTaken } from "../state.js";

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

interface Waiter {
  readonly messageId: string;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: Error) => void;
}

export class Waiters {
  readonly #byTask = new Map<string, Waiter[]>();

  wait(key: string, messageId: string): { promise: Promise<Outcome>; forget: () => void } {
    const { promise, resolve, reject } = withResolvers<Outcome>();
    // Whoever does not look must not bring the process down.
    promise.catch(() => {});
    const waiter: Waiter = { messageId, resolve, reject };
    const waiters = this.#byTask.get(key);
    if (waiters === undefined) this.#byTask.set(key, [waiter]);
    else waiters.push(waiter);
    return { promise, forget: () => this.#remove(key, [waiter]) };
  }

  has(key: string): boolean {
    return this.#byTask.has(key);
  }

  /** Releases those whose message an agent has taken; the others wait for the next round. */
  settle(state: TaskState, entry: Entry): void {
    const waiters = this.#byTask.get(state.key);
    const outcome = outcomeOf(entry);
    if (waiters === undefined || outcome === undefined) return;
    // A held task takes nobody's message before it has what it needs: all are told.
    const released =
      outcome.reason === undefined
        ? waiters.filter((waiter) => !stillWaits(state, waiter.messageId))
        : [...waiters];
    this.#remove(state.key, released);
    for (const waiter of released) waiter.resolve(outcome);
  }

  fail(key: string, error: Error): void {
    const waiters = this.#byTask.get(key) ?? [];
    this.#byTask.delete(key);
    for (const waiter of waiters) waiter.reject(error);
  }

  failAll(error: Error): void {
    for (const key of [...this.#byTask.keys()]) this.fail(key, error);
  }

  #remove(key: string, gone: readonly Waiter[]): void {
    const left = (this.#byTask.get(key) ?? []).filter((waiter) => !gone.includes(waiter));
    if (left.length === 0) this.#byTask.delete(key);
    else this.#byTask.set(key, left);
  }
}

function stillWaits(state: TaskState, messageId: string): boolean {
  for (const { mailbox } of state.agents.values()) {
    if (mailbox.some((mail) => mail.message.id === messageId)) return !wasTaken(state, messageId);
  }
  return false;
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
