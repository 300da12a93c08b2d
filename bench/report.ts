/** Lines of a benchmark: printed as a table, written as JSON. Every line names its store and durability. */
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

export interface Line {
  readonly what: string;
  readonly store: string;
  readonly durability: string;
  /** The median of several rounds. */
  readonly value: number;
  /** The smallest and the largest of several rounds. */
  readonly range?: Range;
  readonly unit: string;
  /** The same figure of something else, in the same run. */
  readonly beside?: Comparison;
  /** The target value. */
  readonly goal?: Goal;
  readonly note?: string;
}

export interface Comparison {
  /** Name of the other. */
  readonly name: string;
  readonly value: number;
  readonly range: Range;
  /** Over the pairs of each round, measured one after the other: median, smallest, largest. */
  readonly ratio: number;
  readonly ratioRange: Range;
}

export type Range = readonly [number, number];
export type Goal = { readonly atLeast: number } | { readonly atMost: number };

export class Report {
  readonly #name: string;
  readonly #facts: Readonly<Record<string, unknown>>;
  readonly #lines: Line[] = [];

  constructor(name: string, facts: Readonly<Record<string, unknown>> = {}) {
    this.#name = name;
    this.#facts = facts;
  }

  add(line: Line): void {
    this.#lines.push(line);
    const where = `${line.store}/${line.durability}`.padEnd(14);
    const value = inDigits(line.value).padStart(12);
    const notes = [
      line.range === undefined ? "" : `(${inRange(line.range)})`.padEnd(16),
      line.beside === undefined ? "" : inWords(line.beside),
      line.goal === undefined ? "" : judged(line.value, line.goal),
      line.note ?? "",
    ].filter((note) => note !== "");
    console.log(`${line.what.padEnd(68)} ${where} ${value} ${line.unit.padEnd(8)} ${notes.join("  ")}`);
  }

  write(): void {
    const folder = join("bench", "results");
    mkdirSync(folder, { recursive: true });
    const file = join(folder, `${this.#name}.json`);
    const machine = {
      cpus: cpus().length,
      model: cpus()[0]?.model,
      memory: totalmem(),
      node: process.version,
    };
    const contents = { machine, ...this.#facts, lines: this.#lines };
    writeFileSync(file, `${JSON.stringify(contents, undefined, 2)}\n`);
    console.log(`\nwritten to ${file}`);
  }
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Summarizes several rounds. */
export function ofRounds(values: readonly number[]): { readonly value: number; readonly range: Range } {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const [lower = Number.NaN, upper = Number.NaN] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]];
  return {
    value: (lower + upper) / 2,
    range: [sorted[0] ?? Number.NaN, sorted.at(-1) ?? Number.NaN],
  };
}

/** Compares ours with another, round by round. */
export function besideOf(name: string, ours: readonly number[], others: readonly number[]): Comparison {
  const ratio = ofRounds(ours.map((value, round) => value / (others[round] ?? Number.NaN)));
  return { name, ...ofRounds(others), ratio: ratio.value, ratioRange: ratio.range };
}

function inWords({ name, value, range, ratio, ratioRange }: Comparison): string {
  return `${inDigits(ratio)} times (${inRange(ratioRange)}) ${name}: ${inDigits(value)} (${inRange(range)})`;
}

function judged(value: number, goal: Goal): string {
  const [words, reached] =
    "atLeast" in goal
      ? [`at least ${goal.atLeast}`, value >= goal.atLeast]
      : [`at most ${goal.atMost}`, value <= goal.atMost];
  return `goal ${words}: ${reached ? "reached" : "MISSED"}`;
}

const inRange = ([least, most]: Range): string => `${inDigits(least)}–${inDigits(most)}`;

const inDigits = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(2);
