import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SearchableEntry } from "../ports/search.js";
import { type OpenSearchIndex, openSearchIndex } from "./search.js";

const ANN = { role: "user", id: "ann" } as const;
const BOB = { role: "user", id: "bob" } as const;

let index: OpenSearchIndex;
beforeEach(() => {
  index = openSearchIndex(":memory:");
});
afterEach(() => index.close());

function entry(number: number, text: string, instance: SearchableEntry["instance"] = ANN): SearchableEntry {
  return { key: `task-${number}`, instance, number, kind: "sent", at: number, text };
}

function numbers(words: string[], query: { limit?: number; kind?: string } = {}): number[] {
  return [...index.find({ words, instance: ANN, limit: 100, ...query })].flat().map(({ number }) => number);
}

function snippet(text: string, ...words: string[]): string | undefined {
  index.add([entry(1, text)], 1);
  const [found] = [...index.find({ words, limit: 1 })].flat();
  return found?.snippet;
}

describe("a large index", () => {
  const long = Array.from({ length: 4_000 }, (_, n) => `a${n}`).join(" ");

  beforeEach(() => {
    for (let n = 1; n <= 100; n += 1) index.add([entry(n, `needle${n % 10} ${long}`)], n);
  });

  it("is searched in parts of limited size, newest first", () => {
    const parts = [...index.find({ words: ["missing"], instance: ANN, limit: 10 })];
    expect(parts.length).toBeGreaterThan(2);
    expect(numbers(["needle7"])).toEqual([97, 87, 77, 67, 57, 47, 37, 27, 17, 7]);
    expect(numbers(["a1", "needle"], { limit: 3 })).toEqual([100, 99, 98]);
    expect(numbers(["needle"], { kind: "other" })).toEqual([]);
  });

  it("shows an excerpt of each text, however often a word occurs in it", () => {
    const found = [...index.find({ words: ["a"], instance: ANN, limit: 100 })].flat();
    expect(found).toHaveLength(100);
    for (const { snippet } of found) expect(snippet.length).toBeLessThan(500);
  });

  it("neither shows entries of others nor those of removed journals", () => {
    index.add([entry(101, "needle7 of bob", BOB)], 101);
    index.remove("task-97");
    expect(numbers(["needle7"])).not.toContain(101);
    expect(numbers(["needle7"])).not.toContain(97);
    expect([...index.find({ words: ["needle7"], limit: 1 })].flat()).toMatchObject([{ number: 101 }]);
  });
});

describe("a snippet", () => {
  it("marks every match, in the text's own spelling", () => {
    expect(snippet("The Zürich rollback, ZURICH!", "zurich", "roll")).toBe(
      "The \u0001Zürich\u0002 \u0001rollback\u0002, \u0001ZURICH\u0002!",
    );
  });

  it("begins shortly before the first match and ends shortly after it", () => {
    const words = Array.from({ length: 100 }, (_, n) => `w${n}`);
    expect(snippet(words.join(" "), "w50")).toBe(
      `…${words.slice(42, 50).join(" ")} \u0001w50\u0002 ${words.slice(51, 66).join(" ")}…`,
    );
  });

  it("is short, however long words and gaps are", () => {
    const text = snippet(`${"-".repeat(5_000)}${"x".repeat(5_000)}${"+".repeat(5_000)}`, "x");
    expect(text?.length).toBeLessThan(500);
    expect(text).toContain("\u0001xxx");
  });
});
