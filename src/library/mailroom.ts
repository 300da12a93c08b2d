/** The library's front door: one swarm, one data directory, any number of callers (decisions A1). */
import { join } from "node:path";
import type { Action, AgentAnswer } from "../engine/agent.js";
import type { Carrier } from "../engine/carrier.js";
import type { SwarmDefinition } from "../engine/definition.js";
import type { KeyValueMemory } from "../engine/memory.js";
import type { Bus, Clock, Ids, InstanceId, Store } from "../engine/ports.js";
import {
  type ActionOverride,
  type Closed,
  type Lending,
  type Problem,
  Runtime,
  type RuntimeError,
  type RuntimeLimits,
} from "../engine/runtime/index.js";
import { createLocalBus, type Durability, openStore } from "../store/index.js";
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
  /** Told while tasks of an earlier process are taken up: how many are, and of how many. First with none. */
  readonly onRecovery?: (recovered: number, of: number) => void;
  /** `false`: opening does not take up the tasks of an earlier process; whoever opened calls `takeUp`. */
  readonly takeUp?: boolean;
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

interface MailroomParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly report: (problem: Problem) => void;
}

export class Mailroom {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly bus: Bus;
  /**
   * Resolves when the store has failed for good. By then whoever waited was told, and the mailroom closes itself;
   * opening it again goes on from what is on disk.
   */
  readonly failed: Promise<RuntimeError>;
  readonly #retention: Retention | undefined;
  readonly #ownsStore: boolean;
  readonly #onRecovery: MailroomOptions["onRecovery"];
  #recovered = 0;
  #takingUp: Promise<number> | undefined;
  #closing: Promise<Closed> | undefined;

  private constructor(options: MailroomOptions, { store, bus, clock, report }: MailroomParts) {
    const { swarm, ids = systemIds, retention } = options;
    this.store = store;
    this.bus = bus;
    this.#ownsStore = options.store === undefined;
    this.#onRecovery = options.onRecovery;
    let fail: (error: RuntimeError) => void = () => {};
    this.failed = new Promise((resolve) => {
      fail = resolve;
    });
    this.runtime = new Runtime({
      store,
      bus,
      clock,
      ids,
      definition: swarm,
      report,
      onFailed: (error) => {
        fail(error);
        // Nobody waits for this, and the host must not end over it.
        this.close().catch((cause: unknown) =>
          report({ code: "close_failed", message: String(cause), cause }),
        );
      },
      ...(options.limits !== undefined && { limits: options.limits }),
      ...(options.memory !== undefined && { memory: options.memory }),
      ...(options.carriers !== undefined && { carriers: options.carriers }),
      ...(options.systemActions !== undefined && { systemActions: options.systemActions }),
      ...(options.actionOverride !== undefined && { actionOverride: options.actionOverride }),
    });
    const { runtime } = this;
    this.#retention =
      retention === undefined
        ? undefined
        : new Retention({ options: retention, store, runtime, clock, report });
    this.#retention?.start();
  }

  /**
   * Opens the data directory and takes up every task that was running.
   * @throws StoreLockedError when another process has it open.
   */
  static async open(options: MailroomOptions): Promise<Mailroom> {
    const { clock = systemClock } = options;
    const report = options.onProblem ?? reportToStderr;
    const store = options.store ?? (await openOwnStore(options));
    const bus =
      options.bus ??
      createLocalBus({
        onError: (cause) => report({ code: "listener_failed", message: String(cause), cause }),
      });
    const mailroom = new Mailroom(options, { store, bus, clock, report });
    if (options.takeUp === false) return mailroom;
    try {
      await mailroom.takeUp();
    } catch (error) {
      // Nobody gets a mailroom that could close it, so the lock would stay until the process ends.
      await mailroom.close({ grace: 0 });
      throw error;
    }
    return mailroom;
  }

  /**
   * Takes up what an earlier process left, a little at a time: everybody is served meanwhile. Resolves with the number
   * of tasks that run again. `open` does this unless it is told not to.
   * @throws RuntimeError `store_failed`
   */
  takeUp(): Promise<number> {
    this.#takingUp ??= this.#takeUp();
    return this.#takingUp;
  }

  async #takeUp(): Promise<number> {
    const taken = await this.runtime.recover((recovered, of) => {
      this.#recovered = recovered;
      this.#onRecovery?.(recovered, of);
    });
    const { failure } = this.runtime;
    if (failure !== undefined) throw failure;
    return taken;
  }

  /** How many unfinished tasks of an earlier process were taken up so far. */
  get recovered(): number {
    return this.#recovered;
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

  /**
   * Lets what runs finish for up to `grace` milliseconds (default 10 s), parks the rest, and closes the store. Calling
   * it again gives the same promise. Resolves with how much could not be written, which is nothing unless the store
   * took no writes until the end.
   */
  close(options: { grace?: number } = {}): Promise<Closed> {
    this.#closing ??= this.#close(options.grace);
    return this.#closing;
  }

  async #close(grace: number | undefined): Promise<Closed> {
    // What is waited for may be a promise alone, which does not keep a process from ending.
    const alive = setInterval(() => {}, 1 << 30);
    try {
      this.#retention?.stop();
      const closed = await this.runtime.close(grace);
      await this.#letGo();
      return closed;
    } finally {
      clearInterval(alive);
    }
  }

  /** Everything is let go, whatever fails on the way. @throws what failed first */
  async #letGo(): Promise<void> {
    const steps = [
      () => this.swarm.close?.(),
      ...(this.#ownsStore ? [() => this.bus.close(), () => this.store.close()] : []),
    ];
    const failures: { readonly cause: unknown }[] = [];
    for (const step of steps) {
      try {
        await step();
      } catch (cause) {
        failures.push({ cause });
      }
    }
    const [first] = failures;
    if (first !== undefined) throw first.cause;
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

function openOwnStore({ data, durability, swarm }: MailroomOptions): Promise<Store> {
  const kept = durability === undefined ? {} : { durability };
  if (data === false) return openStore({ path: ":memory:" });
  return openStore({ directory: data ?? join(".mailroom", swarm.name), ...kept });
}

function reportToStderr(problem: Problem): void {
  const task = problem.task === undefined ? "" : ` (task ${problem.task})`;
  process.stderr.write(`mailroom: ${problem.code}: ${problem.message}${task}\n`);
}
