/** Drives one queue: selects the next item, passes it to the handler and makes the result durable. */
import {
  CircuitBreaker,
  type Clock,
  DEFAULT_RETRY_POLICY,
  messageOf,
  type Random,
  type Report,
  type RetryPolicy,
  retryDelay,
} from "../base/index.js";
import type { Store } from "../engine/index.js";
import { RowConflictError } from "../journal/index.js";
import { Backlog } from "./backlog.js";
import { DueQueue } from "./due-queue.js";
import { type FinalOutcome, finish, type OutboxBegin, type OutboxFinish, type OutboxRetry } from "./item.js";
import type { LaneHead, OutboxReads, StoredItem } from "./ports.js";

/** One attempt, as the handler receives it. */
export interface Attempt {
  readonly item: StoredItem;
  /** 1, 2, 3 …; attempts that a crash cut off are counted only if the queue journals attempts. */
  readonly number: number;
  /** An earlier attempt may have reached the target without its result being known. */
  readonly interrupted: boolean;
  /** Aborts at the time limit of the attempt and at shutdown. The handler must end soon after, with any result. */
  readonly signal: AbortSignal;
}

export type AttemptResult =
  | { readonly kind: "delivered"; readonly note?: unknown }
  /** It will never be delivered. */
  | { readonly kind: "refused"; readonly reason: string; readonly note?: unknown }
  | {
      readonly kind: "retry";
      readonly reason: string;
      /** Milliseconds. Replaces the backoff, unless it is shorter than the backoff's first pause. */
      readonly after?: number;
      /** The request may have reached the target. */
      readonly uncertain?: boolean;
      /** The target is alive and asks to wait: does not count against its circuit. */
      readonly answered?: boolean;
    };

/** A throw counts as `retry`. A further attempt has the same id: the handler or the target must recognize it. */
export type DeliveryHandler = (attempt: Attempt) => Promise<AttemptResult>;

/**
 * Makes an outcome durable: commits the row `finish` together with the queue owner's rows. Commit it as a `result`,
 * which is never rejected for lack of capacity. When it throws, it is called again after a pause.
 */
export type Settle = (item: StoredItem, final: FinalOutcome, finish: OutboxFinish) => Promise<unknown>;

export interface QueueOptions {
  readonly queue: string;
  readonly handler: DeliveryHandler;
  /** Default: the row alone. */
  readonly settle?: Settle;
  /** Attempts at once. Default 64. */
  readonly concurrency?: number;
  /**
   * Milliseconds after which an attempt no longer occupies one of these places, so that silent targets do not delay the
   * others. Default 2 s.
   */
  readonly slowAfter?: number;
  /** Attempts at once to one target. Default 4. */
  readonly targetConcurrency?: number;
  readonly backoff?: RetryPolicy;
  readonly circuits?: CircuitBreaker;
  /** Milliseconds that an attempt may take. Default 60 s. */
  readonly timeLimit?: number;
  /**
   * Commits the start of each attempt, at the cost of a commit: for targets that do not recognize ids, so that the
   * handler learns after a crash that an attempt was interrupted. Can be decided per item. Default false.
   */
  readonly journalAttempts?: boolean | ((item: StoredItem) => boolean);
}

export interface DispatcherParts {
  readonly store: Pick<Store, "commit">;
  readonly reads: OutboxReads;
  readonly clock: Clock;
  readonly random?: Random;
  /** Receives failures that no caller is waiting for. */
  readonly report: Report;
}

const PAGE = 256;
/** Pause after a failed commit. */
const STORE_PAUSE = 1_000;
/** How long `stop` waits for a store that cannot be written. */
const STOP_PATIENCE = 10_000;

/** How many slow attempts may run beside the others, as a multiple of `concurrency`. */
const MOST_SLOW = 8;
/** The part of the places that targets get whose last attempt was slow. */
const SHARE_OF_SLOW = 4;

export class Dispatcher {
  /** Counts waiting items for limits: callers that create an item add it here. */
  readonly backlog: Backlog;
  readonly #parts: DispatcherParts;
  readonly #options: QueueOptions;
  readonly #random: Random;
  readonly #circuits: CircuitBreaker;
  readonly #dueQueue = new DueQueue();
  /** Heads in the queue or being attempted: each is tracked once. */
  readonly #known = new Set<string>();
  readonly #busy = new Map<string, number>();
  /** Attempts that occupy a place, those of them to slow targets, and slow attempts that occupy none. */
  readonly #places = { taken: 0, bySlow: 0, slow: 0 };
  /** Targets whose last attempt was slow. */
  readonly #slowTargets = new Set<string>();
  /** Items being attempted: the result of the attempt counts, even after their deadline. */
  readonly #attempted = new Set<string>();
  /** Outcomes that could not be committed yet: their attempt is not repeated. */
  readonly #unsettled = new Map<string, FinalOutcome>();
  /** Outcomes being committed: a second outcome for the same item waits for the first. */
  readonly #settling = new Map<string, Promise<void>>();
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  /** What to scan: everything, or these lanes. */
  #lookEverywhere = false;
  readonly #lanes = new Set<string>();
  #nextDeadline: number | undefined;
  /** When to scan again after a failed read of the store. */
  #loadAgainAt: number | undefined;
  #loading: Promise<void> | undefined;
  #isCounted = false;
  #cancelTimer: (() => void) | undefined;

  constructor(parts: DispatcherParts, options: QueueOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#random = parts.random ?? Math.random;
    this.backlog = new Backlog({
      stored: () => parts.reads.waitingByTarget(options.queue),
      // Batches take effect in order: an empty one resolves when everything before it is durable.
      written: () => parts.store.commit({ appends: [] }, "result"),
    });
    this.#circuits = options.circuits ?? new CircuitBreaker({ random: this.#random });
  }

  /**
   * Starts waiting items. Call it after each commit that enqueued something, with its lanes if known: then only those
   * lanes are read.
   */
  wake(lanes?: Iterable<string>): void {
    if (lanes === undefined) this.#lookEverywhere = true;
    else for (const lane of lanes) this.#lanes.add(lane);
    this.#look();
  }

  /** The target is known to be back: closes its circuit and makes its waiting items due now. */
  retryNow(target: string): void {
    this.#circuits.reset(target);
    this.#dueQueue.hasten(target, this.#parts.clock.now());
    this.#pump();
  }

  get queue(): string {
    return this.#options.queue;
  }

  /**
   * Gives a waiting item up: its owner is notified as if it had expired. Returns whether it was waiting; an item that is
   * being attempted is not.
   */
  async abandon(id: string, reason: string): Promise<boolean> {
    const item = await this.#parts.reads.item(id);
    if (item === undefined || item.queue !== this.queue || item.outcome !== undefined) return false;
    if (this.#attempted.has(id) || this.#unsettled.has(id)) return false;
    const at = this.#parts.clock.now();
    await this.#finish(item, item, { outcome: "expired", attempts: item.attempts, at, reason });
    this.#pump();
    return true;
  }

  /** Number of running attempts. */
  get underWay(): number {
    return this.#running.size;
  }

  /** Resolves when there is nothing to do before the next timer. */
  async quiet(): Promise<void> {
    while (this.#loading !== undefined || this.#running.size > 0) {
      await Promise.all([this.#loading, ...this.#running]);
    }
  }

  /**
   * Aborts running attempts and waits for them. Items without an outcome, and outcomes that the store cannot write at
   * the moment, are left to the next process.
   */
  async stop(): Promise<void> {
    this.#cancelTimer?.();
    this.#stop.abort();
    const patience = new Promise<void>((resolve) => {
      this.#cancelTimer = this.#parts.clock.after(STOP_PATIENCE, resolve);
    });
    await Promise.race([this.quiet(), patience]);
    this.#cancelTimer?.();
  }

  #look(): void {
    if (this.#stop.signal.aborted || this.#loading !== undefined) return;
    if (!this.#lookEverywhere && this.#lanes.size === 0) return;
    this.#loading = this.#load().finally(() => {
      this.#loading = undefined;
      this.#look();
    });
  }

  async #load(): Promise<void> {
    const { reads } = this.#parts;
    const { queue } = this.#options;
    const lanes = this.#lookEverywhere ? undefined : [...this.#lanes];
    this.#lookEverywhere = false;
    this.#lanes.clear();
    try {
      if (!this.#isCounted) await this.backlog.load();
      this.#isCounted = true;
      if (lanes === undefined) await this.#loadEverything();
      else for (const lane of lanes) this.#add(await reads.head(queue, lane));
      this.#nextDeadline = await reads.nextDeadline(queue, 0);
    } catch (error) {
      this.#storeFailed(error);
      this.#loadAgainAt = this.#parts.clock.now() + STORE_PAUSE;
    }
    this.#pump();
  }

  /** The number orders the pages of one scan only: a later item may have a lower one. */
  async #loadEverything(): Promise<void> {
    let last = 0;
    for (;;) {
      const heads = await this.#parts.reads.heads(this.#options.queue, last, PAGE);
      for (const head of heads) this.#add(head);
      if (heads.length < PAGE) return;
      last = heads.at(-1)?.number ?? last;
    }
  }

  #add(head: LaneHead | undefined): void {
    if (head === undefined || this.#known.has(head.id)) return;
    this.#known.add(head.id);
    this.#dueQueue.add(head);
  }

  #pump(): void {
    if (this.#stop.signal.aborted) return;
    const now = this.#parts.clock.now();
    const { concurrency = 64, targetConcurrency = 4 } = this.#options;
    let wakeAt = Number.POSITIVE_INFINITY;
    if (this.#loadAgainAt !== undefined && this.#loadAgainAt <= now) {
      this.#loadAgainAt = undefined;
      this.wake();
    }
    this.#dueQueue.ripen(now);
    // Expiry does not depend on open circuits or full targets.
    if (this.#nextDeadline !== undefined && this.#nextDeadline <= now) this.#expireOverdue(now);
    const mayGo = (target: string): boolean => {
      if ((this.#busy.get(target) ?? 0) >= targetConcurrency) return false;
      if (this.#slowTargets.has(target) && this.#places.bySlow * SHARE_OF_SLOW >= concurrency) return false;
      const admission = this.#circuits.admit(target, now);
      if (!admission.admitted && admission.retryAt !== undefined) {
        wakeAt = Math.min(wakeAt, admission.retryAt);
      }
      return admission.admitted;
    };
    while (this.#places.taken < concurrency) {
      const head = this.#dueQueue.take(mayGo);
      if (head === undefined) break;
      this.#begin(head);
    }
    const never = Number.POSITIVE_INFINITY;
    const { nextDue = never } = this.#dueQueue;
    this.#sleepUntil(Math.min(wakeAt, nextDue, this.#nextDeadline ?? never, this.#loadAgainAt ?? never), now);
  }

  #expireOverdue(now: number): void {
    this.#nextDeadline = undefined;
    const run: Promise<void> = this.#expireUntil(now)
      .catch((error: unknown) => {
        this.#storeFailed(error);
        this.#nextDeadline = this.#parts.clock.now() + STORE_PAUSE;
      })
      .finally(() => {
        this.#running.delete(run);
        this.#pump();
      });
    this.#running.add(run);
  }

  /** Includes items behind the head of their lane: once expired, their order does not matter. */
  async #expireUntil(now: number): Promise<void> {
    const { reads } = this.#parts;
    const { queue } = this.#options;
    const failed = new Set<string>();
    for (;;) {
      const limit = PAGE + this.#attempted.size + failed.size;
      const items = await reads.overdue(queue, now, limit);
      for (const item of items) {
        if (this.#attempted.has(item.id) || failed.has(item.id)) continue;
        try {
          await this.#finish(item, item, this.#unsettled.get(item.id) ?? this.#expiry(item));
        } catch (error) {
          // An item that its owner cannot settle must not stop the others from expiring.
          if (failed.size === 0) this.#storeFailed(error);
          failed.add(item.id);
          if (failed.size >= PAGE) throw error;
        }
      }
      if (items.length < limit || this.#stop.signal.aborted) break;
    }
    const next = await reads.nextDeadline(queue, now);
    const again = this.#parts.clock.now() + STORE_PAUSE;
    this.#nextDeadline = failed.size === 0 ? next : Math.min(again, next ?? again);
  }

  #sleepUntil(time: number, now: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (time === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = this.#parts.clock.after(Math.max(0, time - now), () => this.#pump());
  }

  #begin(head: LaneHead): void {
    this.#busy.set(head.target, (this.#busy.get(head.target) ?? 0) + 1);
    this.#attempted.add(head.id);
    const leave = this.#takePlace(head.target);
    const run: Promise<void> = this.#run(head).finally(() => {
      leave();
      this.#running.delete(run);
      this.#attempted.delete(head.id);
      const left = (this.#busy.get(head.target) ?? 1) - 1;
      if (left > 0) this.#busy.set(head.target, left);
      else this.#busy.delete(head.target);
      this.#pump();
    });
    this.#running.add(run);
  }

  /** Occupies a place until the returned function is called, or until the attempt is slow. */
  #takePlace(target: string): () => void {
    const { concurrency = 64, slowAfter = 2_000 } = this.#options;
    const places = this.#places;
    const bySlow = this.#slowTargets.has(target) ? 1 : 0;
    places.taken += 1;
    places.bySlow += bySlow;
    const leave = (): void => {
      places.taken -= 1;
      places.bySlow -= bySlow;
    };
    let isSlow = false;
    const cancel = this.#parts.clock.after(slowAfter, () => {
      this.#slowTargets.add(target);
      if (places.slow >= MOST_SLOW * concurrency) return;
      isSlow = true;
      places.slow += 1;
      leave();
      this.#pump();
    });
    const began = this.#parts.clock.now();
    return () => {
      cancel();
      if (this.#parts.clock.now() - began < slowAfter) this.#slowTargets.delete(target);
      if (isSlow) places.slow -= 1;
      else leave();
    };
  }

  /** One attempt, from reading the item to the durable result. Never rejects. */
  async #run(head: LaneHead): Promise<void> {
    try {
      const item = await this.#parts.reads.item(head.id);
      if (item === undefined || item.outcome !== undefined) {
        this.#circuits.abandoned(head.target);
        return await this.#nextOf(head);
      }
      const known = this.#unsettled.get(item.id);
      if (known !== undefined) {
        this.#circuits.abandoned(head.target);
        return await this.#finish(head, item, known);
      }
      if (item.deadlineAt !== undefined && item.deadlineAt <= this.#parts.clock.now()) {
        this.#circuits.abandoned(head.target);
        return await this.#finish(head, item, this.#expiry(item));
      }
      await this.#attempt(head, item);
    } catch (error) {
      this.#circuits.abandoned(head.target);
      this.#storeFailed(error);
      this.#dueQueue.add({ ...head, dueAt: this.#parts.clock.now() + STORE_PAUSE });
    }
  }

  async #attempt(head: LaneHead, item: StoredItem): Promise<void> {
    const { store, clock } = this.#parts;
    const { journalAttempts = false } = this.#options;
    if (typeof journalAttempts === "function" ? journalAttempts(item) : journalAttempts) {
      const begin: OutboxBegin = { kind: "outbox.begin", id: item.id };
      await store.commit({ appends: [], rows: [begin] }, "result");
    }
    const result = await this.#handle(item);
    if (result === undefined) return this.#circuits.abandoned(head.target);
    const attempts = item.attempts + 1;
    const at = clock.now();
    switch (result.kind) {
      case "delivered":
        this.#circuits.succeeded(head.target);
        return this.#finish(head, item, { outcome: "delivered", attempts, at, note: result.note });
      case "refused":
        this.#circuits.succeeded(head.target);
        return this.#finish(head, item, {
          outcome: "refused",
          attempts,
          at,
          reason: result.reason,
          note: result.note,
        });
      case "retry": {
        if (result.answered === true) this.#circuits.succeeded(head.target);
        else this.#circuits.failed(head.target, at);
        const { reason } = result;
        // An unsent attempt proves nothing about an earlier, interrupted one.
        const uncertain = result.uncertain === true || item.interrupted;
        if (item.deadlineAt !== undefined && item.deadlineAt <= at) {
          return this.#finish(head, item, this.#expiry({ ...item, attempts, reason }));
        }
        const dueAt = at + this.#pauseAfter(attempts, result.after ?? 0);
        await this.#keep(head, { kind: "outbox.retry", id: item.id, attempts, dueAt, reason, uncertain });
        return;
      }
      default:
        result satisfies never;
    }
  }

  /** A target that asks for no pause gets the default pause. */
  #pauseAfter(attempts: number, asked: number): number {
    const { backoff = DEFAULT_RETRY_POLICY } = this.#options;
    return asked >= backoff.base ? asked : Math.max(asked, retryDelay(backoff, attempts, this.#random));
  }

  /**
   * `undefined` while stopping, unless the item was delivered: the next process tries again. A refusal may be caused by
   * the abort.
   */
  async #handle(item: StoredItem): Promise<AttemptResult | undefined> {
    const limit = new AbortController();
    const cancel = this.#parts.clock.after(this.#options.timeLimit ?? 60_000, () =>
      limit.abort(new Error("the attempt timed out")),
    );
    try {
      const result = await this.#options.handler({
        item,
        number: item.attempts + 1,
        interrupted: item.interrupted,
        signal: AbortSignal.any([limit.signal, this.#stop.signal]),
      });
      const certain = result.kind === "delivered" || (result.kind === "retry" && result.uncertain !== true);
      return certain || !this.#stop.signal.aborted ? result : undefined;
    } catch (error) {
      if (this.#stop.signal.aborted) return undefined;
      return {
        kind: "retry",
        reason: messageOf(error),
        uncertain: true,
      };
    } finally {
      cancel();
    }
  }

  async #keep(head: LaneHead, retry: OutboxRetry): Promise<void> {
    try {
      await this.#parts.store.commit({ appends: [], rows: [retry] }, "result");
      this.#dueQueue.add({ ...head, dueAt: retry.dueAt });
    } catch (error) {
      if (!(error instanceof RowConflictError)) throw error;
      await this.#nextOf(head);
    }
  }

  async #finish(head: LaneHead, item: StoredItem, final: FinalOutcome): Promise<void> {
    const settling = this.#settling.get(item.id) ?? this.#settle(item, final);
    this.#settling.set(item.id, settling);
    try {
      await settling;
    } finally {
      this.#settling.delete(item.id);
    }
    await this.#nextOf(head);
  }

  async #settle(item: StoredItem, final: FinalOutcome): Promise<void> {
    this.#unsettled.set(item.id, final);
    const row = finish(item.id, final);
    try {
      if (this.#options.settle !== undefined) await this.#options.settle(item, final, row);
      else await this.#parts.store.commit({ appends: [], rows: [row] }, "result");
    } catch (error) {
      // Another process has already settled it.
      if (!(error instanceof RowConflictError) || error.kind !== row.kind) throw error;
    }
    this.#unsettled.delete(item.id);
    this.backlog.remove(item.target);
  }

  async #nextOf({ id, lane }: LaneHead): Promise<void> {
    this.#known.delete(id);
    this.#add(await this.#parts.reads.head(this.#options.queue, lane));
  }

  #expiry(item: StoredItem): FinalOutcome {
    const why = item.reason === undefined ? "no attempt was made" : `the last attempt failed: ${item.reason}`;
    return {
      outcome: "expired",
      attempts: item.attempts,
      at: this.#parts.clock.now(),
      reason: `not delivered by its deadline; ${why}`,
    };
  }

  #storeFailed(cause: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#parts.report({
      code: "outbox_store",
      message: `outbox ${this.#options.queue}: reading or writing the store failed: ${String(cause)}`,
      cause,
    });
  }
}
