/** The library's entry point: one swarm, one data directory, any number of callers (decision A1). */
import { join } from "node:path";
import type { Clock, Ids } from "../base/index.js";
import { type MailroomError, type Problem, type Report, systemClock } from "../base/index.js";
import { systemIds } from "../base/node.js";
import { createLocalBus } from "../bus/index.js";
import type {
  Action,
  Carrier,
  InstanceId,
  KeyValueStore,
  Store,
  SwarmDefinition,
  TurnResult,
} from "../engine/index.js";
import {
  type ActionOverride,
  type Closed,
  type LentMessage,
  Runtime,
  type RuntimeLimits,
} from "../engine/index.js";
import type { Bus } from "../journal/index.js";
import { type Durability, openStore } from "../store/index.js";

import { Approvals } from "./approvals.js";
import { Budgets } from "./budgets.js";
import { Instance } from "./instance.js";
import { Retention, type RetentionOptions } from "./retention.js";

/** How `Mailroom.open` opens a mailroom. */
export interface MailroomOptions {
  readonly swarm: SwarmDefinition;
  /**
   * The data directory (default `./.mailroom/<swarm>`), or `false` to store everything in memory only.
   */
  readonly data?: string | false;
  /** `fsync` (default) survives a power failure, `fast` only a crash of the process. */
  readonly durability?: Durability;
  /** Limits of what runs at once and how long. Default: those of `docs/configuration.md`, without a step limit. */
  readonly limits?: Partial<RuntimeLimits>;
  /** Default: nothing is removed. */
  readonly retention?: RetentionOptions;
  /** Runs in place of every action, and can call the action. Default: none. */
  readonly actionOverride?: ActionOverride;
  /** Stores the key-value memory of instances. Default: the store. */
  readonly memory?: KeyValueStore;
  /** Deliver mail to other swarms. Default: none. */
  readonly carriers?: readonly Carrier[];
  /** Actions behind MAIL tools (`discover_swarms`). Default: none. */
  readonly systemActions?: readonly Action[];
  /** Receives problems that no caller is waiting for. Default: a line on stderr. */
  readonly onProblem?: Report;
  /** Called during recovery with the number of recovered tasks and their total. The first call has 0. Default: none. */
  readonly onRecovery?: (recovered: number, of: number) => void;
  /** `false`: opening does not recover tasks; the caller calls `recover`. Default: true. */
  readonly recover?: boolean;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Makes the ids of tasks and messages. Default: random UUIDs. */
  readonly ids?: Ids;
  /** A store of your own, which the caller closes. `data` and `durability` are then ignored. Default: SQLite in `data`. */
  readonly store?: Store;
  /** A bus of your own, which the caller closes. Default: one within this process. */
  readonly bus?: Bus;
}

/** A caller: a user or admin by id. `params` are passed to agents and actions and never stored. */
export interface CallerOptions {
  readonly params?: Readonly<Record<string, unknown>>;
}

interface MailroomParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly report: Report;
}

/**
 * A swarm that runs on a data directory. Every message is durable before it is acknowledged.
 *
 * @example
 * const mailroom = await Mailroom.open({ swarm, data: "./data" });
 * const answer = await mailroom.user("ann").ask("hello");
 * await mailroom.close();
 */
export class Mailroom {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly bus: Bus;
  /** Questions of tasks to people, and who may answer them. */
  readonly approvals: Approvals;
  /** What model calls used, and the limits on it. */
  readonly budgets: Budgets;
  /**
   * Resolves when the store has failed permanently. Pending calls have been rejected by then, and the mailroom closes
   * itself. Opening it again continues from what is on disk.
   */
  readonly failed: Promise<MailroomError>;
  readonly #retention: Retention | undefined;
  readonly #ownsStore: boolean;
  readonly #onRecovery: MailroomOptions["onRecovery"];
  #recovered = 0;
  #recovering: Promise<number> | undefined;
  #closing: Promise<Closed> | undefined;

  private constructor(options: MailroomOptions, { store, bus, clock, report }: MailroomParts) {
    const { swarm, ids = systemIds, retention } = options;
    this.store = store;
    this.bus = bus;
    this.#ownsStore = options.store === undefined;
    this.#onRecovery = options.onRecovery;
    let fail: (error: MailroomError) => void = () => {};
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
        // No caller waits for this, and it must not end the host process.
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
    this.approvals = new Approvals({ runtime, store, clock });
    this.budgets = new Budgets({ runtime, store, clock });
    this.#retention =
      retention === undefined
        ? undefined
        : new Retention({ options: retention, store, runtime, clock, report });
    this.#retention?.start();
  }

  /**
   * Opens the data directory and recovers every task that was running.
   * @throws MailroomError `store_locked` when another process has opened it.
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
    if (options.recover === false) return mailroom;
    try {
      await mailroom.recover();
    } catch (error) {
      // No caller gets a mailroom to close, so the lock would remain until the process ends.
      await mailroom.close({ grace: 0 });
      throw error;
    }
    return mailroom;
  }

  /**
   * Recovers the tasks of an earlier process in small steps; other calls are served meanwhile. Resolves with the number
   * of tasks that run again. `open` calls this by default.
   * @throws MailroomError `store_failed`
   */
  recover(): Promise<number> {
    this.#recovering ??= this.#recoverTasks();
    return this.#recovering;
  }

  async #recoverTasks(): Promise<number> {
    const taken = await this.runtime.recover((recovered, of) => {
      this.#recovered = recovered;
      this.#onRecovery?.(recovered, of);
    });
    const { failure } = this.runtime;
    if (failure !== undefined) throw failure;
    return taken;
  }

  /** How many tasks of an earlier process are recovered so far. */
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

  /** The mailbox of an agent in another process (`remote: true`). */
  remoteAgent(name: string): RemoteAgent {
    return new RemoteAgent(name, this.runtime);
  }

  /** Removes what retention does not keep, now. Returns the number of removed tasks. */
  async sweep(): Promise<number> {
    return (await this.#retention?.sweep()) ?? 0;
  }

  /**
   * Gives running turns and actions up to `grace` milliseconds (default 10 s), parks the rest, and closes the store.
   * Another call returns the same promise. Resolves with the number of decisions that could not be written, which is 0
   * unless the store refused writes until the end.
   */
  close(options: { grace?: number } = {}): Promise<Closed> {
    this.#closing ??= this.#close(options.grace);
    return this.#closing;
  }

  async #close(grace: number | undefined): Promise<Closed> {
    // A promise alone does not keep the process from ending.
    const alive = setInterval(() => {}, 1 << 30);
    try {
      this.#retention?.stop();
      const closed = await this.runtime.close(grace);
      await this.#release();
      return closed;
    } finally {
      clearInterval(alive);
    }
  }

  /** Releases everything, even if something fails. @throws the first failure */
  async #release(): Promise<void> {
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

/**
 * `next` lends a message, `answer` commits the agent's calls, `release` returns the message (decision B18).
 * @example
 * const agent = mailroom.remoteAgent("coder");
 * for (let lent = await agent.next(); lent !== undefined; lent = await agent.next()) {
 *   await agent.answer(lent, { text: "Reviewed.", calls: [] });
 * }
 */
export class RemoteAgent {
  readonly name: string;
  readonly #runtime: Runtime;

  constructor(name: string, runtime: Runtime) {
    this.name = name;
    this.#runtime = runtime;
  }

  /** Waits for mail. Returns `undefined` if the signal fired or the mailroom was closed. */
  next(options: { signal?: AbortSignal } = {}): Promise<LentMessage | undefined> {
    return this.#runtime.remote.next(this.name, options);
  }

  answer(lending: LentMessage, answer: TurnResult): Promise<void> {
    return this.#runtime.remote.answer(lending, lending.message.id, answer);
  }

  /** The agent cannot answer: its turn fails, and the agent that asked is notified. */
  fail(lending: LentMessage, reason: string): Promise<void> {
    return this.#runtime.remote.fail(lending, lending.message.id, reason);
  }

  release(lending: LentMessage): Promise<void> {
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
