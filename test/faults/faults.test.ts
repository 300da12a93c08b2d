/**
 * Real processes on a disk that fails at random moments under load.
 *
 *   FAULTS_SEED=<number>   the same plans and, as far as a clock allows, the same moments
 *   FAULTS_COUNT=<number>  more faults of each passing kind than the two of every run
 *   FAULTS_MS=<number>     the maximum duration of a fault, instead of 1,500 ms
 *
 * The disk is a shim in C. Without a compiler the test is skipped with the reason, except in CI.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openSqliteStore } from "../../src/store/index.js";
import type { Acknowledgement } from "../crash/acknowledgements.js";
import { type CompiledChild, compileChild } from "../crash/compile.js";
import { readEffects } from "../crash/effects.js";
import { Life, type Mode } from "../crash/process.js";
import { type Random, randomFrom } from "../crash/random.js";
import { type Verdict, verify } from "../crash/verify.js";
import { compileShim, FailingDisk, type Fault, whatIsMissing } from "./disk.js";

const SEED = Number(process.env.FAULTS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const COUNT = Number(process.env.FAULTS_COUNT ?? 2);
const LONGEST = Number(process.env.FAULTS_MS ?? 1_500);
const TIMEOUT = 120_000 + COUNT * (LONGEST + 5_000);

const missing = whatIsMissing();

let root: string;
let child: CompiledChild;
let shim: string;

beforeAll(() => {
  if (missing !== undefined) return;
  root = mkdtempSync(join(tmpdir(), "mailroom-faults-"));
  child = compileChild();
  shim = compileShim(root);
});
afterAll(() => {
  child?.remove();
  if (root !== undefined) rmSync(root, { recursive: true });
});

/** One data directory and the consecutive processes that use it. */
class DataDirectory {
  readonly disk: FailingDisk;
  readonly random: Random;
  readonly data: string;
  readonly said: Acknowledgement[] = [];
  readonly #effects: string;

  constructor(name: string, seed: number) {
    const folder = join(root, name);
    mkdirSync(folder);
    this.data = join(folder, "data");
    this.#effects = join(folder, "effects");
    this.disk = new FailingDisk(shim, folder);
    this.random = randomFrom(seed);
    onTestFinished(() => this.disk.close());
  }

  live(mode: Mode): Life {
    const life = new Life({
      script: child.script,
      data: this.data,
      effects: this.#effects,
      seed: this.random.whole(0, 2 ** 31),
      mode,
      durability: "fsync",
      // No message here crashes the process, so interrupted turns never count as poison.
      recoveries: Number.MAX_SAFE_INTEGER,
      env: this.disk.env,
    });
    onTestFinished(async () => {
      life.kill();
      await life.ended;
    });
    life.begin();
    return life;
  }

  async ended(life: Life): Promise<{ code: number | null }> {
    const { code } = await life.ended;
    this.said.push(...life.said);
    return { code };
  }

  /**
   * Verifies the data directory when every task has ended.
   * @param ignored codes of problems that the processes may have reported
   */
  async verify(...ignored: readonly string[]): Promise<Verdict> {
    const acknowledged = this.said.filter((said) => said.ack !== "problem" || !ignored.includes(said.code));
    const store = await openSqliteStore({ directory: this.data });
    try {
      return await verify(store, { acknowledged, effects: readEffects(this.#effects) });
    } finally {
      await store.close();
    }
  }
}

/** Temporary faults, and how they begin and end. */
const PASSING: Readonly<Record<string, (directory: DataDirectory) => { begin(): void; end(): void }>> = {
  "is full": ({ disk }) => ({ begin: () => disk.fail("full"), end: () => disk.mend() }),
  "is full in the middle of a write": ({ disk }) => ({
    begin: () => disk.fail("full in the middle"),
    end: () => disk.mend(),
  }),
  "is locked by another process": ({ data }) => {
    let other: Database.Database | undefined;
    return {
      begin: () => {
        other = new Database(join(data, "mailroom.db"), { timeout: 5_000 });
        other.exec("BEGIN IMMEDIATE");
      },
      end: () => {
        other?.exec("ROLLBACK");
        other?.close();
      },
    };
  },
};

const LASTING: readonly Fault[] = ["write error", "sync error"];

describe.skipIf(missing !== undefined && process.env.CI !== "true")(
  `a disk that fails under load (FAULTS_SEED=${SEED})${missing === undefined ? "" : `: skipped, ${missing}`}`,
  () => {
    it("the faulty disk is available", () => expect(missing).toBeUndefined());

    for (const [index, [name, make]] of Object.entries(PASSING).entries()) {
      it(`[ENGINE-A-3, ENGINE-D-6] a disk that ${name} for a while loses no result, runs no action twice and rejects no message`, {
        timeout: TIMEOUT,
      }, async () => {
        const directory = new DataDirectory(`passing-${index}`, SEED + index);
        const life = directory.live("steady");
        const fault = make(directory);
        for (let count = 0; count < COUNT; count++) {
          await life.hasSaidOf("outcome", 20 * (count + 1));
          await delay(directory.random.whole(0, 200));
          fault.begin();
          await delay(directory.random.whole(LONGEST / 3, LONGEST));
          fault.end();
        }
        await life.hasSaidOf("outcome", 20 * (COUNT + 1));
        life.finish();
        expect(await directory.ended(life), life.stderr).toEqual({ code: 0 });
        expect(directory.said.at(-1)).toEqual({ ack: "done" });
        if (name !== "is locked by another process") expect(directory.disk.failures).toBeGreaterThan(0);
        const { violations, kinds, unknownOutcomes, repeatedAttempts } = await directory.verify();
        const { recovered = 0 } = kinds;
        expect({ violations, recovered, unknownOutcomes, repeatedAttempts }).toEqual({
          violations: [],
          recovered: 0,
          unknownOutcomes: 0,
          repeatedAttempts: 0,
        });
      });
    }

    for (const [index, fault] of LASTING.entries()) {
      it(`[ENGINE-C-4] a disk with a ${fault} ends all writes at once, and the next start is consistent`, {
        timeout: TIMEOUT,
      }, async () => {
        const directory = new DataDirectory(`lasting-${index}`, SEED + 100 + index);
        for (let count = 0; count < COUNT; count++) {
          const life = directory.live("steady");
          await life.hasSaidOf("outcome", 20);
          await delay(directory.random.whole(0, 200));
          directory.disk.fail(fault);
          // The failure does not end the host process: it exits by itself when it is notified.
          expect(await directory.ended(life), life.stderr).toEqual({ code: 0 });
          expect(directory.said.at(-1)).toEqual({ ack: "failed" });
          expect(directory.disk.failures).toBeGreaterThan(0);
          directory.disk.mend();
        }
        const last = directory.live("finish");
        expect(await directory.ended(last), last.stderr).toEqual({ code: 0 });
        // Results that could not be written are reported for the operator.
        expect((await directory.verify("result_not_written")).violations).toEqual([]);
      });
    }
  },
);
