/** The aggregates in memory: how they get in from the store, and how they leave. Nothing else keeps one. */
import type { Types } from "./aggregate.js";
import { asError } from "./errors.js";
import type { Departure, KernelParts } from "./kernel-parts.js";
import { notify } from "./listeners.js";
import { Live } from "./live.js";
import type { JournalKey, StoredJournal } from "./ports.js";
import type { Reading, StateReader } from "./reading.js";

/** Without an aggregate and an error: there is no such journal. */
export type Loaded<T extends Types> = (live: Live<T> | undefined, error?: Error) => void;

export class Cache<T extends Types> {
  readonly #parts: KernelParts<T>;
  readonly #reader: StateReader<T>;
  readonly #live = new Map<JournalKey, Live<T>>();
  /** Callbacks that wait for a journal that is being read, or that may not be read now. */
  readonly #loading = new Map<JournalKey, Loaded<T>[]>();
  /** Aggregates that are being reloaded, or whose commands wait to be decided. */
  readonly unsettled = new Set<Live<T>>();
  #stopped: Error | undefined;

  constructor(parts: KernelParts<T>, reader: StateReader<T>) {
    this.#parts = parts;
    this.#reader = reader;
  }

  get size(): number {
    return this.#live.size;
  }

  /** Why nothing is loaded any longer, once `stop` was called. */
  get stopped(): Error | undefined {
    return this.#stopped;
  }

  all(): Iterable<Live<T>> {
    return this.#live.values();
  }

  peek(key: JournalKey): Live<T> | undefined {
    return this.#live.get(key);
  }

  isLoading(key: JournalKey): boolean {
    return this.#loading.has(key);
  }

  /** The number of commands that wait for this journal. */
  waitingFor(key: JournalKey): number {
    return this.#live.get(key)?.waiting.length ?? this.#loading.get(key)?.length ?? 0;
  }

  /** Adds an aggregate that begins here. */
  add(live: Live<T>): void {
    this.#live.set(live.key, live);
  }

  /** Calls back at once if it is in memory, else after reading it. */
  with(key: JournalKey, callback: Loaded<T>): void {
    // After the end, what is in memory may have been decided without ever becoming durable.
    if (this.#stopped !== undefined) return callback(undefined, this.#stopped);
    const live = this.#live.get(key);
    if (live !== undefined) return callback(live);
    const waiting = this.#loading.get(key);
    if (waiting !== undefined) {
      waiting.push(callback);
      return;
    }
    this.#loading.set(key, [callback]);
    this.#reader.read(key).then(
      (read) => this.#loaded(key, read),
      (error: unknown) => this.#notLoaded(key, asError(error)),
    );
  }

  load(key: JournalKey): Promise<Live<T> | undefined> {
    return new Promise((resolve, reject) => {
      this.with(key, (live, error) => (error === undefined ? resolve(live) : reject(error)));
    });
  }

  async loadMany(keys: readonly JournalKey[], yieldToLoop: () => Promise<void>): Promise<void> {
    const missing = keys.filter((key) => !this.#live.has(key));
    const others = missing.filter((key) => this.#loading.has(key)).map((key) => this.load(key));
    const own = missing.filter((key) => !this.#loading.has(key));
    // Callers that ask for them meanwhile wait for this read: two reads of a journal could differ in age.
    for (const key of own) this.#loading.set(key, []);
    await Promise.all([this.#loadTogether(own, yieldToLoop), ...others]);
  }

  /** The journal is not loaded while `work` runs. Callers that ask for it wait, and then find it or not. */
  block<V>(key: JournalKey, work: () => Promise<V>): Promise<V> {
    this.#loading.set(key, []);
    return work().finally(() => {
      const waiting = this.#loading.get(key) ?? [];
      this.#loading.delete(key);
      for (const callback of waiting) this.with(key, callback);
    });
  }

  leave(live: Live<T>, why: Departure): void {
    live.gone = true;
    this.unsettled.delete(live);
    if (this.#live.get(live.key) === live) this.#live.delete(live.key);
    this.#parts.detach(live, why);
  }

  /** Nothing is loaded any longer. `end` is called for every aggregate in memory. */
  stop(error: Error, end: (live: Live<T>) => void): void {
    this.#stopped = error;
    for (const live of [...this.#live.values()]) end(live);
    for (const callbacks of this.#loading.values())
      for (const callback of callbacks) callback(undefined, error);
    this.#loading.clear();
  }

  async #loadTogether(keys: readonly JournalKey[], yieldToLoop: () => Promise<void>): Promise<void> {
    let failure: Error | undefined;
    for (let rest = keys; rest.length > 0; ) {
      const stored = await this.#readSome(rest);
      for (const one of stored) {
        if (one.more === true || !this.#addStored(one))
          failure = (await this.#readInPages(one.journal)) ?? failure;
        await yieldToLoop();
      }
      rest = rest.slice(stored.length);
    }
    if (failure !== undefined) throw failure;
  }

  /** Returns why the journal could not be read. */
  async #readInPages(key: JournalKey): Promise<Error | undefined> {
    try {
      this.#loaded(key, await this.#reader.read(key));
      return undefined;
    } catch (error) {
      this.#notLoaded(key, asError(error));
      return asError(error);
    }
  }

  async #readSome(keys: readonly JournalKey[]): Promise<readonly StoredJournal[]> {
    try {
      const stored = await this.#parts.store.readMany(keys);
      if (stored.length === 0) throw new Error(`the store read none of ${keys.length} journals`);
      return stored;
    } catch (error) {
      for (const key of keys) this.#notLoaded(key, asError(error));
      throw error;
    }
  }

  /** Returns whether what was read suffices. */
  #addStored(stored: StoredJournal): boolean {
    const { journal } = stored;
    try {
      const read = this.#reader.fromStored(stored);
      if (read === undefined) return false;
      this.#loaded(journal, read);
    } catch (cause) {
      this.#parts.report({ code: "load_failed", message: asError(cause).message, task: journal, cause });
      this.#notLoaded(journal, asError(cause));
    }
    return true;
  }

  #loaded(key: JournalKey, read: Reading<T>): void {
    const waiting = this.#loading.get(key);
    if (waiting === undefined) return;
    this.#loading.delete(key);
    const { state } = read;
    if (state === undefined) {
      for (const callback of waiting) callback(undefined);
      return;
    }
    const { attach, resume, idle, report } = this.#parts;
    const live = new Live<T>(key, state, 0);
    this.#reader.settle(live, state, read);
    live.work = attach(live, "stored");
    this.#live.set(key, live);
    resume(live);
    for (const callback of waiting) notify(report, key, () => callback(live));
    if (!live.gone) idle(live);
  }

  #notLoaded(key: JournalKey, error: Error): void {
    const waiting = this.#loading.get(key) ?? [];
    this.#loading.delete(key);
    for (const callback of waiting) callback(undefined, error);
  }
}
