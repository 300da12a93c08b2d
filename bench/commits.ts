/** What the disk allows, measured in the same run as what is built on it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "../src/engine/ports.js";
import { type Durability, openSqliteStore } from "../src/store/index.js";

export const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
};

/** Durable commits of one row per second, one after the other, by the same store with the same rows. */
export async function singleCommits(durability: Durability, count: number): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const store = await openSqliteStore({ directory, durability });
  const data = JSON.stringify("x".repeat(800));
  const journal = "01900000-0000-7000-8000-000000000000";
  const took = await seconds(async () => {
    for (let expected = 0; expected < count; expected++) {
      await store.commit({ appends: [{ journal, expected, count: 1, data }] });
    }
  });
  await store.close();
  rmSync(directory, { recursive: true, force: true });
  return count / took;
}

/**
 * Durable appends per second of many writers at once, each waiting for its own before the next: what the store's
 * group commit does with rows like those of messages, and with no engine in front of it.
 */
export async function groupCommits(durability: Durability, writers: number, each: number): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const store = await openSqliteStore({ directory, durability });
  const data = JSON.stringify("x".repeat(600));
  const write = async (journal: string): Promise<void> => {
    for (let expected = 0; expected < each; expected++) {
      await store.commit({ appends: [{ journal, expected, count: 1, data }] });
    }
  };
  const took = await seconds(() =>
    Promise.all(Array.from({ length: writers }, (_, n) => write(`writer-${n}`))),
  );
  await store.close();
  rmSync(directory, { recursive: true, force: true });
  return (writers * each) / took;
}

/** A store that says it is done and writes nothing: what is left is the price of the engine. */
export async function openForgetfulStore(): Promise<Store> {
  const empty = await openSqliteStore({ path: ":memory:" });
  let waiting: (() => void)[] = [];
  const settleAll = (): void => {
    const settled = waiting;
    waiting = [];
    for (const settle of settled) settle();
  };
  return {
    commit: () =>
      new Promise((resolve) => {
        waiting.push(() => resolve({ position: 0 }));
        if (waiting.length === 1) setImmediate(settleAll);
      }),
    read: (journal, options) => empty.read(journal, options),
    readAll: (after, limit) => empty.readAll(after, limit),
    lastNumber: (journal) => empty.lastNumber(journal),
    readSnapshot: (journal) => empty.readSnapshot(journal),
    tasks: empty.tasks,
    close: () => empty.close(),
  };
}
