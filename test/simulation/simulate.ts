/**
 * Simulates a small world from one seed: users that write, cancel and read, agents and actions that behave randomly, a
 * disk that fails, and processes that die, close and start again. At the end the oracles check everything.
 */

import { isRecord, type Problem } from "../../src/base/index.js";
import { createLocalBus } from "../../src/bus/index.js";
import type { TaskRow } from "../../src/engine/ports.js";
import {
  ALL_TASKS_CHANNEL,
  isCommitNotification,
  Runtime,
  type RuntimeLimits,
} from "../../src/engine/runtime/index.js";
import { fold } from "../../src/engine/task/evolve.js";
import { askedCalls } from "../../src/engine/task/state.js";
import type { Bus } from "../../src/journal/index.js";
import type { WriterLimits } from "../../src/journal/writer.js";
import { Retention } from "../../src/library/retention.js";
import type { Random } from "../kit/seeded.js";
import { rulesFor } from "../kit/swarms.js";
import { Cast } from "./cast.js";
import { type Fate, type Fault, SimulatedStore } from "./disk.js";
import { North } from "./north.js";
import { type Figures, Oracles, short } from "./oracles.js";
import { openCalls, People, person, taskIdOf } from "./people.js";
import { LIVELY, type Operation, planOf } from "./plan.js";
import { isInjected, Process } from "./process.js";
import { describe, Life, settled, Violation, World } from "./world.js";

export interface SimulationOptions {
  readonly operations?: readonly Operation[];
  /** Disabled faults. */
  readonly without?: ReadonlySet<Fault>;
  readonly trace?: (lines: readonly string[]) => void;
}

export interface Summary extends Figures {
  steps: number;
  deaths: number;
  inFlight: number;
  closes: number;
  fates: Record<Fate, number>;
}

/** @throws Violation */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<Summary> {
  const simulation = new Simulation(seed, options);
  const onUnhandled = (error: unknown) => simulation.world.violate(`unhandled rejection: ${describe(error)}`);
  process.on("unhandledRejection", onUnhandled);
  try {
    return await simulation.run(options.operations ?? planOf(seed));
  } finally {
    process.off("unhandledRejection", onUnhandled);
    options.trace?.(simulation.world.trace);
  }
}

const MAX_STEPS = 30_000;
const MAX_NUDGES = 40;

class Simulation {
  readonly world: World;
  readonly #oracles: Oracles;
  readonly #cast: Cast;
  readonly #north: North;
  readonly #people: People;
  readonly #random: Random;
  readonly #diskRandom: Random;
  readonly #without: ReadonlySet<Fault>;
  readonly #limits: Partial<RuntimeLimits>;
  readonly #writerLimits: Partial<WriterLimits>;
  readonly #fates: Record<Fate, number> = {
    written: 0,
    transient: 0,
    outage: 0,
    unknown: 0,
    refused: 0,
    final: 0,
    "failed read": 0,
  };
  #process: Process;
  #lives = 0;
  #inFlight = 0;
  #closes = 0;

  constructor(seed: number, options: SimulationOptions) {
    const world = new World(seed, { trace: options.trace !== undefined });
    const oracles = new Oracles(world);
    this.world = world;
    this.#oracles = oracles;
    this.#random = world.stream("processes");
    this.#diskRandom = world.stream("disk");
    this.#without = options.without ?? new Set();
    const config = world.stream("config");
    const limits = limitsFrom(config);
    this.#limits = limits;
    this.#writerLimits = {
      groupWrites: config.pick([1, 3, 8, 512]),
      rowCharacters: config.pick([0, 2_000, 256 * 1024]),
      units: config.chance(0.2) ? 8 : 16_384,
    };
    const cast = new Cast({ world, oracles, random: world.stream("cast"), mayRunAhead: limits.speculation });
    const north = new North(world, oracles, (life) =>
      this.#process.life === life ? this.#process : undefined,
    );
    this.#cast = cast;
    this.#north = north;
    this.#people = new People({ world, oracles, cast, north });
    this.#process = this.#newProcess();
  }

  async run(operations: readonly Operation[]): Promise<Summary> {
    for (const operation of operations) this.world.later(operation.at, () => this.#carryOut(operation));
    this.world.later(LIVELY, () => this.#hurry());
    this.#takeUp();
    await this.#untilIdle();
    for (let nudges = 0; this.#nudge(); nudges++) {
      if (nudges > MAX_NUDGES) throw new Violation(`tasks do not end: ${this.#openTasks()}`);
      await this.#untilIdle();
    }
    await this.#finish();
    const { steps } = this.world;
    const { figures, deaths } = this.#oracles;
    return { ...figures, steps, deaths, inFlight: this.#inFlight, closes: this.#closes, fates: this.#fates };
  }

  async #untilIdle(): Promise<void> {
    await settled();
    while (await this.world.step()) {
      if (this.world.steps > MAX_STEPS) throw new Violation(`there is no end to it: ${this.#openTasks()}`);
    }
  }

  // --- processes

  #start(): void {
    this.#process = this.#newProcess();
    this.#takeUp();
  }

  #newProcess(): Process {
    const life = new Life(++this.#lives);
    const { world } = this;
    this.#oracles.lifeBegins(life);
    world.note("START", life.number);
    const store = new SimulatedStore({
      disk: this.#oracles.disk,
      world,
      life,
      random: this.#diskRandom,
      isOn: (fault) => this.#isOn(fault),
      onRefused: (keys) => this.#oracles.refused(keys),
      onFate: (fate) => {
        this.#fates[fate]++;
        if (fate === "final") this.#storeFailed();
        if (fate !== "written") world.note("DISK", fate);
      },
      limits: this.#writerLimits,
    });
    const runtime = new Runtime({
      store,
      bus: this.#bus(),
      clock: world.clockOf(life),
      loop: world.loopOf(life),
      ids: { uuid: () => world.id(4), ordered: () => world.id(7) },
      definition: this.#cast.definition(life),
      limits: this.#limits,
      carriers: [this.#north.carrier(life)],
      report: (problem) => this.#reported(problem),
    });
    store.writer.onState(() => {
      life.degraded = store.writer.degraded;
    });
    return new Process({ life, store, runtime, world });
  }

  /** Requests are accepted during recovery. */
  #takeUp(): void {
    const process = this.#process;
    process.ask("recover", () => process.runtime.recover(), {
      rejected: () => process.phase === "open" && this.world.violate("recover was rejected"),
    });
    this.#north.takeUp(process.life);
    if (this.world.hurried) this.#people.serveForever(process);
  }

  #isOn(fault: Fault): boolean {
    if (this.#without.has(fault)) return false;
    return !this.world.hurried || fault === "slow writes" || fault === "slow reads";
  }

  /** Published entries are visible from outside. */
  #bus(): Bus {
    const inner = createLocalBus();
    return {
      publish: (channel, note) => {
        if (channel === ALL_TASKS_CHANNEL && isCommitNotification(note)) this.#oracles.published(note);
        const delta = channel.startsWith("delta:") && isRecord(note) ? note.delta : undefined;
        // Without text it only takes back what was streamed before.
        if (typeof delta === "string" && delta !== "") {
          this.#oracles.delta(channel.slice("delta:".length), JSON.parse(delta));
        }
        inner.publish(channel, note);
      },
      subscribe: (channel, handler) => inner.subscribe(channel, handler),
      close: () => inner.close(),
    };
  }

  #reported(problem: Problem): void {
    this.world.note("report", problem.code, problem.message);
    // A decision that threw makes the kernel reload the task.
    if (problem.code === "decide_failed" && problem.task !== undefined) this.#oracles.refused([problem.task]);
    if (BAD_REPORTS.has(problem.code) && !isInjected(problem.cause)) {
      const { cause } = problem;
      const stack = cause instanceof Error ? cause.stack : undefined;
      this.world.violate(`reported: ${problem.code} ${problem.message} ${stack ?? ""}`);
    }
  }

  /** Kills the process immediately and starts another one. */
  #crash(): void {
    const process = this.#process;
    if (process.store.inFlight) this.#inFlight++;
    this.world.note("CRASH");
    process.life.alive = false;
    process.store.die(this.#diskRandom.chance(0.5));
    this.#oracles.deaths++;
    this.#oracles.lifeEnds(process.life);
    this.#start();
  }

  /** Restarts a process whose store has failed. */
  #storeFailed(): void {
    const process = this.#process;
    process.phase = "failed";
    this.world.later(this.#random.int(60), () => {
      if (this.#process === process) this.#crash();
    });
  }

  #close(process: Process, grace: number, twice: boolean): void {
    if (process.phase !== "open") return;
    process.phase = "closing";
    this.#closes++;
    this.world.note("CLOSE", grace);
    const { life, runtime, store } = process;
    let first = false;
    const close = async () => {
      await runtime.close(grace);
      await store.close();
      first = true;
      // Deliver the last notifications before the checks.
      if (life.alive) this.world.later(2, () => this.#closed(process), life);
    };
    close().catch((error: unknown) => this.world.violate(`close failed: ${describe(error)}`));
    if (!twice) return;
    const closeAgain = async () => {
      await runtime.close(0);
      this.world.later(
        0,
        () => !first && this.world.violate("the second close did not wait for the first"),
        life,
      );
    };
    this.world.later(
      this.#random.int(20),
      () => {
        closeAgain().catch((error: unknown) => this.world.violate(`close failed: ${describe(error)}`));
      },
      life,
    );
  }

  #closed(process: Process): void {
    const { life, store } = process;
    this.world.note("CLOSED");
    const { unanswered, stillOpen } = process;
    if (unanswered.length > 0) this.world.violate(`closed and not answered: ${unanswered.join()}`);
    if (stillOpen.length > 0) this.world.violate(`closed and still open: ${stillOpen.join()}`);
    this.#oracles.lifeCloses(life, store.wasDown);
    // Decisions that were not written must not have been reported.
    if (store.wasDown) this.#oracles.deaths++;
    life.closed = true;
    // In a program that keeps running, late answers of agents and actions are ignored.
    if (this.#random.chance(0.5)) life.alive = false;
    if (this.#process === process) this.#start();
  }

  // --- external requests

  #carryOut(operation: Operation): void {
    const process = this.#process;
    const people = this.#people;
    const { runtime, store, life } = process;
    this.world.note("OPERATION", JSON.stringify(operation));
    switch (operation.op) {
      case "post":
        return people.post(process, operation);
      case "twice":
        people.post(process, { ...operation, type: "request" });
        return people.post(process, { ...operation, type: "request" });
      case "receive":
        return this.#north.ask(process, operation.slot);
      case "cancel":
        return people.cancel(process, operation);
      case "decide":
        return people.decide(process, person(operation.who), taskIdOf(operation), operation.how);
      case "answer":
        return people.answer(process, person(operation.who), taskIdOf(operation), operation.wrong);
      case "bring":
        return runtime.setParams(person(operation.who), { key: this.world.word() });
      case "retry":
        return people.command(process, operation, { type: "retry" });
      case "notify":
        return people.command(process, operation, {
          type: "notify",
          subject: "news",
          body: this.world.word(),
        });
      case "nonsense":
        return people.breakRules(process, operation, operation.midway);
      case "step":
        return people.step(process, operation);
      case "lend":
        return people.serve(process, operation.ends, operation.ms);
      case "read":
        return people.read(process, operation);
      case "look":
        return people.look(process, operation);
      case "follow":
        return people.follow(process, operation);
      case "ask again":
        return people.askAgain(process, operation.which);
      case "remove":
        return people.remove(process, operation);
      case "sweep":
        return this.#sweep(process, operation.maxTasks);
      case "redefine":
        this.#cast.redefine();
        this.#oracles.redefinitions++;
        return runtime.redefine(this.#cast.definition(life));
      case "outage":
        return store.breakDown(operation.ms);
      case "jump":
        life.clockOffset += operation.ms;
        return;
      case "crash":
        return this.#crash();
      case "break":
        return store.failNext();
      case "close":
        return this.#close(process, operation.grace, operation.twice);
      default:
        operation satisfies never;
    }
  }

  #sweep(process: Process, maxTasks: number): void {
    const { life, store, runtime } = process;
    const clock = this.world.clockOf(life);
    const loop = this.world.loopOf(life);
    const report = (problem: Problem) => this.#reported(problem);
    const retention = new Retention({ options: { maxTasks }, store, runtime, clock, loop, report });
    process.ask("sweep", () => retention.sweep());
  }

  // --- the end

  #hurry(): void {
    this.world.note("HURRY");
    this.world.hurried = true;
    if (this.#random.chance(0.5)) this.#crash();
    else this.#people.serveForever(this.#process);
  }

  /** No event is left: answers the tasks that wait for a user. Returns false if no task does. */
  #nudge(): boolean {
    let nudged = false;
    for (const row of this.#oracles.disk.tasks.values()) {
      if (row.status !== "running" && row.status !== "paused") continue;
      this.#nudgeOne(row);
      nudged = true;
    }
    return nudged;
  }

  #nudgeOne({ key, instance, taskId }: TaskRow): void {
    const process = this.#process;
    const state = fold(this.#oracles.disk.entriesOf(key));
    if (state === undefined) return;
    if (state.manual || instance.role === "swarm") {
      return process.ask("cancel", () => process.runtime.cancel(key, state.owner));
    }
    if (state.status === "running")
      throw new Violation(`no event is left, but tasks are open: ${this.#openTasks()}`);
    if (askedCalls(state).length > 0) this.#people.decide(process, instance, taskId, 2);
    if (openCalls(state).length > 0) this.#people.answer(process, instance, taskId, false);
    process.runtime.setParams(instance, { key: this.world.word() });
  }

  #openTasks(): string {
    const { disk } = this.#oracles;
    const tasks = [...disk.tasks.values()]
      .filter(({ status }) => status === "running" || status === "paused")
      .map(({ key }) => {
        const state = fold(disk.entriesOf(key));
        const agents = [...(state?.agents ?? [])].map(([name, { mailbox, turn, open, lent }]) => {
          const numbers = mailbox.map(({ number }) => number).join();
          const running = turn?.running.map(({ call }) => call.name).join();
          return `${name}: mail ${numbers} running ${running} open ${open.length} lent ${lent?.attempt}`;
        });
        return `${short(key)} is ${state?.status} at ${state?.number} (${agents.join("; ")})`;
      });
    return `${tasks.join(", ")}; figures ${JSON.stringify(this.#process.runtime.stats)}`;
  }

  async #finish(): Promise<void> {
    const { world } = this;
    const { disk } = this.#oracles;
    const last = this.#process;
    this.#oracles.finish(rulesFor(this.#cast.completeDefinition(last.life)));
    this.#checkLeftOvers();
    for (const key of disk.journals.keys()) this.#people.readOne(last, key);
    await this.#untilIdle();
    this.#checkLeftOvers();
    const { position } = disk;
    this.#close(last, 0, false);
    await this.#untilIdle();
    if (this.#process === last) throw new Violation("the process did not close");
    // The next process has recovered everything, which is nothing.
    for (const key of disk.journals.keys()) this.#people.readOne(this.#process, key);
    await this.#untilIdle();
    if (disk.position !== position) world.violate("closing and starting again wrote something");
    this.#checkLeftOvers();
    if (world.violation !== undefined) throw world.violation;
  }

  /** Memory must not keep anything that is no longer needed. */
  #checkLeftOvers(): void {
    const { runtime, store, unanswered, stillOpen } = this.#process;
    const { stats: figures } = runtime;
    const { waiting, characters } = store.writer.health;
    if (figures.turns !== 0 || figures.runningTasks !== 0 || waiting !== 0 || characters !== 0) {
      this.world.violate(`left over: ${JSON.stringify({ ...figures, waiting, characters })}`);
    }
    if (figures.liveTasks > (this.#limits.cachedTasks ?? 0)) {
      this.world.violate(`${figures.liveTasks} tasks are in memory, of which none is needed`);
    }
    if (this.#oracles.disk.outbox.size > 0) this.world.violate("mail to another swarm never left");
    if (unanswered.length > 0) this.world.violate(`never answered: ${unanswered.join()}`);
    const following = stillOpen.filter((name) => name.startsWith("follower"));
    if (following.length > 0) this.world.violate(`never ended: ${following.join()}`);
  }
}

/** Small limits, so that they are reached often. */
function limitsFrom(config: Random) {
  return {
    maxSteps: 12,
    // Usually no time limit, because it would end a task that hangs.
    taskTimeout: config.chance(0.25) ? 50 + config.int(300) : 0,
    replyTimeout: 400,
    turnTimeout: 150,
    actionTimeout: 250,
    turns: 6,
    turnsPerTask: 3,
    actionsPerTask: 1 + config.int(4),
    cachedTasks: 1 + config.int(2),
    runningTasks: config.chance(0.2) ? 3 : 1_000,
    mailbox: 8,
    snapshotAfter: 10,
    followerBacklog: 8,
    speculation: config.chance(0.8),
    undurablePerTask: 1 + config.int(5),
    undurable: 4 + config.int(24),
    ...(config.chance(0.1) && { taskBytes: 12_000 }),
    ...(config.chance(0.1) && { waitingCommands: 2 }),
  };
}

/** Codes that a runtime must never report, because they are bugs of its own. */
const BAD_REPORTS: ReadonlySet<string> = new Set(["reactor_failed", "decide_failed", "turn_failed"]);
