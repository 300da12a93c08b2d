/**
 * Durable effects (law 1), one append per turn (law 2) and journaled actions (law 4) under SIGKILL: a real process with tasks in flight is killed at random moments and started again on the
 * same data, over and over.
 *
 *   CRASH_SEED=<number>   the same plans and, as far as a clock allows, the same moments
 *   CRASH_KILLS=<number>  more kills than the 200 of every run
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CompiledChild, compileChild } from "./compile.js";
import { runAndVerify, VARIANTS } from "./variants.js";

const SEED = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 2 ** 31));
const KILLS = Number(process.env.CRASH_KILLS ?? 200);

let child: CompiledChild;
let folder: string;

beforeAll(() => {
  child = compileChild();
  folder = mkdtempSync(join(tmpdir(), "mailroom-crash-"));
});
afterAll(() => {
  child?.remove();
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

describe(`a process that is killed ${KILLS} times (CRASH_SEED=${SEED})`, () => {
  it("[MAIL-OURS-01, MAIL-OURS-02, ENGINE-A-1, ENGINE-B-4] a killed process loses no acknowledged message, repeats no finished action, leaves no task or call unfinished, ends no round twice, and reports only what the journal contains", {
    timeout: 120_000 + KILLS * 3_000,
  }, async () => {
    const kills = Math.ceil(KILLS / VARIANTS.length);
    const verdicts = await Promise.all(
      VARIANTS.map((variant, index) =>
        runAndVerify({
          ...variant,
          script: child.script,
          folder: join(folder, variant.name),
          seed: SEED + index,
          kills,
        }),
      ),
    );
    const figures = verdicts.map(({ violations: _, ...rest }) => JSON.stringify(rest)).join("\n  ");
    console.info(`crash: ${KILLS} kills, CRASH_SEED=${SEED}\n  ${figures}`);
    for (const verdict of verdicts) expect(verdict.violations).toEqual([]);
    // A run without these entries would prove nothing about them.
    for (const kind of ["paused", "resumed", "cancelled", "recovered", "action_finished"]) {
      expect(sum(verdicts.map(({ kinds }) => kinds[kind] ?? 0)), kind).toBeGreaterThan(0);
    }
    expect(sum(verdicts.map((verdict) => verdict.unknownOutcomes)), "outcome unknown").toBeGreaterThan(0);
    expect(sum(verdicts.map((verdict) => verdict.repeatedAttempts)), "run again").toBeGreaterThan(0);
  });
});

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
