/**
 * Takes up what an earlier process left: running tasks first, then those that wait for something an agent needs, then
 * those that ended with work under way. In slices, so that everybody else is served meanwhile.
 */
import type { Clock, Loop, Problem } from "../../journal/ports.js";
import type { JournalKey, Store, TaskRow } from "../ports.js";
import { describe } from "./actions.js";
import type { TaskKernel } from "./task-work.js";

export interface RecoveryParts {
  readonly store: Store;
  readonly kernel: TaskKernel;
  readonly clock: Clock;
  readonly loop: Loop;
  readonly retryHeld: (key: JournalKey) => Promise<void>;
  readonly isOpen: () => boolean;
  readonly report: (problem: Problem) => void;
}

export interface RecoveryProgress {
  /** Running tasks that were taken up, and how many there were at the start. */
  readonly done: number;
  readonly of: number;
}

const PAGE = 50;
const KEYS_AT_ONCE = 1_000;
/** Milliseconds of work in a row. */
const SLICE = 8;
/** Taking tasks up writes: this many units may wait before more of them are taken up. */
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

  /** Whoever waits for the next attempt waits no longer: nothing is taken up any more. */
  stop(): void {
    this.#wake?.();
  }

  /** Nothing when everything is taken up. */
  get progress(): RecoveryProgress | undefined {
    return this.#progress;
  }

  /**
   * Resolves when the running tasks are taken up; the others follow.
   * @param onProgress told how many running tasks are taken up, and of how many
   */
  async run(onProgress: (done: number, of: number) => void = () => {}): Promise<number> {
    const { isOpen, report } = this.#parts;
    // Found before anybody opens more of them: what counts is what the earlier process left.
    const keys = await this.#runningTasks();
    const tell = (done: number) => {
      this.#progress = { done, of: keys.length };
      onProgress(done, keys.length);
    };
    tell(0);
    let done = 0;
    while (done < keys.length && isOpen()) {
      const page = keys.slice(done, done + PAGE);
      await this.#takeUp(page);
      done += page.length;
      tell(done);
    }
    this.#takeUpTheRest()
      .catch((cause: unknown) => {
        if (isOpen()) report({ code: "recovery_failed", message: describe(cause), cause });
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
        await this.#breathe();
      },
    );
    return keys;
  }

  async #takeUpTheRest(): Promise<void> {
    const { store, retryHeld } = this.#parts;
    await this.#eachPage(
      PAGE,
      (after) => store.tasks.withWork("held", after, PAGE),
      async (rows) => {
        // In memory it is known that they are held, so that what is brought later reaches them, too.
        await this.#takeUp(rows.map((row) => row.key));
        for (const { key } of rows) {
          await retryHeld(key);
          await this.#breathe();
        }
      },
    );
    await this.#eachPage(
      PAGE,
      (after) => store.tasks.withWork("openWork", after, PAGE),
      (rows) => this.#takeUp(rows.map((row) => row.key)),
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

  /** A task that cannot be read is reported and keeps no other one from running. */
  async #takeUp(keys: readonly JournalKey[]): Promise<void> {
    const { kernel, isOpen } = this.#parts;
    try {
      await kernel.loadMany(keys, () => this.#breathe());
    } catch {
      // One of them cannot be read, or none for the moment: each by itself, until it is there.
      if (isOpen()) for (const key of keys) this.#takeUpLater(key, 0);
    }
  }

  #takeUpLater(key: JournalKey, delay: number): void {
    const { kernel, clock, report, isOpen } = this.#parts;
    const load = () => {
      if (!isOpen()) return;
      kernel.load(key).catch((cause: unknown) => {
        if (!isOpen()) return;
        report({ code: "load_failed", message: describe(cause), task: key, cause });
        this.#takeUpLater(key, Math.min(LONGEST_PAUSE, Math.max(READ_AGAIN_AFTER, delay * 2)));
      });
    };
    if (delay === 0) load();
    else clock.after(delay, load);
  }

  /** A read that fails is tried again: a running task must not be left lying. */
  async #untilRead<T>(read: () => Promise<T>): Promise<T | undefined> {
    const { clock, report, isOpen } = this.#parts;
    while (isOpen()) {
      try {
        return await read();
      } catch (cause) {
        if (!isOpen()) return undefined;
        report({ code: "load_failed", message: describe(cause), cause });
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          clock.after(READ_AGAIN_AFTER, resolve);
        });
      }
    }
    return undefined;
  }

  async #breathe(): Promise<void> {
    const { clock, loop, store } = this.#parts;
    if (store.writer.undurable > MOST_UNDURABLE) await store.writer.below(MOST_UNDURABLE);
    if (clock.now() - this.#sliceBegan < SLICE) return;
    await new Promise<void>((resolve) => loop.soon(resolve));
    this.#sliceBegan = clock.now();
  }
}
