/**
 * What happens when the store refuses a decision for good, or the rules throw: the journal is the truth, so the state
 * is read again, and the commands behind the refused one are decided again.
 */
import type { Types } from "./aggregate.js";
import type { Cache } from "./cache.js";
import { asError, unknownJournal } from "./errors.js";
import type { KernelParts } from "./kernel-parts.js";
import { notify } from "./listeners.js";
import type { KernelUnit, Live, Waiting } from "./live.js";
import type { Reading, StateReader } from "./reading.js";
import type { Writer, Unit as WrittenUnit } from "./writer.js";

const READ_AGAIN_AFTER = 50;
const LONGEST_PAUSE = 5_000;

export class RollBacks<T extends Types> {
  readonly #parts: KernelParts<T>;
  readonly #cache: Cache<T>;
  readonly #reader: StateReader<T>;
  readonly #writer: Writer;
  /** Serves what waited for the state. */
  readonly #continue: (live: Live<T>) => void;

  constructor(
    parts: KernelParts<T>,
    cache: Cache<T>,
    reader: StateReader<T>,
    proceed: (live: Live<T>) => void,
  ) {
    this.#parts = parts;
    this.#cache = cache;
    this.#reader = reader;
    this.#writer = parts.store.writer;
    this.#continue = proceed;
  }

  refused(unit: KernelUnit<T>, error: Error, later: readonly WrittenUnit[]): void {
    const { live } = unit;
    const gone = new Set<WrittenUnit>([unit, ...later]);
    const lost = live.units.filter((other) => gone.has(other));
    const left = live.units.filter((other) => !gone.has(other));
    live.units.splice(0, live.units.length, ...left);
    if (this.#writer.ended || this.#cache.stopped !== undefined) {
      // Nothing becomes durable any longer: every caller is notified, and nothing is read again.
      for (const { handling, after } of lost) {
        this.#notify(live, () => handling.failed?.(error));
        for (const knowledge of after ?? []) this.#notify(live, () => knowledge.handling.failed?.(error));
      }
      return;
    }
    const again: Waiting<T>[] = [];
    for (const { command, handling, after } of lost) {
      // In order: each command, then those that were refused because of it.
      if (handling !== unit.handling && handling.own !== true) again.push([command, handling]);
      for (const knowledge of after ?? []) {
        if (knowledge.handling.own !== true) again.push([knowledge.command, knowledge.handling]);
      }
    }
    this.start(live, again, () => unit.handling.failed?.(error));
  }

  /**
   * @param again commands to decide again, in order
   * @param failed called when the state has been read again
   */
  start(live: Live<T>, again: readonly Waiting<T>[], failed: () => void): void {
    if (live.rollBack === undefined) {
      live.rollBack = { commands: [...again], failed: [failed] };
      // The owner repeats its own commands when it takes the aggregate up.
      live.waiting = live.waiting.filter(([, { own }]) => own !== true);
      live.rollBacks++;
      this.#cache.unsettled.add(live);
      this.#parts.suspend(live);
    } else {
      live.rollBack.commands.unshift(...again);
      live.rollBack.failed.push(failed);
    }
    // Earlier units are still on their way: the journal is read when they are durable.
    if (live.units.length === 0 && live.locks === 0) this.readAgain(live);
  }

  /** At once; after a pause if the commands that were decided again were refused again. */
  readAgain(live: Live<T>): void {
    live.locks++;
    if (live.rollBacks < 2) return this.#readNow(live);
    const delay = Math.min(LONGEST_PAUSE, READ_AGAIN_AFTER * 2 ** Math.min(live.rollBacks, 10));
    this.#parts.clock.after(delay, () => this.#readNow(live));
  }

  #readNow(live: Live<T>): void {
    if (this.#cache.stopped !== undefined) return;
    this.#reader.read(live.key).then(
      (read) => {
        live.locks--;
        this.#replace(live, read);
      },
      (cause: unknown) => {
        if (this.#cache.stopped !== undefined) return;
        this.#parts.report({
          code: "load_failed",
          message: asError(cause).message,
          task: live.key,
          cause,
        });
        this.#parts.clock.after(READ_AGAIN_AFTER, () => this.#readNow(live));
      },
    );
  }

  #replace(live: Live<T>, read: Reading<T>): void {
    const { rollBack } = live;
    if (rollBack === undefined || this.#cache.stopped !== undefined) return;
    live.rollBack = undefined;
    const { state } = read;
    if (state === undefined) {
      const { waiting, readers } = live;
      live.waiting = [];
      live.readers = [];
      this.#cache.leave(live, "missing");
      for (const tell of rollBack.failed) this.#notify(live, tell);
      const error = unknownJournal(live.key);
      for (const [, handling] of [...rollBack.commands, ...waiting]) {
        this.#notify(live, () => handling.failed?.(error));
      }
      for (const reader of readers) this.#notify(live, () => reader.failed(undefined));
      return;
    }
    this.#reader.settle(live, state, read);
    live.work = this.#parts.attach(live, "stored");
    for (const tell of rollBack.failed) this.#notify(live, tell);
    // Commands that were decided once come before those that wait anyway.
    live.waiting.unshift(...rollBack.commands);
    this.#parts.resume(live);
    this.#continue(live);
  }

  #notify({ key }: Live<T>, listener: () => void): void {
    notify(this.#parts.report, key, listener);
  }
}
