/** A disk that fails on demand, between a store's writer and its driver. Reads go to the real store. */
import { onTestFinished } from "vitest";
import { systemClock } from "../../src/base/index.js";
import type { Batch, Group, GroupResult, StoreDriver } from "../../src/journal/ports.js";
import { systemLoop } from "../../src/journal/system.js";
import { Writer, type WriterLimits } from "../../src/journal/writer.js";
import { type FullStore, openStore, type StoreOptions } from "../../src/store/index.js";
import { replacing } from "./replacing.js";

export type Fate =
  /** Nothing is written; the next attempt may succeed. */
  | "transient"
  /** The group is written, but the confirmation is lost. */
  | "written, not told"
  /** The group is not written, and the confirmation is lost. */
  | "not written, not told"
  /** Nothing is written from now on. */
  | "final";

export class FaultyDisk {
  /** Decides the fate of every group; undefined writes it. */
  fate: (group: Group) => Fate | undefined = () => undefined;
  /** Decides on every batch; an error rejects only this batch. */
  refuse: (batch: Batch) => Error | undefined = () => undefined;
  /** Number of attempted writes. */
  attempts = 0;
  readonly #results = new Map<number, GroupResult | "not_committed">();
  #held: (() => void)[] | undefined;

  /** Holds all further writes. */
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
    // The first query finds no answer.
    outcome: ({ seq }, done) => {
      const result = this.#results.get(seq);
      if (result === undefined) throw new Error(`the fate of group ${seq} was already reported`);
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
    const cause = new Error(`simulated disk failure (${fate})`);
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

  /** Passes the batches that are not rejected to the real driver. */
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

/** A store for one test with a small write queue. */
export function openSmallStore(units: number): Promise<FullStore> {
  return openStoreOn(new FaultyDisk(), { path: ":memory:" }, { units });
}

/** A real store for one test, with a writer on such a disk. */
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
