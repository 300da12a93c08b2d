/** Lines of a benchmark: printed as a table, written as JSON. Every line names its store and durability. */
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

export interface Line {
  readonly what: string;
  readonly store: string;
  readonly durability: string;
  readonly value: number;
  readonly unit: string;
  /** Beside what it is to be seen: a peer measured in the same run. */
  readonly note?: string;
}

export class Report {
  readonly #name: string;
  readonly #lines: Line[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  add(line: Line): void {
    this.#lines.push(line);
    const value = line.value >= 100 ? Math.round(line.value).toLocaleString("en") : line.value.toFixed(2);
    const where = `${line.store}/${line.durability}`.padEnd(14);
    console.log(
      `${line.what.padEnd(62)} ${where} ${value.padStart(12)} ${line.unit.padEnd(8)} ${line.note ?? ""}`,
    );
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
    writeFileSync(file, `${JSON.stringify({ machine, lines: this.#lines }, undefined, 2)}\n`);
    console.log(`\nwritten to ${file}`);
  }
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
