/**
 * Measures the store and the bare driver in the same run and on the same disk.
 *
 *   npx tsx bench/store.ts [--seconds 1] [--rounds 5] [--directory <where>] [--durability fsync|fast]
 *
 * Every case runs once per round, so that other load on the disk affects all cases alike; the medians are printed.
 * Compare rates within a run only.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import Database from "better-sqlite3";
import type { Store } from "../src/engine/ports.js";
import { type Durability, openStore } from "../src/store/index.js";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "1" },
    rounds: { type: "string", default: "5" },
    directory: { type: "string", default: tmpdir() },
    durability: { type: "string", default: "fsync" },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const durability: Durability = values.durability === "fast" ? "fast" : "fsync";
const data = JSON.stringify([{ type: "message", body: "x".repeat(770) }]);

/** Appends per journal before a writer starts a new one: the length of a task with a few agents. */
const TASK = 32;
/** An endless journal. Many of these at once are the worst case: each has its own page of the index. */
const ENDLESS = Number.POSITIVE_INFINITY;

interface Rate {
  readonly perSecond: number;
  readonly loopDelay?: { readonly p99: number };
}

/** The minimum cost of a durable append: a prepared insert of the same row with the bare driver. */
function bare(rowsPerTransaction: number): Rate {
  const directory = mkdtempSync(join(values.directory, "mailroom-bench-"));
  const db = new Database(join(directory, "bare.db"));
  try {
    db.pragma("journal_mode = WAL");
    db.pragma(`synchronous = ${durability === "fsync" ? "FULL" : "NORMAL"}`);
    db.exec(`CREATE TABLE journal (position INTEGER PRIMARY KEY, journal INTEGER NOT NULL, first INTEGER NOT NULL,
      last INTEGER NOT NULL, data TEXT NOT NULL, UNIQUE (journal, last))`);
    const insert = db.prepare("INSERT INTO journal VALUES (?, ?, ?, ?, ?)");
    let position = 0;
    let transactions = 0;
    const insertRows = (): void => {
      const number = (transactions % TASK) + 1;
      const firstJournal = Math.floor(transactions / TASK) * rowsPerTransaction;
      transactions += 1;
      for (let row = 0; row < rowsPerTransaction; row += 1) {
        position += 1;
        insert.run(position, firstJournal + row, number, number, data);
      }
    };
    const once = rowsPerTransaction === 1 ? insertRows : db.transaction(insertRows);
    const began = performance.now();
    while (performance.now() < began + seconds * 1000) once();
    return { perSecond: position / ((performance.now() - began) / 1000) };
  } finally {
    db.close();
    rmSync(directory, { recursive: true });
  }
}

/** `writers` tasks that each append, wait for the commit, and append again. */
async function throughStore(writers: number, perJournal = TASK): Promise<Rate> {
  const directory = mkdtempSync(join(values.directory, "mailroom-bench-"));
  const store = await openStore({ directory, durability });
  try {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const began = performance.now();
    const until = began + seconds * 1000;
    const counts = await Promise.all(
      Array.from({ length: writers }, (_, index) => write(store, `writer-${index}`, perJournal, until)),
    );
    const elapsed = (performance.now() - began) / 1000;
    delay.disable();
    return {
      perSecond: counts.reduce((sum, count) => sum + count, 0) / elapsed,
      loopDelay: { p99: delay.percentile(99) / 1e6 },
    };
  } finally {
    await store.close();
    rmSync(directory, { recursive: true });
  }
}

async function write(store: Store, name: string, perJournal: number, until: number): Promise<number> {
  let total = 0;
  for (let task = 0; performance.now() < until; task += 1) {
    const journal = `${String(task).padStart(8, "0")}-${name}`;
    for (let expected = 0; expected < perJournal && performance.now() < until; expected += 1) {
      await store.commit({ appends: [{ journal, expected, count: 1, data }] });
      total += 1;
    }
  }
  return total;
}

interface Case {
  readonly name: string;
  readonly run: () => Rate | Promise<Rate>;
  /** The case to compare with. */
  readonly beside?: string;
}

const BARE_SINGLE = "bare, 1 row per commit";
const BARE_GROUP = "bare, 256 rows per commit";

const CASES: readonly Case[] = [
  { name: BARE_SINGLE, run: () => bare(1) },
  { name: "store, 1 writer", run: () => throughStore(1), beside: BARE_SINGLE },
  { name: "store, 16 writers", run: () => throughStore(16) },
  { name: "store, 64 writers", run: () => throughStore(64) },
  { name: BARE_GROUP, run: () => bare(256) },
  { name: "store, 256 writers", run: () => throughStore(256), beside: BARE_GROUP },
  { name: "store, 256 writers, endless tasks", run: () => throughStore(256, ENDLESS) },
  { name: "store, 1024 writers", run: () => throughStore(1024) },
];

const results = new Map<string, Rate[]>(CASES.map(({ name }) => [name, []]));
for (let round = 0; round < rounds; round += 1) {
  for (const { name, run } of CASES) results.get(name)?.push(await run());
}

console.log(`appends of ${data.length} bytes, durability ${durability}, ${rounds} rounds of ${seconds} s`);
for (const { name, beside } of CASES) {
  const rates = results.get(name) ?? [];
  const perSecond = median(rates.map((rate) => rate.perSecond));
  const others = beside === undefined ? [] : (results.get(beside) ?? []);
  const ratio = median(others.map((other, round) => (rates[round]?.perSecond ?? 0) / other.perSecond));
  const delays = rates.flatMap(({ loopDelay }) => loopDelay ?? []);
  const columns = [
    name.padEnd(34),
    `${Math.round(perSecond).toLocaleString("en").padStart(9)}/s`,
    (others.length === 0 ? "" : `${Math.round(100 * ratio)} % of bare`).padEnd(14),
    delays.length === 0
      ? ""
      : `event loop late by ${median(delays.map(({ p99 }) => p99)).toFixed(1)} ms (p99)`,
  ];
  console.log(columns.join("  ").trimEnd());
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}
