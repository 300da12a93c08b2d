/**
 * Real processes on a disk that fails at random moments under load.
 *
 *   FAULTS_SEED=<number>   the same plans and, as far as a clock allows, the same moments
 *   FAULTS_COUNT=<number>  more faults of each passing kind than the two of every run
 *   FAULTS_MS=<number>     the longest that one of them lasts, instead of 1,500 ms
 *
 * The disk is a shim in C. Where there is no compiler this is skipped with the reason, except in CI.
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

/** One data directory and the processes that live on it, one after the other. */
class House {
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
      // However often it is cut short, nothing here is deadly.
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
   * Looks at everything that is left when every task has ended.
   * @param ignored codes of problems that the processes may have reported
   */
  async judge(...ignored: readonly string[]): Promise<Verdict> {
    const acknowledged = this.said.filter((said) => said.ack !== "problem" || !ignored.includes(said.code));
    const store = await openSqliteStore({ directory: this.data });
    try {
      return await verify(store, { acknowledged, effects: readEffects(this.#effects) });
    } finally {
      await store.close();
    }
  }
}

/** Things that pass by themselves, and how they begin and end. */
const PASSING: Readonly<Record<string, (house: House) => { begin(): void; end(): void }>> = {
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
    it("can be made here", () => expect(missing).toBeUndefined());

    for (const [index, [name, make]] of Object.entries(PASSING).entries()) {
      it(`[ENGINE-A-3, ENGINE-D-6] and ${name} for a while costs no result, runs nothing twice, and turns nobody away`, {
        timeout: TIMEOUT,
      }, async () => {
        const house = new House(`passing-${index}`, SEED + index);
        const life = house.live("steady");
        const fault = make(house);
        for (let count = 0; count < COUNT; count++) {
          await life.hasSaidOf("outcome", 20 * (count + 1));
          await delay(house.random.whole(0, 200));
          fault.begin();
          await delay(house.random.whole(LONGEST / 3, LONGEST));
          fault.end();
        }
        await life.hasSaidOf("outcome", 20 * (COUNT + 1));
        life.finish();
        expect(await house.ended(life), life.stderr).toEqual({ code: 0 });
        expect(house.said.at(-1)).toEqual({ ack: "done" });
        if (name !== "is locked by another process") expect(house.disk.failures).toBeGreaterThan(0);
        const { violations, kinds, unknownOutcomes, repeatedAttempts } = await house.judge();
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
      it(`[ENGINE-C-4] and answers with a ${fault} ends all writing at once, and the next start is consistent`, {
        timeout: TIMEOUT,
      }, async () => {
        const house = new House(`lasting-${index}`, SEED + 100 + index);
        for (let count = 0; count < COUNT; count++) {
          const life = house.live("steady");
          await life.hasSaidOf("outcome", 20);
          await delay(house.random.whole(0, 200));
          house.disk.fail(fault);
          // The host process is not ended for it: it ends by itself once it was told.
          expect(await house.ended(life), life.stderr).toEqual({ code: 0 });
          expect(house.said.at(-1)).toEqual({ ack: "failed" });
          expect(house.disk.failures).toBeGreaterThan(0);
          house.disk.mend();
        }
        const last = house.live("finish");
        expect(await house.ended(last), last.stderr).toEqual({ code: 0 });
        // What was known and could not be written is reported, for whoever has to look after it.
        expect((await house.judge("result_not_written")).violations).toEqual([]);
      });
    }
  },
);
