/** The library's front door: one swarm, one data directory, any number of callers (decisions A1). */
import { join } from "node:path";
import type { Action, AgentAnswer } from "../engine/agent.js";
import type { Carrier } from "../engine/carrier.js";
import type { SwarmDefinition } from "../engine/definition.js";
import type { KeyValueMemory } from "../engine/memory.js";
import type { Bus, Clock, Ids, InstanceId, Store } from "../engine/ports.js";
import {
  type ActionOverride,
  type Lending,
  type Problem,
  Runtime,
  type RuntimeLimits,
} from "../engine/runtime/index.js";
import { createLocalBus, type Durability, openSqliteStore } from "../store/index.js";
import { systemClock, systemIds } from "./clock.js";
import { Instance } from "./instance.js";
import { Retention, type RetentionOptions } from "./retention.js";

export interface MailroomOptions {
  readonly swarm: SwarmDefinition;
  /**
   * Where everything is kept: a directory (default `./.mailroom/<swarm>`), or `false` to keep everything in memory and
   * lose it with the process.
   */
  readonly data?: string | false;
  /** `fsync` (default) survives the loss of power, `fast` only the death of the process. */
  readonly durability?: Durability;
  readonly limits?: Partial<RuntimeLimits>;
  /** Default: everything is kept. */
  readonly retention?: RetentionOptions;
  /** Stands between every call of an action and the action itself. */
  readonly actionOverride?: ActionOverride;
  /** Where the key-value memory of instances is kept. Default: the store. */
  readonly memory?: KeyValueMemory;
  /** Ways to other swarms. */
  readonly carriers?: readonly Carrier[];
  /** What those ways offer agents beside carrying mail (`discover_swarms`). */
  readonly systemActions?: readonly Action[];
  /** Told of what goes wrong where nobody waits for an answer. Default: a line on stderr. */
  readonly onProblem?: (problem: Problem) => void;
  /** Told while tasks of an earlier process are taken up. */
  readonly onRecovery?: (recovered: number) => void;
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** A store and bus of one's own; then `data` and `durability` mean nothing, and closing them is the owner's job. */
  readonly store?: Store;
  readonly bus?: Bus;
}

/** A caller: a user or admin by id. `params` go to agents and actions and live in memory only. */
export interface CallerOptions {
  readonly params?: Readonly<Record<string, unknown>>;
}

export class Mailroom {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly bus: Bus;
  /** How many unfinished tasks were taken up when it was opened. */
  readonly recovered: number;
  readonly #retention: Retention | undefined;
  readonly #ownsStore: boolean;

  private constructor(parts: {
    runtime: Runtime;
    store: Store;
    bus: Bus;
    recovered: number;
    retention: Retention | undefined;
    ownsStore: boolean;
  }) {
    this.runtime = parts.runtime;
    this.store = parts.store;
    this.bus = parts.bus;
    this.recovered = parts.recovered;
    this.#retention = parts.retention;
    this.#ownsStore = parts.ownsStore;
  }

  /**
   * Opens the data directory and takes up every task that was running.
   * @throws StoreLockedError when another process has it open.
   */
  static async open(options: MailroomOptions): Promise<Mailroom> {
    const { swarm, clock = systemClock, ids = systemIds } = options;
    const report = options.onProblem ?? reportToStderr;
    const store = options.store ?? (await openStore(options));
    const bus =
      options.bus ??
      createLocalBus({
        onError: (cause) => report({ code: "listener_failed", message: String(cause), cause }),
      });
    const runtime = new Runtime({
      store,
      bus,
      clock,
      ids,
      definition: swarm,
      report,
      ...(options.limits !== undefined && { limits: options.limits }),
      ...(options.memory !== undefined && { memory: options.memory }),
      ...(options.carriers !== undefined && { carriers: options.carriers }),
      ...(options.systemActions !== undefined && { systemActions: options.systemActions }),
      ...(options.actionOverride !== undefined && { actionOverride: options.actionOverride }),
    });
    let recovered: number;
    try {
      recovered = await runtime.recover(options.onRecovery);
    } catch (error) {
      // Nobody gets a mailroom that could close it, so the lock would stay until the process ends.
      if (options.store === undefined) await store.close();
      throw error;
    }
    const retention =
      options.retention === undefined
        ? undefined
        : new Retention({ options: options.retention, store, runtime, clock, report });
    retention?.start();
    return new Mailroom({
      runtime,
      store,
      bus,
      recovered,
      retention,
      ownsStore: options.store === undefined,
    });
  }

  get swarm(): SwarmDefinition {
    return this.runtime.definition;
  }

  user(id: string, options: CallerOptions = {}): Instance {
    return this.instance({ role: "user", id }, options);
  }

  admin(id: string, options: CallerOptions = {}): Instance {
    return this.instance({ role: "admin", id }, options);
  }

  instance(id: InstanceId, options: CallerOptions = {}): Instance {
    if (options.params !== undefined) this.runtime.setParams(id, options.params);
    return new Instance(id, this.runtime, this.store.tasks);
  }

  /** The mailbox of an agent that lives in another process (`remote: true`). */
  remoteAgent(name: string): RemoteAgent {
    return new RemoteAgent(name, this.runtime);
  }

  /** Removes finished tasks as configured, now. Returns how many. */
  async sweep(): Promise<number> {
    return (await this.#retention?.sweep()) ?? 0;
  }

  /** Lets what runs finish for up to `grace` milliseconds (default 10 s), parks the rest, and closes the store. */
  async close(options: { grace?: number } = {}): Promise<void> {
    // What is waited for may be a promise alone, which does not keep a process from ending.
    const alive = setInterval(() => {}, 1 << 30);
    try {
      await this.#retention?.stop();
      await this.runtime.close(options.grace);
      await this.swarm.close?.();
      if (!this.#ownsStore) return;
      await this.bus.close();
      await this.store.close();
    } finally {
      clearInterval(alive);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Decisions B18: `next` lends a message, `answer` commits what was done with it, `release` puts it back. */
export class RemoteAgent {
  readonly name: string;
  readonly #runtime: Runtime;

  constructor(name: string, runtime: Runtime) {
    this.name = name;
    this.#runtime = runtime;
  }

  /** Waits for mail. Nothing if the signal fired or the mailroom was closed. */
  next(options: { signal?: AbortSignal } = {}): Promise<Lending | undefined> {
    return this.#runtime.remote.next(this.name, options);
  }

  answer(lending: Lending, answer: AgentAnswer): Promise<void> {
    return this.#runtime.remote.answer(lending, lending.message.id, answer);
  }

  release(lending: Lending): Promise<void> {
    return this.#runtime.remote.release(lending, lending.message.id);
  }
}

function openStore({ data, durability, swarm }: MailroomOptions): Promise<Store> {
  const kept = durability === undefined ? {} : { durability };
  if (data === false) return openSqliteStore({ path: ":memory:" });
  return openSqliteStore({ directory: data ?? join(".mailroom", swarm.name), ...kept });
}

function reportToStderr(problem: Problem): void {
  const task = problem.task === undefined ? "" : ` (task ${problem.task})`;
  process.stderr.write(`mailroom: ${problem.code}: ${problem.message}${task}\n`);
}
