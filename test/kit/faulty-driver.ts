/**
 * A disk that fails when it is told to: it stands between the writer of a store and the store's driver. Reads are the
 * real store's.
 */
import { onTestFinished } from "vitest";
import type { Batch, Group, GroupResult, StoreDriver } from "../../src/journal/ports.js";
import { systemClock, systemLoop } from "../../src/journal/system.js";
import { Writer, type WriterLimits } from "../../src/journal/writer.js";
import { type FullStore, openStore, type StoreOptions } from "../../src/store/index.js";
import { replacing } from "./replacing.js";

export type Fate =
  /** Nothing is written; it may work the next time. */
  | "transient"
  /** It is written, but the answer is lost on the way. */
  | "written, not told"
  /** It is not written, and the answer is lost on the way. */
  | "not written, not told"
  /** Nothing is written, now or ever. */
  | "final";

export class FaultyDisk {
  /** Asked for every group that is to be written; without an answer the group is written. */
  fate: (group: Group) => Fate | undefined = () => undefined;
  /** Asked for every batch; an error refuses it for good, and only it. */
  refuse: (batch: Batch) => Error | undefined = () => undefined;
  /** How often something was to be written. */
  attempts = 0;
  readonly #results = new Map<number, GroupResult | "not_committed">();
  #held: (() => void)[] | undefined;

  /** What is to be written from now on waits. */
  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const write of held) write();
  }

  readonly wrap = (driver: StoreDriver): StoreDriver => ({
    write: (group, done) => {
      this.attempts++;
      const write = () => this.#write(driver, group, done);
      if (this.#held === undefined) write();
      else this.#held.push(write);
    },
    // The first question finds nobody who knows.
    outcome: ({ seq }, done) => {
      const result = this.#results.get(seq);
      if (result === undefined) throw new Error(`the fate of group ${seq} was told already`);
      if (this.#asked.has(seq)) done(result);
      else {
        this.#asked.add(seq);
        done(undefined);
      }
    },
  });

  readonly #asked = new Set<number>();

  #write(driver: StoreDriver, group: Group, done: (result: GroupResult) => void): void {
    const fate = this.fate(group);
    const cause = new Error(`the disk was told to fail (${fate})`);
    switch (fate) {
      case undefined:
        this.#pass(driver, group, done);
        return;
      case "transient":
      case "final":
        done({ kind: fate, cause });
        return;
      case "not written, not told":
        this.#results.set(group.seq, "not_committed");
        done({ kind: "unknown", cause });
        return;
      case "written, not told":
        this.#pass(driver, group, (result) => {
          this.#results.set(group.seq, result);
          done({ kind: "unknown", cause });
        });
        return;
    }
  }

  /** The batches that are not refused, to the real driver. */
  #pass(driver: StoreDriver, group: Group, done: (result: GroupResult) => void): void {
    const refusals = group.batches.map((batch) => this.refuse(batch));
    if (refusals.every((refusal) => refusal === undefined)) {
      driver.write(group, done);
      return;
    }
    const kept = group.batches.filter((_, index) => refusals[index] === undefined);
    driver.write({ ...group, batches: kept }, (result) => {
      if (result.kind !== "committed") {
        done(result);
        return;
      }
      const outcomes = [...result.outcomes];
      done({
        ...result,
        outcomes: refusals.map((refusal) => refusal ?? outcomes.shift() ?? []),
      });
    });
  }
}

/** A store for one test in whose queue there is room for so many writes. */
export function openSmallStore(units: number): Promise<FullStore> {
  return openStoreOn(new FaultyDisk(), { path: ":memory:" }, { units });
}

/** A real store for one test, with a writer that works on such a disk. */
export async function openStoreOn(
  disk: FaultyDisk,
  place: StoreOptions = { path: ":memory:" },
  limits: Partial<WriterLimits> = {},
): Promise<FullStore> {
  const store = await openStore(place);
  const writer = new Writer({
    driver: disk.wrap(store.driver),
    clock: systemClock,
    loop: systemLoop,
    limits,
    position: await store.position(),
  });
  onTestFinished(async () => {
    disk.fate = () => undefined;
    disk.release();
    await writer.drained();
    writer.close();
    await store.close();
  });
  return replacing(store, { writer, commit: (batch, kind) => writer.commit(batch, kind) });
}
