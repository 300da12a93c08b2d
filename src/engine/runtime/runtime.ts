/**
 * The shell around the engine: it takes commands in, commits what the engine decides, and only then acts on it:
 * wakes an agent, runs an action, hands mail to a carrier, answers who waits (law 1).
 *
 * This is its middle. Asking agents is in `turn-runner`, running actions in `action-runner`, mail to other swarms in
 * `deliveries`, who runs next in `scheduler`, and which tasks are in memory in `shelf`.
 */
import type { MAILMessage } from "../../mail/message.js";
import { formatTaskContributor } from "../../mail/owner.js";
import type { Action } from "../agent.js";
import type { Carrier } from "../carrier.js";
import type { Command, Decision, Moment } from "../commands.js";
import { decide, openTask } from "../decide.js";
import { TASK_TIMEOUT } from "../deciding/endings.js";
import { nextReplyDue } from "../deciding/interswarm.js";
import type { SwarmDefinition } from "../definition.js";
import type { Entry, ManualReply } from "../entries.js";
import type { KeyValueMemory } from "../memory.js";
import type {
  Bus,
  Clock,
  Ids,
  InstanceId,
  JournalKey,
  RowWrite,
  Store,
  TaskPut,
  TaskRemove,
} from "../ports.js";
import { StaleAppendError } from "../ports.js";
import { rulesOf, type SwarmRules } from "../rules.js";
import type { TaskState } from "../state.js";
import { ActionRunner } from "./action-runner.js";
import { type ActionOverride, describe } from "./actions.js";
import { type Core, instanceKey, type Phase, type Problem } from "./core.js";
import { Deliveries } from "./deliveries.js";
import { Equipment } from "./equipment.js";
import { RuntimeError, refused } from "./errors.js";
import {
  ALL_TASKS_CHANNEL,
  type CommitNote,
  type FollowOptions,
  follow,
  type NumberedEntry,
  taskChannel,
} from "./follow.js";
import { HeadCount } from "./head-count.js";
import { DEFAULT_RUNTIME_LIMITS, type RuntimeLimits } from "./limits.js";
import { LiveTask } from "./live-task.js";
import { checkedTaskId, messageFromPerson, type PersonMessage } from "./person-message.js";
import { Probation } from "./probation.js";
import { RemoteMailboxes } from "./remote.js";
import { Round } from "./round.js";
import { Scheduler } from "./scheduler.js";
import { Shelf } from "./shelf.js";
import type { StopReason } from "./stopper.js";
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

export interface PostInput extends PersonMessage {
  /** A new task unless it names one. */
  readonly taskId?: string;
  readonly resumeFrom?: "user_response";
  /** Of the task, if it is new; of this round, if it goes on. `null` for no limit. */
  readonly maxSteps?: number | null;
  /** Opens the task in manual mode. */
  readonly manual?: boolean;
  /** Rows that are committed together with the message. */
  readonly rows?: RowsFor;
}

/** Mail from another swarm, judged and addressed: everything that decides about it was decided before. */
export interface ReceiveInput {
  readonly instance: InstanceId;
  readonly taskId: string;
  readonly owner: string;
  /** The owner and this instance included. */
  readonly contributors: readonly string[];
  readonly message: MAILMessage;
  readonly to: readonly string[];
  /** Whether a task that is not known here is taken over. A swarm's instance never creates one of its own. */
  readonly adopts: boolean;
  /** Whether an ended task goes on with it. */
  readonly resumes: boolean;
  readonly rows?: RowsFor;
}

/** Where something that was posted stands. Together with the task it names the round that follows from it. */
export interface PostedAt {
  readonly key: JournalKey;
  readonly taskId: string;
  readonly messageId: string;
  /** The journal number of the message: its consequences come after it. */
  readonly number: number;
}

/** Rows to be committed with something, or what makes them once it is known where that will stand. */
export type RowsFor = readonly RowWrite[] | ((at: PostedAt) => readonly RowWrite[]);

export interface Posted extends PostedAt {
  /** Whether this message opened the task. */
  readonly opened: boolean;
  /** What becomes of the message. Never rejects unhandled. */
  readonly outcome: Promise<Outcome>;
}

/** How long the picture of a task is left alone after a commit failed, before it is read again. */
const REVIVE_DELAY = 100;

/** Instances whose parameters are remembered; of more than that, those that were set longest ago are forgotten. */
const MOST_PARAMS = 10_000;

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
  readonly #params = new Map<string, Readonly<Record<string, unknown>>>();
  #definition: SwarmDefinition;
  #rules: SwarmRules;
  #phase: Phase = "open";
  #quiet: (() => void) | undefined;

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
    this.#scheduler = new Scheduler(this.limits, (task) => turns.start(task));
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
    this.remote = new RemoteMailboxes({
      apply: (task, command) => this.#applyAndWait(task, command),
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
    const key = instanceKey(instance);
    this.#params.delete(key);
    this.#params.set(key, params);
    if (this.#params.size <= MOST_PARAMS) return;
    const [oldest] = this.#params.keys();
    if (oldest !== undefined) this.#params.delete(oldest);
  }

  paramsOf(instance: InstanceId): Readonly<Record<string, unknown>> {
    return this.#params.get(instanceKey(instance)) ?? NO_PARAMS;
  }

  /** Replaces the swarm. Running tasks go on with what is there now (decisions B17). */
  redefine(definition: SwarmDefinition): void {
    this.#definition = definition;
    this.#rules = rulesOf(definition, this.limits);
    this.#equipment.equip(definition);
    for (const task of this.#shelf.tasks()) {
      if (task.state.status === "running") this.apply(task, { type: "redefine" });
    }
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
    return recovered;
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
    if (task.state.status !== "running") this.#heads.assertRoom(instance);
    const { message, to, remote } = messageFromPerson(
      this.#rules,
      instance,
      task.state.taskId,
      input,
      this.#moment(),
      {
        entrypoint: task.state.entrypoint,
      },
    );
    const outcome = this.waiters.wait(task.key, message.id);
    const at = this.#nextPlace(task, message.id);
    const { promise, number } = this.#applyOrThrow(
      task,
      {
        type: "post",
        message,
        to,
        remote,
        ...(input.resumeFrom !== undefined && { resumeFrom: input.resumeFrom }),
        ...(input.maxSteps !== undefined && { maxSteps: input.maxSteps }),
      },
      outcome.forget,
      rowsFor(input.rows, at),
    );
    await promise.catch((error: unknown) => {
      outcome.forget();
      throw error;
    });
    return {
      key: task.key,
      taskId: task.state.taskId,
      messageId: message.id,
      number,
      opened: false,
      outcome: outcome.promise,
    };
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
    const at = this.#nextPlace(found, message.id);
    const { promise, number } = this.#applyOrThrow(
      found,
      { type: "post", message, to, contributors, resumes },
      undefined,
      rowsFor(input.rows, at),
    );
    await promise;
    return { ...at, number, opened: false };
  }

  async #adoptForeign(input: ReceiveInput): Promise<PostedAt & { readonly opened: boolean }> {
    const { instance, taskId, owner, contributors, message, to } = input;
    this.#heads.assertRoom(instance);
    const rules = this.#rules;
    const key = this.#ids.ordered();
    const { swarm, entrypoint } = rules;
    const task = { key, instance, taskId, swarm, owner, contributors, entrypoint };
    const decision = openTask({ type: "open", task, message, to }, rules, this.#moment());
    if (!decision.ok) throw refused(decision.refusal);
    const live = new LiveTask(decision.state, decision.state.status, 0);
    this.#shelf.add(live);
    this.#heads.count(instance, 1);
    const at: PostedAt = { key, taskId, messageId: message.id, number: 2 };
    const row = this.#rowOf(live, titleOf({ body: message.message.body }));
    await this.#commit(live, decision.entries, [row, ...(rowsFor(input.rows, at) ?? [])]);
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
    const messageId = this.#ids.uuid();
    const outcome = this.waiters.wait(task.key, messageId);
    const { promise, number } = this.#applyOrThrow(
      task,
      { type: "answer_breakpoint", ...answer },
      outcome.forget,
      rowsFor(rows, this.#nextPlace(task, messageId)),
    );
    await promise.catch((error: unknown) => {
      outcome.forget();
      throw error;
    });
    return { key: task.key, taskId, messageId, number, opened: false, outcome: outcome.promise };
  }

  /** Decisions B14. @throws RuntimeError `already_ended` */
  async cancel(key: JournalKey, by: string, rows?: readonly RowWrite[]): Promise<void> {
    this.#assertOpen();
    const task = await this.#shelf.get(key);
    if (task === undefined) throw unknownTask(key);
    await this.#applyOrThrow(task, { type: "cancel", by }, undefined, rows).promise;
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
    const { promise, number } = this.#applyOrThrow(task, { type: "manual_step", agent, payload, reply });
    await promise;
    return { key: task.key, number };
  }

  /** Any other command, for the rooms that extend the engine. @throws RuntimeError when it is refused */
  async command(key: JournalKey, command: Command, rows?: readonly RowWrite[]): Promise<void> {
    this.#assertOpen();
    const task = await this.#shelf.get(key);
    if (task === undefined) throw unknownTask(key);
    await this.#applyOrThrow(task, command, undefined, rows).promise;
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
      while (task.uncommitted > 0 && !task.lost) await this.#committed(task);
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
    await this.#quietWithin(grace);
    for (const task of this.#shelf.tasks()) stopAll(task, "shutdown");
    await this.#quietWithin(grace);
    this.#phase = "closed";
    for (const task of this.#shelf.tasks()) task.cancelTimers();
    this.waiters.failAll(
      new RuntimeError("closed", "the mailroom was closed; the task goes on when it is opened again"),
    );
  }

  apply(task: LiveTask, command: Command, onCommitted?: () => void): boolean {
    return this.#apply(task, command, [], onCommitted).decision.ok;
  }

  settle(task: LiveTask): void {
    this.#freeSlots(task);
    this.#scheduler.offer(task);
    this.#scheduler.pump();
    this.#shelf.rest(task);
  }

  #open(instance: InstanceId, input: PostInput): Promise<Posted> {
    this.#heads.assertRoom(instance);
    const rules = this.#rules;
    const taskId = input.taskId === undefined ? this.#ids.ordered() : checkedTaskId(input.taskId);
    const key = this.#ids.ordered();
    const moment = this.#moment();
    const { message, to, remote, entrypoint } = messageFromPerson(rules, instance, taskId, input, moment);
    const owner = formatTaskContributor({ role: instance.role, id: instance.id, swarm: rules.swarm });
    const decision = openTask(
      {
        type: "open",
        task: {
          key,
          instance,
          taskId,
          swarm: rules.swarm,
          owner,
          contributors: [owner],
          entrypoint,
          ...(input.maxSteps !== undefined && { maxSteps: input.maxSteps }),
          ...(input.manual === true && { manual: true as const }),
        },
        message,
        to,
        remote,
      },
      rules,
      moment,
    );
    if (!decision.ok) return Promise.reject(refused(decision.refusal));
    const task = new LiveTask(decision.state, decision.state.status, 0);
    this.#shelf.add(task);
    this.#heads.count(instance, 1);
    const outcome = this.waiters.wait(key, message.id);
    const row = this.#rowOf(task, titleOf(input));
    const at: PostedAt = { key, taskId, messageId: message.id, number: 2 };
    const committed = this.#commit(task, decision.entries, [row, ...(rowsFor(input.rows, at) ?? [])]);
    return committed.then(
      () => ({ ...at, opened: true, outcome: outcome.promise }),
      (error: unknown) => {
        outcome.forget();
        throw error;
      },
    );
  }

  /** Decides and sends the entries on their way. The promise resolves when they are durable and acted on. */
  #apply(
    task: LiveTask,
    command: Command,
    rows: readonly RowWrite[] = [],
    onCommitted?: () => void,
  ): { decision: Decision; promise: Promise<void> } {
    if (task.lost) return { decision: LOST, promise: Promise.resolve() };
    const before = task.state.status;
    const decision = this.#decide(task, command);
    if (!decision.ok || decision.entries.length === 0) {
      onCommitted?.();
      return { decision, promise: Promise.resolve() };
    }
    const { status } = task.state;
    if (before !== status) {
      if (before === "running") this.#heads.count(task.state.instance, -1);
      else if (status === "running") this.#heads.count(task.state.instance, 1);
    }
    const changed = task.storedStatus !== status;
    const all = changed ? [this.#rowOf(task), ...rows] : rows;
    if (changed) task.storedStatus = status;
    const promise = this.#commit(task, decision.entries, all, onCommitted);
    promise.catch(() => {});
    return { decision, promise };
  }

  /** A mistake in the engine must not leave half a decision behind: the picture is thrown away with it. */
  #decide(task: LiveTask, command: Command): Decision {
    try {
      return decide(task.state, command, this.#rules, this.#moment());
    } catch (error) {
      this.#lose(task, error);
      return LOST;
    }
  }

  #applyOrThrow(
    found: LiveTask,
    command: Command,
    onRefusal?: () => void,
    rows?: readonly RowWrite[],
  ): { promise: Promise<void>; number: number } {
    const task = this.#shelf.current(found);
    if (task.lost) throw beingReadAgain();
    const number = task.state.number + 1;
    const { decision, promise } = this.#apply(task, command, rows);
    if (!decision.ok) {
      onRefusal?.();
      this.#shelf.rest(task);
      throw decision === LOST ? beingReadAgain() : refused(decision.refusal);
    }
    return { promise, number };
  }

  /** Where the next thing posted to a task will stand: a message is the first entry of what follows from it. */
  #nextPlace(task: LiveTask, messageId: string): PostedAt {
    return { key: task.key, taskId: task.state.taskId, messageId, number: task.state.number + 1 };
  }

  async #applyAndWait(task: LiveTask, command: Command): Promise<void> {
    await this.#applyOrThrow(task, command).promise;
  }

  #commit(
    task: LiveTask,
    entries: readonly Entry[],
    rows: readonly RowWrite[],
    onCommitted?: () => void,
  ): Promise<void> {
    task.uncommitted++;
    this.#shelf.wake(task);
    const expected = task.state.number - entries.length;
    const append = { journal: task.key, expected, count: entries.length, data: JSON.stringify(entries) };
    const carried = this.#deliveries.rowsFor(task, entries);
    const all = carried.length === 0 ? rows : [...rows, ...carried];
    const batch = all.length === 0 ? { appends: [append] } : { appends: [append], rows: all };
    return this.#store.commit(batch).then(
      () => {
        task.uncommitted--;
        this.#publish(task, entries, expected + 1);
        if (task.lost) return;
        task.committed = expected + entries.length;
        onCommitted?.();
        this.#act(task, entries);
      },
      (error: unknown) => {
        task.uncommitted--;
        this.#lose(task, error);
        onCommitted?.();
        throw error instanceof StaleAppendError || !(error instanceof Error) ? notWritten(error) : error;
      },
    );
  }

  /** What is durable is told, whatever has become of our picture of the task since. */
  #publish(task: LiveTask, entries: readonly Entry[], first: number): void {
    const note: CommitNote = { key: task.key, first, entries };
    this.bus.publish(taskChannel(task.key), note);
    this.bus.publish(ALL_TASKS_CHANNEL, note);
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
          break;
        case "failed":
          if (entry.code === TASK_TIMEOUT) stopAll(task, "task_time_limit");
          this.waiters.settle(task.state, entry);
          break;
        case "completed":
        case "paused":
          this.waiters.settle(task.state, entry);
          break;
        case "opened":
        case "resumed":
          // What starts from here on was not under way when the process started.
          task.recoveredUpTo = 0;
          this.#setDeadline(task);
          break;
        default:
          break;
      }
    }
    this.#freeSlots(task);
    this.#shelf.snapshotIfLong(task);
    this.#watchReplies(task);
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
    if (this.#quiet !== undefined) this.#checkQuiet();
  }

  /** A task was read from the store: what was going on in it goes on. */
  #takeUp(task: LiveTask): void {
    if (task.state.status !== "running") {
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
    this.#setDeadline(task);
    this.#watchReplies(task);
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
    this.#probation.check(task);
    if (task.state.status === "running") this.#heads.count(task.state.instance, -1);
    this.#shelf.forget(task);
    if (this.#quiet !== undefined) this.#checkQuiet();
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

  /** Decisions E6: wakes the task when an answer of another swarm is overdue. */
  #watchReplies(task: LiveTask): void {
    const { state } = task;
    const due = state.status === "running" ? nextReplyDue(state, this.limits.replyTime) : undefined;
    if (due === task.replyDue) return;
    task.cancelReply?.();
    task.cancelReply = undefined;
    task.replyDue = due;
    if (due === undefined) return;
    task.cancelReply = this.clock.after(Math.max(0, due - this.clock.now()), () => {
      task.replyDue = undefined;
      if (this.phase !== "open") return;
      this.apply(task, { type: "reply_time" });
      // A timer may fire a moment before the clock says so; then nothing was overdue, and the watch goes on.
      this.#watchReplies(task);
    });
  }

  #setDeadline(task: LiveTask): void {
    task.cancelDeadline?.();
    task.cancelDeadline = undefined;
    const { deadline } = task.state;
    if (deadline === undefined) return;
    task.cancelDeadline = this.clock.after(Math.max(0, deadline - this.clock.now()), () => {
      if (task.state.deadline === deadline) this.apply(task, { type: "time_limit" });
    });
  }

  async #committed(task: LiveTask): Promise<void> {
    // Batches take effect in the order of the calls: an empty one is done when everything before it is.
    await this.#store.commit({ appends: [] });
    if (task.uncommitted > 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  /** Most moments share their millisecond with others, and formatting one costs as much as deciding. */
  #moment(): Moment {
    const at = this.clock.now();
    if (at !== this.#lastMoment.at) {
      this.#lastMoment = { at, timestamp: new Date(at).toISOString(), id: this.#newId };
    }
    return this.#lastMoment;
  }

  readonly #newId = (): string => this.#ids.uuid();
  #lastMoment: Moment = { at: -1, timestamp: "", id: this.#newId };

  #rowOf(task: LiveTask, title?: string): TaskPut {
    const { state } = task;
    return {
      kind: "task.put",
      row: {
        key: state.key,
        instance: state.instance,
        taskId: state.taskId,
        owner: state.owner,
        status: state.status,
        ...(title !== undefined && { title }),
        createdAt: state.createdAt,
        updatedAt: state.updatedAt,
      },
    };
  }

  #assertOpen(): void {
    if (this.#phase !== "open") throw new RuntimeError("closed", "the mailroom is closing");
  }

  async #quietWithin(ms: number): Promise<void> {
    if (this.#isQuiet()) return;
    await new Promise<void>((resolve) => {
      const cancel = this.clock.after(ms, () => {
        this.#quiet = undefined;
        resolve();
      });
      this.#quiet = () => {
        cancel();
        resolve();
      };
    });
  }

  #checkQuiet(): void {
    if (!this.#isQuiet()) return;
    const quiet = this.#quiet;
    this.#quiet = undefined;
    quiet?.();
  }

  #isQuiet(): boolean {
    for (const task of this.#shelf.tasks()) {
      if (task.turns.size > 0 || task.actions.size > 0 || task.uncommitted > 0) return false;
    }
    return true;
  }
}

const NO_PARAMS: Readonly<Record<string, unknown>> = {};

const LOST: Decision = {
  ok: false,
  refusal: { code: "stale_turn", message: "the task is being read again" },
};

function interrupt(task: LiveTask, agents: readonly string[]): void {
  for (const agent of agents) task.turns.get(agent)?.stopper.stop("interrupt");
}

function stopAll(task: LiveTask, reason: StopReason): void {
  for (const turn of task.turns.values()) turn.stopper.stop(reason);
  for (const action of task.actions.values()) action.stopper.stop(reason);
}

function notWritten(cause: unknown): RuntimeError {
  return new RuntimeError("store_failure", `the task could not be written: ${describe(cause)}`, { cause });
}

function beingReadAgain(): RuntimeError {
  return new RuntimeError("store_failure", "the task is being read again; try once more");
}

function rowsFor(rows: RowsFor | undefined, at: PostedAt): readonly RowWrite[] | undefined {
  return typeof rows === "function" ? rows(at) : rows;
}

function titleOf(input: PersonMessage): string {
  const text = input.body.trim().replaceAll(/\s+/g, " ");
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}

function unknownTask(taskId: string): RuntimeError {
  return new RuntimeError("unknown_task", `there is no task '${taskId}'`);
}
