/**
 * Continues the work that an earlier process left: first running tasks, then held tasks, then ended tasks with running
 * actions or deliveries. Works in short slices, so that the process serves other callers meanwhile.
 */

import type { Clock } from "../../base/index.js";
import { messageOf, type Report } from "../../base/index.js";
import type { JournalKey, Loop } from "../../journal/index.js";
import type { Store, TaskRow } from "../ports.js";

import type { TaskKernel } from "./task-work.js";

export interface RecoveryParts {
  readonly store: Store;
  readonly kernel: TaskKernel;
  readonly clock: Clock;
  readonly loop: Loop;
  readonly retryHeld: (key: JournalKey) => Promise<unknown>;
  readonly isOpen: () => boolean;
  readonly report: Report;
}

export interface RecoveryProgress {
  /** Running tasks that were recovered, and how many there were at the start. */
  readonly done: number;
  readonly of: number;
}

const PAGE = 50;
const KEYS_AT_ONCE = 1_000;
/** Milliseconds of work before the event loop continues. */
const SLICE = 8;
/** Recovering a task writes units. While more than this are not durable, no further task is recovered. */
const MOST_UNDURABLE = 256;
const READ_AGAIN_AFTER = 250;
const LONGEST_PAUSE = 60_000;

export class Recovery {
  readonly #parts: RecoveryParts;
  #progress: RecoveryProgress | undefined;
  #sliceBegan = 0;
  #wake: (() => void) | undefined;

  constructor(parts: RecoveryParts) {
    this.#parts = parts;
  }

  /** Ends the pause before the next read: no further task is recovered. */
  stop(): void {
    this.#wake?.();
  }

  /** Undefined when recovery has finished. */
  get progress(): RecoveryProgress | undefined {
    return this.#progress;
  }

  /**
   * Resolves when the running tasks are recovered; the others follow.
   * @param onProgress receives the number of recovered tasks and the number of all running tasks
   */
  async run(onProgress: (done: number, of: number) => void = () => {}): Promise<number> {
    const { isOpen, report } = this.#parts;
    // Listed before callers open new tasks: only the tasks of the earlier process count.
    const keys = await this.#runningTasks();
    const reportProgress = (done: number) => {
      this.#progress = { done, of: keys.length };
      onProgress(done, keys.length);
    };
    reportProgress(0);
    let done = 0;
    while (done < keys.length && isOpen()) {
      const page = keys.slice(done, done + PAGE);
      await this.#resume(page);
      done += page.length;
      reportProgress(done);
    }
    this.#resumeTheRest()
      .catch((cause: unknown) => {
        if (isOpen()) report({ code: "recovery_failed", message: messageOf(cause), cause });
      })
      .finally(() => {
        this.#progress = undefined;
      });
    return done;
  }

  async #runningTasks(): Promise<JournalKey[]> {
    const { store } = this.#parts;
    const keys: JournalKey[] = [];
    await this.#eachPage(
      KEYS_AT_ONCE,
      (after) => store.tasks.withStatus("running", after, KEYS_AT_ONCE),
      async (rows) => {
        for (const { key } of rows) keys.push(key);
        await this.#yieldToLoop();
      },
    );
    return keys;
  }

  async #resumeTheRest(): Promise<void> {
    const { store, retryHeld } = this.#parts;
    await this.#eachPage(
      PAGE,
      (after) => store.tasks.withWork("held", after, PAGE),
      async (rows) => {
        // Loading registers them as held, so that values that arrive later also continue them.
        await this.#resume(rows.map((row) => row.key));
        for (const { key } of rows) {
          await retryHeld(key);
          await this.#yieldToLoop();
        }
      },
    );
    await this.#eachPage(
      PAGE,
      (after) => store.tasks.withWork("openWork", after, PAGE),
      (rows) => this.#resume(rows.map((row) => row.key)),
    );
  }

  async #eachPage(
    size: number,
    page: (after: JournalKey | undefined) => Promise<readonly TaskRow[]>,
    use: (rows: readonly TaskRow[]) => Promise<void>,
  ): Promise<void> {
    let after: JournalKey | undefined;
    while (this.#parts.isOpen()) {
      const rows = await this.#untilRead(() => page(after));
      if (rows === undefined) return;
      if (rows.length > 0) await use(rows);
      after = rows.at(-1)?.key;
      if (rows.length < size) return;
    }
  }

  /** A task that cannot be read is reported and does not block the others. */
  async #resume(keys: readonly JournalKey[]): Promise<void> {
    const { kernel, isOpen } = this.#parts;
    try {
      await kernel.loadMany(keys, () => this.#yieldToLoop());
    } catch {
      // At least one of them cannot be read now: load each one separately, and retry until it succeeds.
      if (isOpen()) for (const key of keys) this.#resumeLater(key, 0);
    }
  }

  #resumeLater(key: JournalKey, delay: number): void {
    const { kernel, clock, report, isOpen } = this.#parts;
    const load = () => {
      if (!isOpen()) return;
      kernel.load(key).catch((cause: unknown) => {
        if (!isOpen()) return;
        report({ code: "load_failed", message: messageOf(cause), task: key, cause });
        this.#resumeLater(key, Math.min(LONGEST_PAUSE, Math.max(READ_AGAIN_AFTER, delay * 2)));
      });
    };
    if (delay === 0) load();
    else clock.after(delay, load);
  }

  /** Retries a failed read until it succeeds, because no running task may be left out. */
  async #untilRead<T>(read: () => Promise<T>): Promise<T | undefined> {
    const { clock, report, isOpen } = this.#parts;
    while (isOpen()) {
      try {
        return await read();
      } catch (cause) {
        if (!isOpen()) return undefined;
        report({ code: "load_failed", message: messageOf(cause), cause });
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          clock.after(READ_AGAIN_AFTER, resolve);
        });
      }
    }
    return undefined;
  }

  /** Waits until the write queue is short enough and, at the end of a slice, for the event loop. */
  async #yieldToLoop(): Promise<void> {
    const { clock, loop, store } = this.#parts;
    if (store.writer.undurable > MOST_UNDURABLE) await store.writer.below(MOST_UNDURABLE);
    if (clock.now() - this.#sliceBegan < SLICE) return;
    await new Promise<void>((resolve) => loop.soon(resolve));
    this.#sliceBegan = clock.now();
  }
}
