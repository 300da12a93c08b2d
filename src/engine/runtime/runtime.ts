/**
 * The shell around the engine: it takes commands in, and acts on what the engine decided once that is durable: wakes
 * an agent, runs an action, hands mail to a carrier, answers who waits (law 1).
 *
 * This is its middle. Deciding and committing is in `ledger`, asking agents in `turn-runner`, running actions in
 * `action-runner`, mail to other swarms in `deliveries`, who runs next in `scheduler`, and which tasks are in memory
 * in `shelf`.
 */
import { formatTaskContributor } from "../../mail/owner.js";
import type { Action } from "../agent.js";
import type { Carrier } from "../carrier.js";
import type { Command } from "../commands.js";
import { TASK_TIMEOUT } from "../deciding/endings.js";
import type { SwarmDefinition } from "../definition.js";
import type { Entry, ManualReply } from "../entries.js";
import type { KeyValueMemory } from "../memory.js";
import type { Bus, Clock, Ids, InstanceId, JournalKey, RowWrite, Store, TaskRemove } from "../ports.js";
import { rulesOf, type SwarmRules } from "../rules.js";
import type { TaskState } from "../state.js";
import { ActionRunner } from "./action-runner.js";
import { type ActionOverride, describe } from "./actions.js";
import type { Core, Phase, Problem } from "./core.js";
import { Deliveries } from "./deliveries.js";
import { Equipment } from "./equipment.js";
import { RuntimeError, unknownTask } from "./errors.js";
import { type FollowOptions, follow, type NumberedEntry } from "./follow.js";
import { HeadCount } from "./head-count.js";
import { Holds } from "./holds.js";
import { Ledger, notWritten } from "./ledger.js";
import { DEFAULT_RUNTIME_LIMITS, type RuntimeLimits } from "./limits.js";
import type { LiveTask } from "./live-task.js";
import { Params } from "./params.js";
import { checkedTaskId, messageFromPerson } from "./person-message.js";
import {
  type Posted,
  type PostedAt,
  type PostInput,
  type ReceiveInput,
  type RowsFor,
  rowsFor,
  titleOf,
} from "./posting.js";
import { Probation } from "./probation.js";
import { Quiet } from "./quiet.js";
import { RemoteMailboxes } from "./remote.js";
import { Round } from "./round.js";
import { Scheduler } from "./scheduler.js";
import { Shelf } from "./shelf.js";
import type { StopReason } from "./stopper.js";
import { Timers } from "./timers.js";
import { TurnRunner } from "./turn-runner.js";
import { type Outcome, Waiters } from "./waiters.js";

export interface RuntimeParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly definition: SwarmDefinition;
  readonly limits?: Partial<RuntimeLimits>;
  readonly carriers?: readonly Carrier[];
  /** See `addSystemAction`: handed in here, they are known before tasks are taken up. */
  readonly systemActions?: readonly Action[];
  readonly actionOverride?: ActionOverride;
  /** For actions. Default: the store's. */
  readonly memory?: KeyValueMemory;
  readonly report?: (problem: Problem) => void;
}

/** The journal number of the message that opens a task: the opening itself is the first. */
const FIRST_MESSAGE = 2;

/** How long the picture of a task is left alone after a commit failed, before it is read again. */
const REVIVE_DELAY = 100;

export class Runtime implements Core {
  readonly limits: RuntimeLimits;
  readonly clock: Clock;
  readonly bus: Bus;
  readonly report: (problem: Problem) => void;
  readonly waiters = new Waiters();
  readonly remote: RemoteMailboxes;
  readonly #store: Store;
  readonly #ids: Ids;
  readonly #equipment = new Equipment();
  readonly #heads: HeadCount;
  readonly #shelf: Shelf;
  readonly #scheduler: Scheduler;
  readonly #probation: Probation;
  readonly #actions: ActionRunner;
  readonly #deliveries: Deliveries;
  readonly #holds: Holds;
  readonly #ledger: Ledger;
  readonly #timers: Timers;
  readonly #quiet: Quiet;
  readonly #params = new Params();
  /** Definitions that were replaced, while their actions end. */
  readonly #leaving = new Set<Promise<void>>();
  #definition: SwarmDefinition;
  #rules: SwarmRules;
  #phase: Phase = "open";

  constructor(parts: RuntimeParts) {
    this.limits = { ...DEFAULT_RUNTIME_LIMITS, ...parts.limits };
    this.clock = parts.clock;
    this.bus = parts.bus;
    this.report = parts.report ?? (() => {});
    this.#store = parts.store;
    this.#ids = parts.ids;
    this.#definition = parts.definition;
    this.#rules = rulesOf(parts.definition, this.limits);
    this.#equipment.equip(parts.definition);
    for (const action of parts.systemActions ?? []) this.addSystemAction(action);
    this.#heads = new HeadCount(this.limits);
    this.#shelf = new Shelf({
      store: parts.store,
      limits: this.limits,
      onLoaded: (task) => this.#takeUp(task),
      isAwaited: (key) => this.waiters.has(key),
      report: this.report,
    });
    this.#scheduler = new Scheduler(
      this.limits,
      (task) => {
        try {
          return turns.start(task);
        } catch (error) {
          // A mistake of ours in one task keeps no other from being served.
          this.#lose(task, error);
          return false;
        }
      },
      (task) => this.#shelf.rest(task),
    );
    this.#probation = new Probation(this.clock, (task) => {
      this.#scheduler.offer(task);
      this.#scheduler.pump();
    });
    const shared = { core: this, equipment: this.#equipment, scheduler: this.#scheduler };
    const turns = new TurnRunner({ ...shared, probation: this.#probation });
    this.#actions = new ActionRunner({
      ...shared,
      override: parts.actionOverride,
      memory: parts.memory ?? parts.store.memory,
    });
    this.#deliveries = new Deliveries(this, parts.carriers ?? []);
    this.#holds = new Holds({
      paused: (after, limit) => parts.store.tasks.withStatus("paused", after, limit),
      isHeld: async (key) => (await this.read(key, ({ held }) => held !== undefined)) === true,
      retry: (key) => this.command(key, { type: "retry" }),
      isOpen: () => this.#phase === "open",
      failed: (error, key) => this.#notRetried(error, key),
    });
    this.#timers = new Timers(this);
    this.#quiet = new Quiet(this.clock, () => this.#shelf.tasks());
    this.#ledger = new Ledger({
      store: parts.store,
      bus: parts.bus,
      clock: parts.clock,
      ids: parts.ids,
      shelf: this.#shelf,
      heads: this.#heads,
      rules: () => this.#rules,
      carriedRows: (task, entries) => this.#deliveries.rowsFor(task, entries),
      act: (task, entries) => this.#act(task, entries),
      lose: (task, error) => this.#lose(task, error),
    });
    this.remote = new RemoteMailboxes({
      apply: (task, command) => this.#ledger.applyOrThrow(task, command).promise,
      task: (key) => this.#shelf.get(key),
      tools: (agent) => this.#equipment.agent(agent)?.tools ?? [],
      isRemote: (agent) => this.#rules.agents.get(agent)?.remote === true,
    });
  }

  get phase(): Phase {
    return this.#phase;
  }

  get definition(): SwarmDefinition {
    return this.#definition;
  }

  get rules(): SwarmRules {
    return this.#rules;
  }

  /** Tasks in memory; for those who watch the process. */
  get figures(): { liveTasks: number; runningTasks: number; turns: number } {
    return {
      liveTasks: this.#shelf.size,
      runningTasks: this.#heads.running,
      turns: this.#scheduler.running,
    };
  }

  addCarrier(carrier: Carrier): void {
    this.#deliveries.addCarrier(carrier);
  }

  /** What a MAIL tool does that is carried out like an action (`discover_swarms`). */
  addSystemAction(action: Action): void {
    this.#equipment.addSystemAction(action);
  }

  /** Values for the agents and actions of an instance. Held in memory only. */
  setParams(instance: InstanceId, params: Readonly<Record<string, unknown>>): void {
    if (this.#params.set(instance, params)) void this.#holds.retryAll(instance);
  }

  paramsOf(instance: InstanceId): Readonly<Record<string, unknown>> {
    return this.#params.of(instance);
  }

  /**
   * Replaces the swarm. Running tasks go on with what is there now (decisions B17); the old definition is closed when
   * its actions that are under way have ended.
   */
  redefine(definition: SwarmDefinition): void {
    const replaced = this.#definition;
    // It was still being loaded when the end came, and nobody else will close it.
    if (this.#phase !== "open") return this.#letGo(definition);
    this.#definition = definition;
    this.#rules = rulesOf(definition, this.limits);
    this.#equipment.equip(definition);
    for (const task of this.#shelf.tasks()) {
      if (task.state.status === "running") this.apply(task, { type: "redefine" });
    }
    if (replaced.close !== definition.close) this.#letGo(replaced);
  }

  #letGo(definition: SwarmDefinition): void {
    const leaving = this.#actions
      .ended()
      .then(() => definition.close?.())
      .catch((cause: unknown) => this.report({ code: "close_failed", message: describe(cause), cause }))
      .finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  /** Takes up every task that was running when the process ended. */
  async recover(onProgress?: (recovered: number) => void): Promise<number> {
    let recovered = 0;
    let after: JournalKey | undefined;
    for (;;) {
      const rows = await this.#store.tasks.withStatus("running", after, 500);
      for (const row of rows) await this.#shelf.tryLoad(row.key);
      recovered += rows.length;
      after = rows.at(-1)?.key;
      onProgress?.(recovered);
      if (rows.length < 500) break;
    }
    this.#scheduler.pump();
    // Beside everything else: there may be many paused tasks, and nobody waits for these.
    this.#holds.takeUp().catch((error: unknown) => this.#notRetried(error));
    return recovered;
  }

  /** Held tasks that cannot be tried now stay as they are, and are tried the next time. */
  #notRetried(cause: unknown, task?: JournalKey): void {
    if (this.#phase !== "open") return;
    const problem = { code: "retry_failed", message: describe(cause), cause };
    this.report(task === undefined ? problem : { ...problem, task });
  }

  /** Puts a person's message into a task of theirs: a new one, or one that goes on. Resolves when it is durable. */
  async post(instance: InstanceId, input: PostInput): Promise<Posted> {
    this.#assertOpen();
    const task =
      input.taskId === undefined ? undefined : await this.#shelf.findOrReserve(instance, input.taskId);
    if (typeof task === "function") {
      // The id is unused and reserved for us until the task is open.
      try {
        if (input.resumeFrom !== undefined) throw unknownTask(input.taskId ?? "");
        return await this.#open(instance, input);
      } finally {
        task();
      }
    }
    if (task === undefined) {
      if (input.resumeFrom !== undefined) throw unknownTask("");
      return this.#open(instance, input);
    }
    if (input.manual === true && !task.state.manual) {
      throw new RuntimeError(
        "wrong_state",
        `task '${task.state.taskId}' exists and does not run in manual mode`,
      );
    }
    const { state } = task;
    if (state.status !== "running") this.#heads.assertRoom(instance);
    const moment = this.#ledger.moment();
    const { entrypoint } = state;
    const { message, to, remote } = messageFromPerson(this.#rules, instance, state.taskId, input, moment, {
      entrypoint,
    });
    const { resumeFrom, maxSteps } = input;
    return this.#applyAndWait(
      task,
      message.id,
      {
        type: "post",
        message,
        to,
        remote,
        ...(resumeFrom !== undefined && { resumeFrom }),
        ...(maxSteps !== undefined && { maxSteps }),
      },
      input.rows,
    );
  }

  /**
   * Puts mail from another swarm into the task it belongs to, or adopts the task. Resolves when it is durable.
   * @throws RuntimeError `unknown_task`, `owner_mismatch`, or what the engine refuses
   */
  async receive(input: ReceiveInput): Promise<PostedAt & { readonly opened: boolean }> {
    this.#assertOpen();
    const { instance, taskId, owner, contributors, message, to, resumes } = input;
    const found = await this.#shelf.findOrReserve(instance, taskId);
    if (typeof found === "function") {
      try {
        if (!input.adopts) throw unknownTask(taskId);
        return await this.#adoptForeign(input);
      } finally {
        found();
      }
    }
    if (found.state.owner !== owner) {
      throw new RuntimeError("owner_mismatch", `task '${taskId}' belongs to another owner than '${owner}'`);
    }
    if (resumes && found.state.status !== "running") this.#heads.assertRoom(instance);
    const at = nextPlace(found, message.id);
    const command: Command = { type: "post", message, to, contributors, resumes };
    const { promise, number } = this.#ledger.applyOrThrow(found, command, rowsFor(input.rows, at));
    await promise;
    return { ...at, number, opened: false };
  }

  async #adoptForeign(input: ReceiveInput): Promise<PostedAt & { readonly opened: boolean }> {
    const { instance, taskId, owner, contributors, message, to } = input;
    const { swarm, entrypoint } = this.#rules;
    const key = this.#ids.ordered();
    const task = { key, instance, taskId, swarm, owner, contributors, entrypoint };
    const at: PostedAt = { key, taskId, messageId: message.id, number: FIRST_MESSAGE };
    const title = titleOf(message.message.body);
    const moment = this.#ledger.moment();
    await this.#ledger.open({ type: "open", task, message, to }, moment, title, rowsFor(input.rows, at));
    return { ...at, opened: true };
  }

  /** Answers the breakpoint calls of a paused task; what becomes of it is the outcome. */
  async answerBreakpoint(
    instance: InstanceId,
    taskId: string,
    answer: Omit<Extract<Command, { type: "answer_breakpoint" }>, "type">,
    rows?: RowsFor,
  ): Promise<Posted> {
    this.#assertOpen();
    const task = await this.#require(instance, taskId);
    return this.#applyAndWait(task, this.#ids.uuid(), { type: "answer_breakpoint", ...answer }, rows);
  }

  /** Decisions B14. @throws RuntimeError `already_ended` */
  async cancel(key: JournalKey, by: string, rows?: readonly RowWrite[]): Promise<void> {
    this.#assertOpen();
    const task = await this.#shelf.get(key);
    if (task === undefined) throw unknownTask(key);
    await this.#ledger.applyOrThrow(task, { type: "cancel", by }, rows).promise;
  }

  /** One step of a task in manual mode; resolves when the step is durable and about to run. */
  async manualStep(
    instance: InstanceId,
    taskId: string,
    agent: string,
    payload: string,
    reply: ManualReply,
  ): Promise<{ key: JournalKey; number: number }> {
    this.#assertOpen();
    const task = await this.#require(instance, taskId);
    const step: Command = { type: "manual_step", agent, payload, reply };
    const { promise, number } = this.#ledger.applyOrThrow(task, step);
    await promise;
    return { key: task.key, number };
  }

  /** Any other command, for the rooms that extend the engine. @throws RuntimeError when it is refused */
  async command(key: JournalKey, command: Command, rows?: readonly RowWrite[]): Promise<void> {
    this.#assertOpen();
    const task = await this.#shelf.get(key);
    if (task === undefined) throw unknownTask(key);
    await this.#ledger.applyOrThrow(task, command, rows).promise;
  }

  /**
   * What becomes of something that was posted before, also by an earlier process: from the journal if its round has
   * ended, else when it ends.
   * @throws RuntimeError `unknown_task` when the task was removed
   */
  async outcomeOf(at: PostedAt): Promise<Outcome> {
    this.#assertOpen();
    // Before the journal is read, so that an ending is seen there or here.
    const waiting = this.waiters.wait(at.key, at.messageId);
    try {
      const round = new Round(at);
      let found = false;
      for await (const { number, entry } of this.follow(at.key, { after: at.number - 1, once: true })) {
        found = true;
        const outcome = round.see(number, entry);
        if (outcome !== undefined) {
          waiting.forget();
          return outcome;
        }
      }
      if (!found) throw unknownTask(at.taskId);
    } catch (error) {
      waiting.forget();
      throw error;
    }
    return waiting.promise;
  }

  /** The internal key of a task of this instance. */
  find(instance: InstanceId, taskId: string): Promise<JournalKey | undefined> {
    return this.#shelf.keyOf(instance, taskId);
  }

  /**
   * Reads a task's state as it is on disk. The reader gets the live object: it must copy what it keeps.
   */
  async read<T>(key: JournalKey, reader: (state: TaskState) => T): Promise<T | undefined> {
    const found = await this.#shelf.get(key);
    if (found === undefined) return undefined;
    const task = this.#shelf.current(found);
    task.holds++;
    try {
      while (task.uncommitted > 0 && !task.lost) await this.#ledger.committed(task);
      return reader(task.state);
    } finally {
      task.holds--;
      this.#shelf.rest(task);
    }
  }

  follow(
    key: JournalKey,
    options: Partial<FollowOptions> = {},
  ): AsyncGenerator<NumberedEntry, void, undefined> {
    return follow(this.#store, this.bus, key, { backlog: this.limits.followerBacklog, ...options });
  }

  /** Removes a finished task that rests. False if something is going on in it. */
  async remove(key: JournalKey): Promise<boolean> {
    const live = this.#shelf.peek(key);
    if (live !== undefined) {
      if (!live.resting || live.state.status === "running" || this.waiters.has(key)) return false;
      this.#shelf.forget(live);
    } else if ((await this.#store.tasks.byKey(key))?.status === "running") {
      return false;
    }
    const removal: TaskRemove = { kind: "task.remove", key };
    await this.#store.commit({ appends: [], rows: [removal] });
    return true;
  }

  /**
   * Stops: no turn starts any more, turns and actions under way get `grace` milliseconds to finish, then their
   * signals fire and they are parked; the next process takes them up.
   */
  async close(grace = 10_000): Promise<void> {
    if (this.#phase !== "open") return;
    this.#phase = "closing";
    this.#scheduler.stop();
    this.remote.close();
    await this.#quiet.within(grace);
    for (const task of this.#shelf.tasks()) stopAll(task, "shutdown");
    await this.#quiet.within(grace);
    this.#phase = "closed";
    for (const task of this.#shelf.tasks()) task.cancelTimers();
    this.waiters.failAll(
      new RuntimeError("closed", "the mailroom was closed; the task goes on when it is opened again"),
    );
    await Promise.all(this.#leaving);
  }

  apply(task: LiveTask, command: Command, onCommitted?: () => void): boolean {
    return this.#ledger.apply(task, command, undefined, onCommitted).decision.ok;
  }

  settle(task: LiveTask): void {
    this.#freeSlots(task);
    this.#scheduler.offer(task);
    this.#scheduler.pump();
    this.#shelf.rest(task);
  }

  async #open(instance: InstanceId, input: PostInput): Promise<Posted> {
    const { swarm } = this.#rules;
    const { maxSteps } = input;
    const taskId = input.taskId === undefined ? this.#ids.ordered() : checkedTaskId(input.taskId);
    const key = this.#ids.ordered();
    const moment = this.#ledger.moment();
    const { message, to, remote, entrypoint } = messageFromPerson(
      this.#rules,
      instance,
      taskId,
      input,
      moment,
    );
    const owner = formatTaskContributor({ role: instance.role, id: instance.id, swarm });
    const contributors = [owner];
    const header = { key, instance, taskId, swarm, owner, contributors, entrypoint };
    const limited = maxSteps === undefined ? header : { ...header, maxSteps };
    const task = input.manual === true ? { ...limited, manual: true as const } : limited;
    const messageId = message.id;
    const outcome = this.waiters.wait(key, messageId);
    const at: PostedAt = { key, taskId, messageId, number: FIRST_MESSAGE };
    try {
      const command = { type: "open" as const, task, message, to, remote };
      await this.#ledger.open(command, moment, titleOf(input.body), rowsFor(input.rows, at));
    } catch (error) {
      outcome.forget();
      throw error;
    }
    return { key, taskId, messageId, number: FIRST_MESSAGE, opened: true, outcome: outcome.promise };
  }

  /** Puts something into a task that is there, for somebody who waits for what becomes of it. */
  async #applyAndWait(
    task: LiveTask,
    messageId: string,
    command: Command,
    rows: RowsFor | undefined,
  ): Promise<Posted> {
    const { key } = task;
    const outcome = this.waiters.wait(key, messageId);
    try {
      const committed = rowsFor(rows, nextPlace(task, messageId));
      const { promise, number } = this.#ledger.applyOrThrow(task, command, committed);
      await promise;
      const { taskId } = task.state;
      return { key, taskId, messageId, number, opened: false, outcome: outcome.promise };
    } catch (error) {
      outcome.forget();
      throw error;
    }
  }

  #act(task: LiveTask, entries: readonly Entry[]): void {
    for (const entry of entries) {
      switch (entry.t) {
        case "sent":
          if (entry.message.msg_type === "interrupt") interrupt(task, entry.to);
          if (entry.remote !== undefined) {
            for (const swarm of entry.remote) this.#deliveries.carry(task, entry.message.id, swarm);
          }
          break;
        case "action_started":
          this.#actions.run(task, entry.agent);
          break;
        case "cancelled":
          stopAll(task, "cancelled");
          this.waiters.settle(task.state, entry);
          this.#holds.note(task.state);
          break;
        case "failed":
          if (entry.code === TASK_TIMEOUT) stopAll(task, "task_time_limit");
          this.waiters.settle(task.state, entry);
          break;
        case "completed":
        case "paused":
          this.waiters.settle(task.state, entry);
          this.#holds.note(task.state);
          break;
        case "opened":
        case "resumed":
          // What starts from here on was not under way when the process started.
          task.recoveredUpTo = 0;
          this.#timers.setDeadline(task);
          this.#holds.note(task.state);
          break;
        default:
          break;
      }
    }
    this.#freeSlots(task);
    this.#shelf.snapshotIfLong(task);
    this.#timers.watchReplies(task);
    if (task.state.status === "running") {
      this.remote.offer(task);
      this.#scheduler.offer(task);
    }
    this.#scheduler.pump();
    this.#shelf.rest(task);
  }

  #freeSlots(task: LiveTask): void {
    for (const agent of task.busy) {
      if (task.isStarted(agent) || task.state.agents.get(agent)?.turn !== undefined) continue;
      this.#scheduler.free(task, agent);
    }
    this.#probation.check(task);
    this.#quiet.check();
  }

  /** A task was read from the store: what was going on in it goes on. */
  #takeUp(task: LiveTask): void {
    if (task.state.status !== "running") {
      // After a failed commit nobody may have been told that it is held, though that is durable.
      this.#holds.note(task.state);
      this.#actions.takeUp(task);
      // Also of a task that has ended: that it has is what some of this mail says.
      this.#deliveries.takeUp(task);
      return;
    }
    this.#heads.count(task.state.instance, 1);
    task.recoveredUpTo = task.state.number;
    this.apply(task, { type: "redefine" });
    this.#actions.takeUp(task);
    this.#deliveries.takeUp(task);
    this.#timers.setDeadline(task);
    this.#timers.watchReplies(task);
    if (task.state.status !== "running") return;
    this.remote.offer(task);
    this.#scheduler.offer(task);
    this.#scheduler.pump();
  }

  /** A commit failed: this picture of the task is worthless. What is on disk is the truth; it is read again. */
  #lose(task: LiveTask, error: unknown): void {
    if (task.lost) return;
    task.lost = true;
    stopAll(task, "lost");
    for (const agent of [...task.busy]) this.#scheduler.free(task, agent);
    this.#scheduler.pump();
    this.#probation.check(task);
    if (task.state.status === "running") this.#heads.count(task.state.instance, -1);
    this.#shelf.forget(task);
    this.#quiet.check();
    this.report({
      code: "commit_failed",
      message: `the task is read again after a failed commit: ${describe(error)}`,
      task: task.key,
      cause: error,
    });
    this.waiters.fail(task.key, notWritten(error));
    if (task.committed === 0) return;
    this.clock.after(REVIVE_DELAY, () => {
      if (this.phase === "open") void this.#shelf.tryLoad(task.key);
    });
  }

  async #require(instance: InstanceId, taskId: string): Promise<LiveTask> {
    const key = await this.find(instance, taskId);
    const task = key === undefined ? undefined : await this.#shelf.get(key);
    if (task === undefined) throw unknownTask(taskId);
    return task;
  }

  #assertOpen(): void {
    if (this.#phase !== "open") throw new RuntimeError("closed", "the mailroom is closing");
  }
}

/** Where the next thing posted to a task will stand: a message is the first entry of what follows from it. */
function nextPlace({ key, state }: LiveTask, messageId: string): PostedAt {
  return { key, taskId: state.taskId, messageId, number: state.number + 1 };
}

function interrupt(task: LiveTask, agents: readonly string[]): void {
  for (const agent of agents) task.turns.get(agent)?.stopper.stop("interrupt");
}

function stopAll(task: LiveTask, reason: StopReason): void {
  for (const turn of task.turns.values()) turn.stopper.stop(reason);
  for (const action of task.actions.values()) action.stopper.stop(reason);
}
