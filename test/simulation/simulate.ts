/**
 * One life of a small world, from one seed: people who write and cancel, agents who do as the dice say, a disk that
 * sometimes refuses, a process that sometimes dies. In the end the books must balance.
 */
import type { Entry } from "../../src/engine/entries.js";
import { fold } from "../../src/engine/evolve.js";
import type { InstanceId, JournalKey, Store } from "../../src/engine/ports.js";
import { type Posted, Runtime } from "../../src/engine/runtime/index.js";
import { entriesOf } from "../../src/engine/runtime/loader.js";
import { Round } from "../../src/engine/runtime/round.js";
import { createLocalBus } from "../../src/store/index.js";
import {
  callsHaveOneResult,
  Ledger,
  mailboxesAreInOrder,
  nobodyIsReachedOutside,
  roundsEndOnce,
} from "../kit/laws.js";
import { problemsOf } from "../kit/published-schemas.js";
import { type Random, seededRandom } from "../kit/seeded.js";
import { VirtualClock } from "../kit/virtual-clock.js";
import { type Cast, createCast, runKey } from "./agents.js";
import { MortalStore } from "./mortal-store.js";

const PEOPLE: readonly [string, ...string[]] = ["ulla", "otto", "ida"];
const TYPES = ["request", "request", "request", "interrupt", "broadcast"] as const;
const BUSY_TICKS = 25;
const LAST_TICK = 2_000;
const TASK_TIME = 20_000;

export interface Life {
  readonly crashes: number;
  readonly acknowledged: number;
  readonly entries: number;
}

interface Process {
  readonly runtime: Runtime;
  readonly store: MortalStore;
}

export async function simulate(seed: number, disk: Store): Promise<Life> {
  const simulation = new Simulation(seed, disk);
  await simulation.live();
  return simulation.balance();
}

class Simulation {
  readonly #random: Random;
  readonly #clock = new VirtualClock();
  readonly #disk: Store;
  readonly #seed: number;
  readonly #cast: Cast;
  readonly #acknowledged: Posted[] = [];
  readonly #keys = new Set<JournalKey>();
  #process: Process;
  #faults = true;
  #crashes = 0;
  #ids = 0;
  #brought = 0;

  constructor(seed: number, disk: Store) {
    this.#seed = seed;
    this.#disk = disk;
    this.#random = seededRandom(seed);
    this.#cast = createCast(this.#random, this.#clock);
    this.#process = this.#start();
  }

  async live(): Promise<void> {
    for (let tick = 0; tick < BUSY_TICKS; tick++) {
      this.#somebodyActs();
      await this.#breathe();
      if (this.#random.chance(0.08)) await this.#crash();
      this.#clock.advance(this.#random.int(40));
    }
    this.#faults = false;
    this.#cast.hurry();
    if (this.#random.chance(0.5)) await this.#crash();
    for (let tick = 0; tick < LAST_TICK; tick++) {
      await this.#breathe();
      if (!(await this.#anythingUnderWay())) return;
      this.#clock.advance(this.#clock.untilNext ?? 0);
    }
    throw new Error(`tasks are still running after ${LAST_TICK} ticks`);
  }

  /** Checks that nothing was lost, nothing happened twice, and everything came to an end. */
  async balance(): Promise<Life> {
    let count = 0;
    for (const key of this.#keys) {
      const entries = await this.#journal(key);
      count += entries.length;
      this.#checkJournal(key, entries);
      for (const posted of this.#acknowledged) if (posted.key === key) checkAcknowledged(posted, entries);
    }
    // Whoever asks a later process gets the answer that the journal gives.
    const [anyone] = this.#acknowledged;
    if (anyone !== undefined) await this.#process.runtime.outcomeOf(anyone);
    for (const [key, { started, idempotent }] of this.#cast.runs) {
      assert(started <= (idempotent ? 3 : 1), `action ${key} was run ${started} times`);
    }
    assert(this.#cast.leaks.length === 0, `seen by another instance: ${this.#cast.leaks.join()}`);
    const { figures } = this.#process.runtime;
    assert(figures.turns === 0 && figures.runningTasks === 0, `left over: ${JSON.stringify(figures)}`);
    const closed = this.#process.runtime.close(0);
    await this.#breathe();
    this.#clock.advance(0);
    await closed;
    return { crashes: this.#crashes, acknowledged: this.#acknowledged.length, entries: count };
  }

  #checkJournal(key: JournalKey, entries: readonly Entry[]): void {
    const problems = problemsOf(entries);
    assert(problems.length === 0, problems.join("; "));
    const state = fold(entries);
    if (state === undefined) throw new Error(`journal ${key} is empty`);
    assert(state.status !== "running" && state.status !== "paused", `task ${key} is ${state.status}`);
    const ledger = new Ledger();
    ledger.add(entries);
    ledger.agreesWith(state);
    mailboxesAreInOrder(state);
    callsHaveOneResult(state);
    roundsEndOnce(entries);
    nobodyIsReachedOutside(entries, this.#process.runtime.rules);
    for (const entry of entries) {
      if (entry.t !== "action_finished" || entry.unknown === true || entry.name === "fly") continue;
      const runs = this.#cast.runs.get(runKey(key, entry.call));
      assert((runs?.finished ?? 0) > 0, `action ${entry.call} finished without having run`);
    }
  }

  #start(): Process {
    const store = new MortalStore(this.#disk, this.#random, () => (this.#faults ? 0.01 : 0));
    const runtime = new Runtime({
      store,
      bus: createLocalBus(),
      clock: this.#clock,
      ids: { uuid: () => this.#id(4), ordered: () => this.#id(7) },
      definition: this.#cast.definition,
      limits: {
        maxSteps: 12,
        taskTime: TASK_TIME,
        turns: 6,
        turnsPerInstance: 4,
        turnsPerTask: 3,
        restingTasks: 2,
        snapshotAfter: 10,
      },
    });
    return { runtime, store };
  }

  async #crash(): Promise<void> {
    this.#crashes++;
    this.#process.store.die();
    this.#process = this.#start();
    await this.#process.runtime.recover();
  }

  #somebodyActs(): void {
    const { runtime } = this.#process;
    const person: InstanceId = { role: "user", id: this.#random.pick(PEOPLE) };
    const taskId = `task ${this.#seed} ${this.#random.int(3)}`;
    const what = this.#random.next();
    if (what < 0.5) {
      const type = this.#random.pick(TYPES);
      const posting = runtime.post(person, { body: `${person.id}: ${this.#random.int(100)}`, taskId, type });
      posting.then(
        (posted) => {
          this.#acknowledged.push(posted);
          this.#keys.add(posted.key);
        },
        () => {},
      );
    } else if (what < 0.6) {
      const cancelling = async () => {
        const key = await runtime.find(person, taskId);
        if (key !== undefined) await runtime.cancel(key, `user:${person.id}@desk`);
      };
      this.#try(cancelling());
    } else if (what < 0.8) {
      this.#answerBreakpoints(person, taskId);
    } else if (what < 0.9) {
      this.#bringKey(person);
    }
  }

  #answerBreakpoints(person: InstanceId, taskId: string): void {
    const { runtime } = this.#process;
    const answering = async () => {
      const key = await runtime.find(person, taskId);
      if (key === undefined) return;
      const open = await runtime.read(key, (state) =>
        [...state.agents.values()].flatMap((one) => one.open.map((call) => call.id)),
      );
      const results = (open ?? []).map((callId) => ({ callId, content: "granted" }));
      await runtime.answerBreakpoint(person, taskId, { results });
    };
    this.#try(answering());
  }

  /** What held a task up may be at hand now. */
  #bringKey(person: InstanceId): void {
    this.#process.runtime.setParams(person, { key: ++this.#brought });
  }

  /** People make mistakes, and processes die under their hands: what was refused was not done, and that is all. */
  #try(asked: Promise<unknown>): void {
    asked.catch(() => {});
  }

  async #anythingUnderWay(): Promise<boolean> {
    let underWay = false;
    for (const status of ["running", "paused"] as const) {
      for (const row of await this.#disk.tasks.withStatus(status, undefined, 100)) {
        this.#keys.add(row.key);
        underWay = true;
        if (status !== "paused") continue;
        this.#answerBreakpoints(row.instance, row.taskId);
        this.#bringKey(row.instance);
      }
    }
    // Turns that were under way when their task ended go on to their end.
    return underWay || this.#process.store.busy || this.#process.runtime.figures.turns > 0;
  }

  async #journal(key: JournalKey): Promise<Entry[]> {
    return (await this.#disk.read(key)).flatMap(entriesOf);
  }

  /** Lets what can happen at this instant happen. */
  async #breathe(): Promise<void> {
    for (let calm = 0; calm < 4; calm++) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (this.#process.store.busy) calm = 0;
    }
  }

  #id(version: number): string {
    const count = (++this.#ids).toString(16).padStart(12, "0");
    const world = (this.#seed >>> 0).toString(16).padStart(8, "0");
    return `${world}-0000-${version}000-8000-${count}`;
  }
}

/** It is in the journal, and something came of it. */
function checkAcknowledged(posted: Posted, entries: readonly Entry[]): void {
  const entry = entries[posted.number - 1];
  assert(entry?.t === "sent" && entry.message.id === posted.messageId, `message ${posted.messageId} is lost`);
  const round = new Round(posted);
  const ended = entries.some((one, index) => round.see(index + 1, one) !== undefined);
  assert(ended, `message ${posted.messageId} came to nothing`);
}

function assert(holds: boolean, broken: string): void {
  if (!holds) throw new Error(broken);
}
