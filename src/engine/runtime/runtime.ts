/**
 * The shell around the engine: it takes commands in, commits what the engine decides, and only then acts on it:
 * wakes an agent, runs an action, hands mail to a carrier, answers who waits (law 1).
 */

import { normaliseAddress } from "../../mail/address.js";
import type { MAILMessage } from "../../mail/message.js";
import { formatTaskContributor } from "../../mail/owner.js";
import { isRecord } from "../../mail/record.js";
import { mailToolsFor } from "../../mail/tools.js";
import type { Action, AgentAnswer, AgentFunction, OfferedTool, Peer, ToolChoice } from "../agent.js";
import type { Carrier, OutgoingMail } from "../carrier.js";
import type { Command, Decision, Moment } from "../commands.js";
import { decide, openTask } from "../decide.js";
import { TASK_TIMEOUT } from "../deciding/endings.js";
import { hopsTo, nextReplyDue } from "../deciding/interswarm.js";
import type { AgentDefinition, SwarmDefinition } from "../definition.js";
import type { Entry, ManualReply } from "../entries.js";
import type {
  Bus,
  Clock,
  Ids,
  InstanceId,
  JournalKey,
  RowWrite,
  SnapshotPut,
  Store,
  TaskPut,
  TaskRemove,
} from "../ports.js";
import { StaleAppendError } from "../ports.js";
import { rulesOf, type SwarmRules } from "../rules.js";
import { freeze } from "../snapshot.js";
import type { Mail, TaskState } from "../state.js";
import { type ActionOverride, describe, OUTCOME_UNKNOWN, runAction } from "./actions.js";
import { RuntimeError, refused } from "./errors.js";
import {
  ALL_TASKS_CHANNEL,
  type CommitNote,
  type DeltaNote,
  deltaChannel,
  type FollowOptions,
  follow,
  type NumberedEntry,
  taskChannel,
} from "./follow.js";
import { DEFAULT_RUNTIME_LIMITS, type RuntimeLimits } from "./limits.js";
import { LiveTask, type RunningTurn } from "./live-task.js";
import { loadTask } from "./loader.js";
import { messageFromPerson, type PersonMessage } from "./person-message.js";
import { Probation } from "./probation.js";
import { RemoteMailboxes } from "./remote.js";
import { Round } from "./round.js";
import { Scheduler } from "./scheduler.js";
import { StoppedError, Stopper, type StopReason } from "./stopper.js";
import { TurnView } from "./turn-view.js";
import { type Outcome, Waiters } from "./waiters.js";

/** Something that went wrong where nobody waits for an answer. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly task?: JournalKey;
  readonly cause?: unknown;
}

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

interface Equipment {
  readonly peers: readonly Peer[];
  readonly all: readonly OfferedTool[];
  readonly lastTurn: readonly OfferedTool[];
}

/** How long the picture of a task is left alone after a commit failed, before it is read again. */
const REVIVE_DELAY = 100;

export class Runtime {
  readonly limits: RuntimeLimits;
  readonly waiters = new Waiters();
  readonly remote: RemoteMailboxes;
  readonly #store: Store;
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #carriers: Carrier[];
  readonly #override: ActionOverride | undefined;
  readonly #report: (problem: Problem) => void;
  readonly #scheduler: Scheduler;
  readonly #probation: Probation;
  readonly #live = new Map<JournalKey, LiveTask>();
  readonly #byTaskId = new Map<string, LiveTask>();
  readonly #loading = new Map<string, Promise<LiveTask | undefined>>();
  readonly #resting = new Set<LiveTask>();
  readonly #params = new Map<string, Readonly<Record<string, unknown>>>();
  readonly #runningByInstance = new Map<string, number>();
  #definition: SwarmDefinition;
  #rules: SwarmRules;
  #minds = new Map<string, AgentFunction>();
  #actions = new Map<string, Action>();
  readonly #systemActions = new Map<string, Action>();
  #tools = new Map<string, Equipment>();
  #running = 0;
  #state: "open" | "closing" | "closed" = "open";
  #quiet: (() => void) | undefined;

  constructor(parts: RuntimeParts) {
    this.limits = { ...DEFAULT_RUNTIME_LIMITS, ...parts.limits };
    this.#store = parts.store;
    this.#bus = parts.bus;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#carriers = [...(parts.carriers ?? [])];
    for (const action of parts.systemActions ?? []) this.addSystemAction(action);
    this.#override = parts.actionOverride;
    this.#report = parts.report ?? (() => {});
    this.#definition = parts.definition;
    this.#rules = rulesOf(parts.definition, this.limits);
    this.#scheduler = new Scheduler(this.limits, (task) => this.#startTurn(task));
    this.#probation = new Probation(this.#clock, (task) => {
      this.#scheduler.offer(task);
      this.#scheduler.pump();
    });
    this.remote = new RemoteMailboxes({
      apply: (task, command) => this.#applyAndWait(task, command),
      task: (key) => this.#liveByKey(key),
      tools: (agent) => this.#tools.get(agent)?.all ?? [],
      isRemote: (agent) => this.#rules.agents.get(agent)?.remote === true,
    });
    this.#equip(parts.definition);
  }

  get definition(): SwarmDefinition {
    return this.#definition;
  }

  get rules(): SwarmRules {
    return this.#rules;
  }

  /** Tasks in memory; for those who watch the process. */
  get figures(): { liveTasks: number; runningTasks: number; turns: number } {
    return { liveTasks: this.#live.size, runningTasks: this.#running, turns: this.#scheduler.running };
  }

  addCarrier(carrier: Carrier): void {
    this.#carriers.push(carrier);
  }

  /** What a MAIL tool does that is carried out like an action (`discover_swarms`). */
  addSystemAction(action: Action): void {
    this.#systemActions.set(action.name, action);
  }

  /** Values for the agents and actions of an instance. Held in memory only. */
  setParams(instance: InstanceId, params: Readonly<Record<string, unknown>>): void {
    this.#params.set(instanceKey(instance), params);
  }

  /** Replaces the swarm. Running tasks go on with what is there now (decisions B17). */
  redefine(definition: SwarmDefinition): void {
    this.#definition = definition;
    this.#rules = rulesOf(definition, this.limits);
    this.#equip(definition);
    for (const task of this.#live.values()) {
      if (task.state.status === "running") this.#apply(task, { type: "redefine" });
    }
  }

  /** Takes up every task that was running when the process ended. */
  async recover(onProgress?: (recovered: number) => void): Promise<number> {
    let recovered = 0;
    let after: JournalKey | undefined;
    for (;;) {
      const rows = await this.#store.tasks.withStatus("running", after, 500);
      for (const row of rows) {
        if (!this.#live.has(row.key)) await this.#tryLoad(row.key);
      }
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
    const task = input.taskId === undefined ? undefined : await this.#locateOrReserve(instance, input.taskId);
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
    this.#assertRoom(instance, task);
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
    const found = await this.#locateOrReserve(instance, taskId);
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
    if (resumes) this.#assertRoom(instance, found);
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
    this.#assertRoom(instance);
    const rules = this.#rules;
    const key = this.#ids.ordered();
    const { swarm, entrypoint } = rules;
    const task = { key, instance, taskId, swarm, owner, contributors, entrypoint };
    const decision = openTask({ type: "open", task, message, to }, rules, this.#moment());
    if (!decision.ok) throw refused(decision.refusal);
    const live = new LiveTask(decision.state, decision.state.status, 0);
    this.#adopt(live);
    this.#countRunning(instance, 1);
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
    const task = await this.#liveByKey(key);
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
    const task = await this.#liveByKey(key);
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
  async find(instance: InstanceId, taskId: string): Promise<JournalKey | undefined> {
    const live = this.#byTaskId.get(taskKey(instance, taskId));
    return live?.key ?? (await this.#store.tasks.find(instance, taskId))?.key;
  }

  /**
   * Reads a task's state as it is on disk. The reader gets the live object: it must copy what it keeps.
   */
  async read<T>(key: JournalKey, reader: (state: TaskState) => T): Promise<T | undefined> {
    const found = await this.#liveByKey(key);
    if (found === undefined) return undefined;
    const task = this.#current(found);
    task.holds++;
    try {
      while (task.uncommitted > 0 && !task.lost) await this.#committed(task);
      return reader(task.state);
    } finally {
      task.holds--;
      this.#rest(task);
    }
  }

  follow(
    key: JournalKey,
    options: Partial<FollowOptions> = {},
  ): AsyncGenerator<NumberedEntry, void, undefined> {
    return follow(this.#store, this.#bus, key, { backlog: this.limits.followerBacklog, ...options });
  }

  /** Removes a finished task that rests. False if something is going on in it. */
  async remove(key: JournalKey): Promise<boolean> {
    const live = this.#live.get(key);
    if (live !== undefined) {
      if (!live.resting || live.state.status === "running" || this.waiters.has(key)) return false;
      this.#forget(live);
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
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.#scheduler.stop();
    this.remote.close();
    await this.#quietWithin(grace);
    for (const task of this.#live.values()) this.#stopAll(task, "shutdown");
    await this.#quietWithin(grace);
    this.#state = "closed";
    for (const task of this.#live.values()) {
      task.cancelDeadline?.();
      task.cancelReply?.();
    }
    this.waiters.failAll(
      new RuntimeError("closed", "the mailroom was closed; the task goes on when it is opened again"),
    );
  }

  // --- commands -------------------------------------------------------------------------------------------------

  #open(instance: InstanceId, input: PostInput): Promise<Posted> {
    this.#assertRoom(instance);
    const rules = this.#rules;
    const taskId = input.taskId ?? this.#ids.ordered();
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
    this.#adopt(task);
    this.#countRunning(instance, 1);
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
      if (before === "running") this.#countRunning(task.state.instance, -1);
      else if (status === "running") this.#countRunning(task.state.instance, 1);
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
    const task = this.#current(found);
    if (task.lost) throw beingReadAgain();
    const number = task.state.number + 1;
    const { decision, promise } = this.#apply(task, command, rows);
    if (!decision.ok) {
      onRefusal?.();
      this.#rest(task);
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
    this.#resting.delete(task);
    const expected = task.state.number - entries.length;
    const append = { journal: task.key, expected, count: entries.length, data: JSON.stringify(entries) };
    const all = this.#withCarriersRows(task, entries, rows);
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
        throw error instanceof StaleAppendError || !(error instanceof Error)
          ? new RuntimeError("store_failure", `the task could not be written: ${describe(error)}`, {
              cause: error,
            })
          : error;
      },
    );
  }

  // --- what follows from entries --------------------------------------------------------------------------------

  /** What is durable is told, whatever has become of our picture of the task since. */
  #publish(task: LiveTask, entries: readonly Entry[], first: number): void {
    const note: CommitNote = { key: task.key, first, entries };
    this.#bus.publish(taskChannel(task.key), note);
    this.#bus.publish(ALL_TASKS_CHANNEL, note);
  }

  #act(task: LiveTask, entries: readonly Entry[]): void {
    for (const entry of entries) {
      switch (entry.t) {
        case "sent":
          if (entry.message.msg_type === "interrupt") this.#interrupt(task, entry.to);
          if (entry.remote !== undefined) {
            for (const swarm of entry.remote) this.#carry(task, entry.message.id, swarm);
          }
          break;
        case "action_started":
          this.#runAction(task, entry.agent);
          break;
        case "cancelled":
          this.#stopAll(task, "cancelled");
          this.waiters.settle(task.state, entry);
          break;
        case "failed":
          if (entry.code === TASK_TIMEOUT) this.#stopAll(task, "task_time_limit");
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
    this.#snapshotIfLong(task);
    this.#watchReplies(task);
    if (task.state.status === "running") {
      this.remote.offer(task);
      this.#scheduler.offer(task);
    }
    this.#scheduler.pump();
    this.#rest(task);
  }

  #freeSlots(task: LiveTask): void {
    for (const agent of task.busy) {
      if (task.isStarted(agent) || task.state.agents.get(agent)?.turn !== undefined) continue;
      this.#scheduler.free(task, agent);
    }
    this.#probation.check(task);
    if (this.#quiet !== undefined) this.#checkQuiet();
  }

  #interrupt(task: LiveTask, agents: readonly string[]): void {
    for (const agent of agents) task.turns.get(agent)?.stopper.stop("interrupt");
  }

  #stopAll(task: LiveTask, reason: StopReason): void {
    for (const turn of task.turns.values()) turn.stopper.stop(reason);
    for (const action of task.actions.values()) action.stopper.stop(reason);
  }

  #carry(task: LiveTask, messageId: string, swarm: string): void {
    const mail = task.state.outbound.find((out) => out.message.id === messageId && out.swarm === swarm);
    if (mail === undefined) return;
    const carrier = this.#carriers.find((candidate) => candidate.owns(swarm));
    const done = (ok: boolean, reason?: string, contributors?: readonly string[]) => {
      this.#apply(task, {
        type: "carried",
        messageId,
        swarm,
        ok,
        ...(reason !== undefined && { reason }),
        ...(contributors !== undefined && { contributors }),
      });
    };
    if (carrier === undefined) {
      done(false, `no connection to a swarm named '${swarm}' is known here`);
      return;
    }
    task.holds++;
    carrier
      .send(this.#outgoing(task, mail.message, swarm))
      .then(
        (carriage) =>
          carriage.accepted ? done(true, undefined, carriage.contributors) : done(false, carriage.reason),
        (error: unknown) => done(false, describe(error)),
      )
      .finally(() => {
        task.holds--;
        this.#rest(task);
      });
  }

  #outgoing(task: LiveTask, message: MAILMessage, swarm: string): OutgoingMail {
    const { state, facts } = task;
    return { swarm, message, task: facts, instance: state.instance, hops: hopsTo(state, swarm) };
  }

  /** What carriers want to be durable together with the mail that they will be given. */
  #withCarriersRows(
    task: LiveTask,
    entries: readonly Entry[],
    rows: readonly RowWrite[],
  ): readonly RowWrite[] {
    let all = rows;
    for (const entry of entries) {
      if (entry.t !== "sent" || entry.remote === undefined) continue;
      for (const swarm of entry.remote) {
        const carrier = this.#carriers.find((candidate) => candidate.owns(swarm));
        const more = carrier?.rows?.(this.#outgoing(task, entry.message, swarm));
        if (more !== undefined && more.length > 0) all = [...all, ...more];
      }
    }
    return all;
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
    task.cancelReply = this.#clock.after(Math.max(0, due - this.#clock.now()), () => {
      task.replyDue = undefined;
      if (this.#state === "open") this.#apply(task, { type: "reply_time" });
    });
  }

  // --- turns ----------------------------------------------------------------------------------------------------

  #startTurn(task: LiveTask): boolean {
    const next = task.nextRunnable((agent) => this.#minds.has(agent) && this.#probation.admits(task, agent));
    if (next === undefined) return false;
    const { agent, mails } = next;
    this.#scheduler.occupy(task, agent);
    if (mails[0].number > task.recoveredUpTo || task.recovering.has(agent)) {
      this.#run(task, agent, mails, 1);
      return true;
    }
    // A turn with this message may have been what ended the last process (decisions B12).
    this.#probation.begin(task, agent);
    task.recovering.add(agent);
    task.starting.add(agent);
    const took = mails.map((mail) => mail.number);
    this.#apply(task, { type: "recover", agent, took }, [], () => {
      task.starting.delete(agent);
      const current = task.state.agents.get(agent);
      const there = !task.lost && mails.every((mail) => current?.mailbox.includes(mail));
      if (there && this.#state === "open") this.#run(task, agent, mails, (current?.recoveries ?? 0) + 1);
    });
    return true;
  }

  #run(task: LiveTask, agent: string, mails: readonly [Mail, ...Mail[]], attempt: number): void {
    const mind = this.#minds.get(agent);
    const tools = this.#tools.get(agent);
    if (mind === undefined || tools === undefined) return;
    const turn: RunningTurn = { agent, mails, stopper: new Stopper(), attempt };
    task.turns.set(agent, turn);
    const { state } = task;
    const isLast = state.lastTurn !== undefined && mails.some((mail) => mail.number === state.lastTurn);
    const toolChoice: ToolChoice = isLast ? { name: "task_complete" } : state.manual ? "auto" : "required";
    const view = new TurnView({
      state,
      facts: task.facts,
      agent,
      mails,
      tools: isLast ? tools.lastTurn : tools.all,
      toolChoice,
      peers: tools.peers,
      params: this.#params.get(instanceKey(state.instance)) ?? NO_PARAMS,
      attempt,
      stopper: turn.stopper,
      emitDelta: (delta) => {
        const note: DeltaNote = { key: task.key, agent, delta };
        this.#bus.publish(deltaChannel(task.key), note);
      },
    });
    let answer: AgentAnswer | Promise<AgentAnswer>;
    try {
      answer = mind(view);
    } catch (error) {
      this.#failed(task, turn, error);
      return;
    }
    if (!(answer instanceof Promise)) {
      this.#answered(task, turn, answer);
      return;
    }
    const cancelTimer = this.#clock.after(this.limits.turnTime, () => turn.stopper.stop("time_limit"));
    turn.stopper.race(answer).then(
      (result) => {
        cancelTimer();
        if (result instanceof StoppedError) this.#stopped(task, turn, result);
        else this.#answered(task, turn, result);
      },
      (error: unknown) => {
        cancelTimer();
        this.#failed(task, turn, error);
      },
    );
  }

  #answered(task: LiveTask, turn: RunningTurn, answer: AgentAnswer): void {
    const { stopped } = turn.stopper;
    if (stopped !== undefined) {
      this.#stopped(task, turn, stopped);
      return;
    }
    if (!isAnswer(answer)) {
      this.#failed(task, turn, new Error("it answered with something that is not an answer"));
      return;
    }
    const took = turn.mails.map((mail) => mail.number);
    this.#finish(task, turn, { type: "answer", agent: turn.agent, took, answer });
  }

  #failed(task: LiveTask, turn: RunningTurn, error: unknown): void {
    const { stopped } = turn.stopper;
    if (stopped !== undefined) {
      this.#stopped(task, turn, stopped);
      return;
    }
    const took = turn.mails.map((mail) => mail.number);
    this.#report({ code: "agent_error", message: describe(error), task: task.key, cause: error });
    this.#finish(task, turn, {
      type: "fail_turn",
      agent: turn.agent,
      took,
      code: "agent_error",
      message: describe(error),
    });
  }

  #stopped(task: LiveTask, turn: RunningTurn, stopped: StoppedError): void {
    switch (stopped.reason) {
      case "interrupt":
        // Decisions B3: asked again, with the interrupt appended; unless its mail is gone (cancelled meanwhile).
        if (!hasMail(task, turn)) return this.#leave(task, turn);
        this.#run(task, turn.agent, withInterrupts(task, turn), turn.attempt + 1);
        return;
      case "time_limit":
        this.#finish(task, turn, {
          type: "fail_turn",
          agent: turn.agent,
          took: turn.mails.map((mail) => mail.number),
          code: "turn_timeout",
          message: `it did not answer within ${this.limits.turnTime} ms`,
        });
        return;
      case "cancelled":
      case "task_time_limit":
      case "shutdown":
      case "lost":
        // Its message stays where it is (or is gone with the task); nothing is journaled.
        this.#leave(task, turn);
        return;
      default:
        stopped.reason satisfies never;
    }
  }

  #finish(task: LiveTask, turn: RunningTurn, command: Command): void {
    const { decision } = this.#apply(task, command, [], () => task.turns.delete(turn.agent));
    if (!decision.ok) this.#leave(task, turn);
  }

  #leave(task: LiveTask, turn: RunningTurn): void {
    if (task.turns.get(turn.agent) === turn) task.turns.delete(turn.agent);
    this.#freeSlots(task);
    this.#scheduler.offer(task);
    this.#scheduler.pump();
    this.#rest(task);
  }

  // --- actions --------------------------------------------------------------------------------------------------

  #runAction(task: LiveTask, agent: string): void {
    const running = task.state.agents.get(agent)?.turn?.running;
    if (running === undefined || task.actions.has(running.call.id) || this.#state === "closed") return;
    const { call, attempt } = running;
    const action = this.#actionOf(call.name);
    const stopper = new Stopper();
    task.actions.set(call.id, { agent, callId: call.id, stopper });
    this.#scheduler.occupy(task, agent);
    const { state } = task;
    runAction({
      action,
      call,
      context: {
        swarm: state.swarm,
        agent,
        task: task.facts,
        instance: state.instance,
        callId: call.id,
        attempt,
        params: this.#params.get(instanceKey(state.instance)) ?? NO_PARAMS,
        get signal() {
          return stopper.signal;
        },
      },
      stopper,
      clock: this.#clock,
      timeLimit: action?.timeLimit ?? this.limits.actionTime,
      resultLength: this.limits.resultLength,
      override: this.#override,
    }).then((result) => {
      const done = () => {
        task.actions.delete(call.id);
      };
      if (result === undefined) {
        this.#abandonedAction(task, agent, call.id, stopper, done);
        return;
      }
      const { decision } = this.#apply(
        task,
        { type: "finish_action", agent, callId: call.id, ...result },
        [],
        done,
      );
      if (!decision.ok) done();
    });
  }

  #actionOf(name: string): Action | undefined {
    return this.#actions.get(name) ?? this.#systemActions.get(name);
  }

  /** The task is over: nobody waited for the end, so it is unknown. Shutdown: parked as if the process had died. */
  #abandonedAction(task: LiveTask, agent: string, callId: string, stopper: Stopper, done: () => void): void {
    const reason = stopper.stopped?.reason;
    if (reason !== "cancelled" && reason !== "task_time_limit") {
      done();
      this.#freeSlots(task);
      return;
    }
    const why = reason === "cancelled" ? "the task was cancelled" : "the task's time was up";
    const content = `${OUTCOME_UNKNOWN}: ${why} while the action ran`;
    this.#apply(task, { type: "finish_action", agent, callId, ok: false, content, unknown: true }, [], done);
  }

  // --- tasks in memory ------------------------------------------------------------------------------------------

  #takeUp(task: LiveTask): void {
    if (task.state.status !== "running") {
      this.#takeUpActions(task);
      // Also of a task that has ended: that it has is what some of this mail says.
      for (const { message, swarm } of [...task.state.outbound]) this.#carry(task, message.id, swarm);
      return;
    }
    task.recoveredUpTo = task.state.number;
    this.#apply(task, { type: "redefine" });
    this.#takeUpActions(task);
    for (const { message, swarm } of [...task.state.outbound]) this.#carry(task, message.id, swarm);
    this.#setDeadline(task);
    this.#watchReplies(task);
    if (task.state.status !== "running") return;
    this.remote.offer(task);
    this.#scheduler.offer(task);
    this.#scheduler.pump();
  }

  /**
   * Decisions B11. Also in a task that has ended or stands still: turns that were under way then go on to their end
   * (decisions B6), and as long as one has not, its agent takes no mail.
   */
  #takeUpActions(task: LiveTask): void {
    const { status } = task.state;
    for (const [agent, { turn }] of task.state.agents) {
      const running = turn?.running;
      if (running === undefined) continue;
      this.#scheduler.occupy(task, agent);
      const action = this.#actionOf(running.call.name);
      const callId = running.call.id;
      const goesOn = status === "running" || status === "paused";
      if (goesOn && action?.idempotent === true && running.attempt < this.limits.actionAttempts) {
        this.#apply(task, { type: "restart_action", agent, callId });
      } else {
        const content = `${OUTCOME_UNKNOWN}: the process ended while the action ran`;
        this.#apply(task, { type: "finish_action", agent, callId, ok: false, content, unknown: true });
      }
    }
  }

  /** A commit failed: this picture of the task is worthless. What is on disk is the truth; it is read again. */
  #lose(task: LiveTask, error: unknown): void {
    if (task.lost) return;
    task.lost = true;
    this.#stopAll(task, "lost");
    for (const agent of [...task.busy]) this.#scheduler.free(task, agent);
    this.#probation.check(task);
    if (task.state.status === "running") this.#countRunning(task.state.instance, -1);
    this.#forget(task);
    if (this.#quiet !== undefined) this.#checkQuiet();
    this.#report({
      code: "commit_failed",
      message: `the task is read again after a failed commit: ${describe(error)}`,
      task: task.key,
      cause: error,
    });
    this.waiters.fail(
      task.key,
      new RuntimeError("store_failure", `the task could not be written: ${describe(error)}`, {
        cause: error,
      }),
    );
    if (task.committed === 0) return;
    this.#clock.after(REVIVE_DELAY, () => {
      if (this.#state === "open" && !this.#live.has(task.key)) this.#tryLoad(task.key);
    });
  }

  /** A task that cannot be read is reported and keeps no other one from running. */
  async #tryLoad(key: JournalKey): Promise<void> {
    try {
      await this.#load(key);
    } catch (cause) {
      this.#report({ code: "load_failed", message: describe(cause), task: key, cause });
    }
  }

  async #liveByKey(key: JournalKey): Promise<LiveTask | undefined> {
    return this.#live.get(key) ?? (await this.#load(key));
  }

  /**
   * The one picture of the task that counts. Between finding it and using it, it may have been evicted, and another
   * one may have been loaded: two of them would write past each other.
   */
  #current(found: LiveTask): LiveTask {
    const live = this.#live.get(found.key);
    if (live !== undefined || found.lost) return live ?? found;
    this.#adopt(found);
    return found;
  }

  #load(key: JournalKey): Promise<LiveTask | undefined> {
    const under = this.#loading.get(key);
    if (under !== undefined) return under;
    const loading = loadTask(this.#store, key)
      .then((loaded) => {
        const live = this.#live.get(key);
        if (live !== undefined || loaded === undefined) return live;
        const { state, snapshotAt } = loaded;
        const task = new LiveTask(state, state.status, state.number, snapshotAt);
        this.#adopt(task);
        if (state.status === "running") this.#countRunning(state.instance, 1);
        // Here and nowhere else: whatever finds the task in memory finds it taken up, once.
        this.#takeUp(task);
        this.#rest(task);
        return task;
      })
      .finally(() => this.#loading.delete(key));
    this.#loading.set(key, loading);
    return loading;
  }

  /** The caller's task of this id, or a reservation of the id so that two callers cannot both open it. */
  async #locateOrReserve(instance: InstanceId, taskId: string): Promise<LiveTask | (() => void)> {
    const name = taskKey(instance, taskId);
    for (;;) {
      const live = this.#byTaskId.get(name);
      if (live !== undefined) return live;
      const under = this.#loading.get(name);
      if (under === undefined) break;
      await under;
    }
    let release = () => {};
    const reserved = new Promise<undefined>((resolve) => {
      release = () => {
        this.#loading.delete(name);
        resolve(undefined);
      };
    });
    this.#loading.set(name, reserved);
    try {
      const row = await this.#store.tasks.find(instance, taskId);
      if (row === undefined) return release;
      const task = await this.#liveByKey(row.key);
      release();
      return task ?? (() => {});
    } catch (error) {
      release();
      throw error;
    }
  }

  async #require(instance: InstanceId, taskId: string): Promise<LiveTask> {
    const key = await this.find(instance, taskId);
    const task = key === undefined ? undefined : await this.#liveByKey(key);
    if (task === undefined) throw unknownTask(taskId);
    return task;
  }

  #adopt(task: LiveTask): void {
    this.#live.set(task.key, task);
    this.#byTaskId.set(taskKey(task.state.instance, task.state.taskId), task);
  }

  #forget(task: LiveTask): void {
    task.cancelDeadline?.();
    task.cancelReply?.();
    this.#live.delete(task.key);
    this.#resting.delete(task);
    const name = taskKey(task.state.instance, task.state.taskId);
    if (this.#byTaskId.get(name) === task) this.#byTaskId.delete(name);
  }

  /** Memory follows what is running: of the tasks that rest, only the latest stay. */
  #rest(task: LiveTask): void {
    if (task.lost || task.state.status === "running" || !task.resting || this.waiters.has(task.key)) return;
    this.#resting.delete(task);
    this.#resting.add(task);
    if (this.#resting.size <= this.limits.restingTasks) return;
    const [oldest] = this.#resting;
    if (oldest === undefined) return;
    if (!oldest.resting) {
      this.#resting.delete(oldest);
      return;
    }
    this.#forget(oldest);
    if (oldest.state.number - oldest.snapshotAt >= this.limits.snapshotAfter) this.#snapshot(oldest);
  }

  #snapshotIfLong(task: LiveTask): void {
    const { number } = task.state;
    const due = Math.max(this.limits.snapshotAfter, Math.floor(number / 2));
    if (number - task.snapshotAt >= due && task.uncommitted === 0) this.#snapshot(task);
  }

  #snapshot(task: LiveTask): void {
    const { number } = task.state;
    task.snapshotAt = number;
    const row: SnapshotPut = { kind: "snapshot.put", journal: task.key, number, data: freeze(task.state) };
    this.#store.commit({ appends: [], rows: [row] }).catch((error: unknown) => {
      this.#report({ code: "snapshot_failed", message: describe(error), task: task.key, cause: error });
    });
  }

  #setDeadline(task: LiveTask): void {
    task.cancelDeadline?.();
    task.cancelDeadline = undefined;
    const { deadline } = task.state;
    if (deadline === undefined) return;
    task.cancelDeadline = this.#clock.after(Math.max(0, deadline - this.#clock.now()), () => {
      if (task.state.deadline === deadline) this.#apply(task, { type: "time_limit" });
    });
  }

  async #committed(task: LiveTask): Promise<void> {
    // Batches take effect in the order of the calls: an empty one is done when everything before it is.
    await this.#store.commit({ appends: [] });
    if (task.uncommitted > 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  // --- small things ---------------------------------------------------------------------------------------------

  #equip(definition: SwarmDefinition): void {
    this.#actions = new Map(definition.actions.map((action) => [action.name, action]));
    this.#minds = new Map();
    this.#tools = new Map();
    for (const agent of definition.agents) {
      if (agent.mind.kind === "local") this.#minds.set(agent.name, agent.mind.run);
      const mailTools = mailToolsFor({
        commTargets: agent.commTargets,
        canCompleteTasks: agent.canCompleteTasks,
        enableInterswarm: definition.enableInterswarm && agent.enableInterswarm,
        excludeTools: [...definition.excludeTools, ...agent.excludeTools],
      });
      const actions = agent.actions.flatMap((name) => this.#actions.get(name) ?? []);
      this.#tools.set(agent.name, {
        peers: peersOf(agent, definition),
        all: [
          ...mailTools,
          ...actions.map(({ name, description, parameters }) => ({ name, description, parameters })),
        ],
        lastTurn: mailTools.filter((tool) => tool.name === "task_complete"),
      });
    }
  }

  /** Most moments share their millisecond with others, and formatting one costs as much as deciding. */
  #moment(): Moment {
    const at = this.#clock.now();
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
    if (this.#state !== "open") throw new RuntimeError("closed", "the mailroom is closing");
  }

  #assertRoom(instance: InstanceId, task?: LiveTask): void {
    if (task?.state.status === "running") return;
    const mine = this.#runningByInstance.get(instanceKey(instance)) ?? 0;
    const { runningTasks, runningTasksPerInstance } = this.limits;
    if (this.#running >= runningTasks || mine >= runningTasksPerInstance) {
      const limit = this.#running >= runningTasks ? runningTasks : runningTasksPerInstance;
      throw new RuntimeError("overloaded", `${limit} tasks are running, which is the limit; try again later`);
    }
  }

  #countRunning(instance: InstanceId, change: 1 | -1): void {
    this.#running += change;
    const key = instanceKey(instance);
    const mine = (this.#runningByInstance.get(key) ?? 0) + change;
    if (mine <= 0) this.#runningByInstance.delete(key);
    else this.#runningByInstance.set(key, mine);
  }

  async #quietWithin(ms: number): Promise<void> {
    if (this.#isQuiet()) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(ms, () => {
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
    for (const task of this.#live.values()) {
      if (task.turns.size > 0 || task.actions.size > 0 || task.uncommitted > 0) return false;
    }
    return true;
  }
}

function peersOf(agent: AgentDefinition, { name, agents }: SwarmDefinition): Peer[] {
  return agent.commTargets.map((target) => {
    const address = normaliseAddress(target, name);
    const peer = agents.find((other) => other.name === address);
    return {
      address,
      ...(peer?.description !== undefined && { description: peer.description }),
      actions: peer?.actions ?? [],
    };
  });
}

const NO_PARAMS: Readonly<Record<string, unknown>> = {};

const LOST: Decision = {
  ok: false,
  refusal: { code: "stale_turn", message: "the task is being read again" },
};

function hasMail(task: LiveTask, { agent, mails }: RunningTurn): boolean {
  const mailbox = task.state.agents.get(agent)?.mailbox ?? [];
  return mails.every((mail) => mailbox.includes(mail));
}

function beingReadAgain(): RuntimeError {
  return new RuntimeError("store_failure", "the task is being read again; try once more");
}

function withInterrupts(task: LiveTask, turn: RunningTurn): [Mail, ...Mail[]] {
  const [first, ...rest] = turn.mails;
  const waiting = task.state.agents.get(turn.agent)?.mailbox ?? [];
  const interrupts = waiting.filter(
    (mail) =>
      mail.message.msg_type === "interrupt" && mail.number <= task.committed && !turn.mails.includes(mail),
  );
  return [first, ...rest, ...interrupts];
}

/** Agents are other people's code: what they return is looked at before the engine works with it. */
function isAnswer(value: unknown): value is AgentAnswer {
  if (!isRecord(value) || !Array.isArray(value.calls) || !value.calls.every(isCall)) return false;
  return value.text === undefined || typeof value.text === "string";
}

function isCall(value: unknown): boolean {
  return (
    isRecord(value) && typeof value.id === "string" && typeof value.name === "string" && isRecord(value.args)
  );
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

function instanceKey({ role, id }: InstanceId): string {
  return `${role}:${id}`;
}

function taskKey(instance: InstanceId, taskId: string): string {
  return `${instanceKey(instance)}\n${taskId}`;
}
