import { expect, it } from "vitest";
import type { JournalRow } from "./ports.js";
import { Projection } from "./projection.js";
import { systemLoop } from "./system.js";

interface Sum {
  number: number;
  total: number;
}

/** Journals of numbers, which add up; one that begins with 0 is of another kind. */
function sums(most: number) {
  const journals = new Map<string, JournalRow[]>();
  const reads: string[] = [];
  const store = (journal: string, ...entries: number[]): number => {
    const rows = journals.get(journal) ?? [];
    const first = (rows.at(-1)?.last ?? 0) + 1;
    const last = first + entries.length - 1;
    journals.set(journal, [...rows, { journal, first, last, position: last, data: JSON.stringify(entries) }]);
    return first;
  };
  const projection = new Projection<Sum, number>({
    read: async (key, { after, limit }) => {
      reads.push(key);
      return (journals.get(key) ?? []).filter(({ last }) => last > after).slice(0, limit);
    },
    loop: systemLoop,
    most,
    number: ({ number }) => number,
    add: (state, entries, first) => {
      if (state === undefined && entries[0] === 0) return undefined;
      const sum = state ?? { number: 0, total: 0 };
      expect(first).toBe(sum.number + 1);
      for (const entry of entries) sum.total += entry;
      sum.number += entries.length;
      return sum;
    },
  });
  return { projection, store, reads };
}

it("adds every entry once, with concurrent callers and with any part already loaded", async () => {
  const { projection, store, reads } = sums(10);
  for (let n = 0; n < 100; n++) store("a", 1, 1);
  const [one, other] = await Promise.all([projection.get("a"), projection.get("a")]);
  expect([one?.total, other?.total]).toEqual([200, 200]);
  const first = store("a", 5, 5);
  reads.length = 0;
  expect((await projection.including("a", [5, 5], first))?.total).toBe(210);
  // A second time, and after something that was not at hand.
  expect((await projection.including("a", [5, 5], first))?.total).toBe(210);
  expect(reads).toEqual([]);
  store("a", 7);
  const later = store("a", 2);
  expect((await projection.including("a", [2], later))?.total).toBe(219);
  expect((await projection.get("a"))?.total).toBe(219);
});

it("keeps those that were asked for last, and nothing of other kinds", async () => {
  const { projection, store, reads } = sums(2);
  store("other", 0);
  expect(await projection.get("other")).toBeUndefined();
  for (const key of ["a", "b", "c"]) store(key, 1);
  for (const key of ["a", "b", "a", "c"]) await projection.get(key);
  reads.length = 0;
  for (const key of ["a", "c", "b"]) expect((await projection.upTo(key, 1))?.total).toBe(1);
  expect(reads).toEqual(["b"]);
});
