/** Drives one queue: decides who may go now, hands it to the handler, and makes the result durable. */
import { type Clock, RowConflictError, type Store } from "../engine/ports.js";
import { type BackoffPolicy, backoffDelay, Circuits, DEFAULT_BACKOFF, type Random } from "../net/index.js";
import { Agenda } from "./agenda.js";
import { Backlog } from "./backlog.js";
import { type Final, finish, type OutboxBegin, type OutboxFinish, type OutboxRetry } from "./item.js";
import type { LaneHead, OutboxReads, StoredItem } from "./ports.js";

/** One attempt, as the handler gets it. */
export interface Attempt {
  readonly item: StoredItem;
  /** 1, 2, 3 …; attempts that a crash cut off are counted only if the queue journals attempts. */
  readonly number: number;
  /** An earlier attempt may have got through, without anybody having heard of it. */
  readonly interrupted: boolean;
  /** Aborts at the time limit of the attempt and at shutdown. The handler ends soon after, whatever it answers. */
  readonly signal: AbortSignal;
}

export type AttemptResult =
  | { readonly kind: "delivered"; readonly note?: unknown }
  /** It will never be delivered. */
  | { readonly kind: "refused"; readonly reason: string; readonly note?: unknown }
  | {
      readonly kind: "retry";
      readonly reason: string;
      /** Milliseconds; in place of the backoff, unless it is shorter than the backoff's first pause. */
      readonly after?: number;
      /** The request may have got through. */
      readonly uncertain?: boolean;
      /** The target is alive and only wants to wait: does not count against its circuit. */
      readonly answered?: boolean;
    };

/** A throw is a retry. Must recognise the item by its id on a further attempt, or ask the other side to. */
export type Handler = (attempt: Attempt) => Promise<AttemptResult>;

/**
 * Makes an outcome durable: commits the row `finish` together with what the owner of the queue has to say about it. Must
 * not be refused for a lack of room: the outcome is known. When it throws, it is called again after a pause.
 */
export type Settle = (item: StoredItem, final: Final, finish: OutboxFinish) => Promise<unknown>;

export interface QueueOptions {
  readonly queue: string;
  readonly handler: Handler;
  /** Default: the row alone. */
  readonly settle?: Settle;
  /** Attempts at once. Default 64. */
  readonly concurrency?: number;
  /** Attempts at once to one target. Default 4. */
  readonly targetConcurrency?: number;
  readonly backoff?: BackoffPolicy;
  readonly circuits?: Circuits;
  /** Milliseconds that an attempt may take. Default 60 s. */
  readonly timeLimit?: number;
  /**
   * Commits the beginning of each attempt, at the price of a commit: for targets that do not recognise ids, so that
   * after a crash the handler knows that an attempt was under way. May be decided for each item. Default false.
   */
  readonly journalAttempts?: boolean | ((item: StoredItem) => boolean);
}

export interface DispatcherParts {
  readonly store: Pick<Store, "commit">;
  readonly reads: OutboxReads;
  readonly clock: Clock;
  readonly random?: Random;
  /** Told of what goes wrong where nobody waits for an answer. */
  readonly report: (problem: { code: string; message: string; cause: unknown }) => void;
}

const PAGE = 256;
/** How long to wait when the store did not take what it was given. */
const STORE_PAUSE = 1_000;
/** How long `stop` waits for a store that cannot be written. */
const STOP_PATIENCE = 10_000;

export class Dispatcher {
  /** For limits on what waits: whoever makes an item adds it here. */
  readonly backlog: Backlog;
  readonly #parts: DispatcherParts;
  readonly #options: QueueOptions;
  readonly #random: Random;
  readonly #circuits: Circuits;
  readonly #agenda = new Agenda();
  /** Heads in the agenda or under way: each is in one place only. */
  readonly #known = new Set<string>();
  readonly #busy = new Map<string, number>();
  /** Items in an attempt: what comes of it counts, whatever their deadline. */
  readonly #attempted = new Set<string>();
  /** Outcomes that are known but could not be committed yet: their attempt is not made again. */
  readonly #unsettled = new Map<string, Final>();
  /** Outcomes on their way to the store: whoever comes with another one for the same item waits for the first. */
  readonly #settling = new Map<string, Promise<void>>();
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  /** What to look for: everything, or these lanes. */
  #lookEverywhere = false;
  readonly #lanes = new Set<string>();
  #nextDeadline: number | undefined;
  /** When to look again, after the store could not say what waits. */
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
      // Batches take effect in order: an empty one is done when everything before it is.
      written: () => parts.store.commit({ appends: [] }, "result"),
    });
    this.#circuits = options.circuits ?? new Circuits({ random: this.#random });
  }

  /**
   * Takes up what waits. To be called after each commit that enqueued something, with the lanes of that where they are
   * known: then nothing else is looked at.
   */
  wake(lanes?: Iterable<string>): void {
    if (lanes === undefined) this.#lookEverywhere = true;
    else for (const lane of lanes) this.#lanes.add(lane);
    this.#look();
  }

  /** Somebody knows that the target is back: its circuit closes and what waits for it is due now. */
  retryNow(target: string): void {
    this.#circuits.reset(target);
    this.#agenda.hasten(target, this.#parts.clock.now());
    this.#pump();
  }

  /** Attempts under way. */
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
   * Aborts attempts under way and waits for them; what has no outcome yet is taken up by the next process. Outcomes that
   * the store cannot take for the moment are left to it.
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

  /** The number orders the pages of one look and is kept no longer: what comes late may have a lower one. */
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
    this.#agenda.add(head);
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
    this.#agenda.ripen(now);
    // An open circuit or a full target must not keep anybody from being told.
    if (this.#nextDeadline !== undefined && this.#nextDeadline <= now) this.#expireOverdue(now);
    const mayGo = (target: string): boolean => {
      if ((this.#busy.get(target) ?? 0) >= targetConcurrency) return false;
      const admission = this.#circuits.admit(target, now);
      if (!admission.admitted && admission.retryAt !== undefined) {
        wakeAt = Math.min(wakeAt, admission.retryAt);
      }
      return admission.admitted;
    };
    while (this.#running.size < concurrency) {
      const head = this.#agenda.take(mayGo);
      if (head === undefined) break;
      this.#begin(head);
    }
    const never = Number.POSITIVE_INFINITY;
    const { nextDue = never } = this.#agenda;
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

  /** Items behind the head of their lane are among them: their order does not matter any more. */
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
          // One that its owner cannot settle must not keep the others from being told.
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
    const run: Promise<void> = this.#run(head).finally(() => {
      this.#running.delete(run);
      this.#attempted.delete(head.id);
      const left = (this.#busy.get(head.target) ?? 1) - 1;
      if (left > 0) this.#busy.set(head.target, left);
      else this.#busy.delete(head.target);
      this.#pump();
    });
    this.#running.add(run);
  }

  /** One attempt from the look into the store to the durable result. Never rejects. */
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
      this.#agenda.add({ ...head, dueAt: this.#parts.clock.now() + STORE_PAUSE });
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
        // That this one was not sent says nothing about an earlier one that was cut off.
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

  /** A target that asks for no pause at all gets the same as one that says nothing. */
  #pauseAfter(attempts: number, asked: number): number {
    const { backoff = DEFAULT_BACKOFF } = this.#options;
    return asked >= backoff.base ? asked : Math.max(asked, backoffDelay(backoff, attempts, this.#random));
  }

  /**
   * `undefined` when we are stopping and nothing is certain: the next process tries again. A refusal is not: it may be
   * nothing but the abort.
   */
  async #handle(item: StoredItem): Promise<AttemptResult | undefined> {
    const limit = new AbortController();
    const cancel = this.#parts.clock.after(this.#options.timeLimit ?? 60_000, () =>
      limit.abort(new Error("the attempt took too long")),
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
        reason: error instanceof Error ? error.message : String(error),
        uncertain: true,
      };
    } finally {
      cancel();
    }
  }

  async #keep(head: LaneHead, retry: OutboxRetry): Promise<void> {
    try {
      await this.#parts.store.commit({ appends: [], rows: [retry] }, "result");
      this.#agenda.add({ ...head, dueAt: retry.dueAt });
    } catch (error) {
      if (!(error instanceof RowConflictError)) throw error;
      await this.#nextOf(head);
    }
  }

  async #finish(head: LaneHead, item: StoredItem, final: Final): Promise<void> {
    const settling = this.#settling.get(item.id) ?? this.#settle(item, final);
    this.#settling.set(item.id, settling);
    try {
      await settling;
    } finally {
      this.#settling.delete(item.id);
    }
    await this.#nextOf(head);
  }

  async #settle(item: StoredItem, final: Final): Promise<void> {
    this.#unsettled.set(item.id, final);
    const row = finish(item.id, final);
    try {
      if (this.#options.settle !== undefined) await this.#options.settle(item, final, row);
      else await this.#parts.store.commit({ appends: [], rows: [row] }, "result");
    } catch (error) {
      // It had its outcome already, from another process.
      if (!(error instanceof RowConflictError) || error.kind !== row.kind) throw error;
    }
    this.#unsettled.delete(item.id);
    this.backlog.remove(item.target);
  }

  async #nextOf({ id, lane }: LaneHead): Promise<void> {
    this.#known.delete(id);
    this.#add(await this.#parts.reads.head(this.#options.queue, lane));
  }

  #expiry(item: StoredItem): Final {
    const why = item.reason === undefined ? "it was never tried" : `the last attempt failed: ${item.reason}`;
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
      message: `the outbox ${this.#options.queue} could not read or write: ${String(cause)}`,
      cause,
    });
  }
}
