import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyMove, anySwarm, make } from "../../../test/kit/arbitrary-moves.js";
import { TestTask } from "../../../test/kit/test-task.js";
import type { Entry } from "../../engine/pure.js";
import { evolve, fold } from "../../engine/task/evolve.js";
import { costsOf } from "./cost.js";
import { changesBetween } from "./diff.js";
import type { JournalEntry } from "./journal-entry.js";
import { BLOCK, lanesOf } from "./lanes.js";
import { Travel } from "./travel.js";

const CORPUS = resolve(import.meta.dirname, "../../../test/corpus/v1");

const numbered = (entries: readonly Entry[]): JournalEntry[] =>
  entries.map((entry, index) => ({ ...structuredClone(entry), n: index + 1 }));

/** A journal that the engine itself wrote, whatever was asked of it. */
const anyJournal = fc
  .tuple(anySwarm, fc.array(anyMove, { minLength: 1, maxLength: 16 }))
  .map(([definition, moves]) => {
    const task = new TestTask(definition, {});
    for (const move of moves) make(task, move, definition);
    return task.entries;
  });

const corpus = readdirSync(CORPUS)
  .filter((name) => name.endsWith(".jsonl"))
  .map((name) => {
    const lines = readFileSync(join(CORPUS, name), "utf8").trim().split("\n");
    return { name, entries: numbered(lines.map((line): Entry => JSON.parse(line))) };
  });

/** Whatever is between two reads of a page: the journal comes in pieces of any size. */
function inPieces<T>(items: readonly T[], size: number): T[][] {
  const pieces: T[][] = [];
  for (let at = 0; at < items.length; at += size) pieces.push(items.slice(at, at + size));
  return pieces;
}

describe("a task as of an entry", () => {
  it("equals the server's fold at every number of 1,000 arbitrary journals", () => {
    fc.assert(
      fc.property(anyJournal, fc.integer({ min: 1, max: 9 }), (entries, size) => {
        const travel = new Travel();
        for (const piece of inPieces(numbered(entries), size)) travel.extend(piece);
        expect(travel.last).toBe(entries.length);
        const [first, ...rest] = structuredClone(entries);
        const server = fold(first === undefined ? [] : [first]);
        if (server === undefined) throw new Error("no journal");
        for (let number = 1; number <= entries.length; number++) {
          const next = rest[number - 2];
          if (next !== undefined) evolve(server, next);
          if (!isDeepStrictEqual(travel.at(number), server)) expect(travel.at(number)).toEqual(server);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it("is the same from checkpoints of a long journal, and jumping does not disturb them", () => {
    const definition = fc.sample(anySwarm, { numRuns: 1, seed: 7 })[0];
    if (definition === undefined) throw new Error("no swarm");
    const task = new TestTask(definition, {});
    for (const move of fc.sample(anyMove, { numRuns: 500, seed: 11 })) make(task, move, definition);
    const entries = numbered(task.entries);
    expect(entries.length).toBeGreaterThan(300);
    const travel = new Travel();
    travel.extend(entries);
    const jumps = fc.sample(fc.integer({ min: 1, max: entries.length }), { numRuns: 60, seed: 3 });
    for (const number of [...jumps, 1, entries.length]) {
      expect(travel.at(number)).toEqual(fold(structuredClone(task.entries.slice(0, number))));
    }
  });

  it("is not changed at a checkpoint by calls that start or wait for approval after it", () => {
    const long = fc.tuple(anySwarm, fc.array(anyMove, { minLength: 120, maxLength: 120 }));
    for (const [definition, moves] of fc.sample(long, { numRuns: 30, seed: 5 })) {
      const task = new TestTask(definition, {});
      for (const move of moves) make(task, move, definition);
      const travel = new Travel();
      travel.extend(numbered(task.entries));
      for (let number = 64; number <= travel.last; number += 64)
        expect(travel.at(number)).toEqual(fold(structuredClone(task.entries.slice(0, number))));
    }
  });

  it("is unknown outside the journal, and entries out of order are ignored", () => {
    const [one] = corpus;
    if (one === undefined) throw new Error("no corpus");
    const travel = new Travel();
    travel.extend(one.entries.slice(2));
    expect(travel.last).toBe(0);
    travel.extend(one.entries);
    travel.extend(one.entries);
    expect(travel.last).toBe(one.entries.length);
    expect(travel.at(0)).toBeUndefined();
    expect(travel.at(one.entries.length + 1)).toBeUndefined();
  });
});

describe("lanes", () => {
  it("of arbitrary journals never move a row when entries are appended", () => {
    fc.assert(
      fc.property(anyJournal, fc.integer({ min: 1, max: 9 }), (entries, size) => {
        const all = numbered(entries);
        const whole = lanesOf(all);
        const growing = lanesOf();
        let seen: unknown[] = [];
        for (const piece of inPieces(all, size)) {
          growing.extend(piece);
          expect(growing.rows.slice(0, seen.length)).toEqual(seen);
          seen = structuredClone([...growing.rows]);
        }
        expect(growing.rows).toEqual(whole.rows);
        expect(growing.spans).toEqual(whole.spans);
        expect(growing.lanes).toEqual(whole.lanes);
        for (const { drawing } of whole.rows) {
          const named =
            drawing.kind === "message"
              ? [drawing.from, ...drawing.to]
              : "lane" in drawing
                ? [drawing.lane]
                : [];
          for (const id of named) expect(whole.laneOf(id)).toBeDefined();
        }
        for (const [index, span] of whole.spans.entries()) {
          expect(span.from).toBeLessThanOrEqual(span.to ?? Number.POSITIVE_INFINITY);
          if (span.to !== undefined) expect(whole.spansIn(Math.floor(span.from / BLOCK))).toContain(index);
        }
      }),
      { numRuns: 200 },
    );
  });

  it.each(corpus)("draw every entry of $name that says something", ({ entries }) => {
    const model = lanesOf(entries);
    expect(model.last).toBe(entries.length);
    const drawn = new Set(model.rows.map(({ n }) => n));
    for (const entry of entries) {
      if (["opened", "result", "sent", "resumed", "usage"].includes(entry.t)) continue;
      expect(drawn, `${entry.t} #${entry.n}`).toContain(entry.n);
    }
    expect(model.lanes[0]?.kind).toBe("person");
  });

  it("show when mail waited because its agent was busy", () => {
    const at = 1_000_000;
    const mail = (n: number, from: string, to: string, ms: number): JournalEntry => ({
      n,
      t: "sent",
      at: at + ms,
      to: [to],
      message: {
        id: `m${n}`,
        timestamp: "2026-03-02T08:15:30.000Z",
        msg_type: "request",
        message: {
          task_id: "t",
          request_id: `r${n}`,
          sender: { address_type: "agent", address: from },
          recipient: { address_type: "agent", address: to },
          subject: `ask ${n}`,
          body: "",
        },
      },
    });
    const model = lanesOf([
      mail(1, "a", "b", 0),
      mail(2, "c", "b", 100),
      { n: 3, t: "turn", at: at + 400, agent: "b", took: [1], calls: [] },
      { n: 4, t: "turn", at: at + 900, agent: "b", took: [2], calls: [] },
    ]);
    expect(model.spans.map(({ from, queued, to }) => [from, queued, to])).toEqual([
      [0, undefined, 2],
      [1, 2, 3],
    ]);
    const last = model.rows.at(-1)?.drawing;
    expect(last?.kind === "turn" && last.label).toBe("500 ms");
  });
});

describe("sums and differences", () => {
  it("of cost equal those of the journal", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            agent: fc.constantFrom("a", "b", "__proto__"),
            input: fc.nat(9_999),
            output: fc.nat(999),
          }),
        ),
        (turns) => {
          const entries = turns.map(
            ({ agent, input, output }, index): JournalEntry => ({
              n: index + 1,
              t: "turn",
              at: index,
              agent,
              took: [],
              calls: [],
              usage: { inputTokens: input, outputTokens: output, cost: input / 1_000, model: "m" },
            }),
          );
          const costs = costsOf(entries);
          const sum = (pick: (turn: (typeof turns)[number]) => number) =>
            turns.reduce((total, turn) => total + pick(turn), 0);
          expect(costs.total.input).toBe(sum(({ input }) => input));
          expect(costs.total.output).toBe(sum(({ output }) => output));
          const agents = [...costs.agents.values()];
          expect(agents.reduce((total, { input }) => total + input, 0)).toBe(costs.total.input);
          expect(agents.reduce((total, { turns: count }) => total + count, 0)).toBe(turns.length);
        },
      ),
    );
  });

  it("of model calls count what the task's state counts, estimates and failed turns included", () => {
    const { entries = [] } = corpus.find(({ name }) => name === "budgets.jsonl") ?? {};
    const { usage } = fold(structuredClone(entries)) ?? {};
    expect(usage?.inputTokens).toBeGreaterThan(0);
    const { total } = costsOf(entries);
    expect([total.input, total.output, total.cost]).toEqual([
      usage?.inputTokens,
      usage?.outputTokens,
      usage?.cost ?? 0,
    ]);
  });

  it("between an entry and itself do not exist, and an entry that is taken leaves a mailbox", () => {
    for (const { entries } of corpus) {
      const travel = new Travel();
      travel.extend(entries);
      for (let number = 1; number <= travel.last; number++) {
        const state = travel.at(number);
        if (state !== undefined) expect(changesBetween(state, state)).toEqual([]);
      }
    }
    const rounds = corpus.find(({ name }) => name === "rounds.jsonl")?.entries ?? [];
    const turn = rounds.find((entry) => entry.t === "turn");
    if (turn?.t !== "turn") throw new Error("no turn");
    const travel = new Travel();
    travel.extend(rounds);
    const [before, after] = [travel.at(turn.n - 1), travel.at(turn.n)];
    if (before === undefined || after === undefined) throw new Error("no state");
    expect(changesBetween(before, after)).toContainEqual({
      what: `Mailbox of ${turn.agent}`,
      before: "1 waiting",
      after: `−#${turn.took[0]}`,
    });
  });
});
