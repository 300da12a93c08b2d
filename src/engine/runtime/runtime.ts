/**
 * The shell around the engine: commands, and the wiring of those who act on what was decided. Deciding and committing is
 * the journal kernel's, asking agents is in `turns`, running actions in `effects`, mail to other swarms in
 * `deliveries`, who runs next in `scheduler`.
 */
import { Followers, type FollowOptions, follow } from "../../journal/follow.js";
import { copyJson } from "../../journal/json.js";
import { type Handling, Kernel, type Reactor } from "../../journal/kernel.js";
import type { Loop, Problem } from "../../journal/ports.js";
import { systemLoop } from "../../journal/system.js";
import { formatTaskContributor } from "../../mail/owner.js";
import type { Action } from "../agent.js";
import type { Carrier } from "../carrier.js";
import type { Command, Moment, OpenTask, Refusal } from "../commands.js";
import type { SwarmDefinition } from "../definition.js";
import { type Entry, type ManualReply, TASK_TIMEOUT } from "../entries.js";
import type { KeyValueMemory } from "../memory.js";
import type { Bus, Clock, Ids, InstanceId, JournalKey, RowWrite, Store, TaskRemove } from "../ports.js";
import { rulesOf, type SwarmRules } from "../rules.js";
import type { TaskState } from "../state.js";
import { actionOrders, rowAfter, rowOf, type TaskFigures, taskAggregate } from "../task.js";
import { type ActionOverride, describe } from "./actions.js";
import { Deliveries, outgoing } from "./deliveries.js";
import { Effects } from "./effects.js";
import { Equipment } from "./equipment.js";
import { asRuntimeError, closed, RuntimeError, refused, storeFailed, unknownTask } from "./errors.js";
import {
  ALL_TASKS_CHANNEL,
  type CommitNote,
  type NumberedEntry,
  taskChannel,
  WATCH_CHANNEL,
} from "./follow.js";
import { Holds } from "./holds.js";
import { DEFAULT_RUNTIME_LIMITS, type RuntimeLimits } from "./limits.js";
import { Params } from "./params.js";
import { checkedTaskId, messageFromPerson } from "./person-message.js";
import {
  numberOf,
  type Posted,
  type PostedAt,
  type PostInput,
  type ReceiveInput,
  type RowsFor,
  rowsAt,
  titleOf,
} from "./posting.js";
import { Recovery, type RecoveryProgress } from "./recovery.js";
import { RemoteMailboxes } from "./remote.js";
import { Room } from "./room.js";
import { Scheduler } from "./scheduler.js";
import { TaskNames } from "./task-names.js";
import {
  instanceKey,
  type LiveTask,
  type TaskKernel,
  type TaskOrder,
  type Tasks,
  type TaskUnit,
  TaskWork,
} from "./task-work.js";
import { Timers } from "./timers.js";
import { Turns } from "./turns.js";
import { type Outcome, Round, Waiter, Waiters } from "./waiters.js";

export interface RuntimeParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** Default: the process's own event loop. */
  readonly loop?: Loop;
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
  /** The store failed for good: nothing goes on here any more. Called once. */
  readonly onFailed?: (error: RuntimeError) => void;
}

export type Phase = "open" | "closing" | "closed" | "failed";

/** What became of what was under way when the runtime was closed. */
export interface Closed {
  /** Decisions that the store could not take before the end; nobody was told of them. */
  readonly unwritten: number;
}

/** What is known when the runtime is closed has this long to become durable, however short the grace. */
const WRITING_TIME = 5_000;

/** Tasks that are changed in a row before everything else in the process has its chance. */
const CHANGES_IN_A_ROW = 256;

export class Runtime {
  readonly limits: RuntimeLimits;
  readonly clock: Clock;
  readonly bus: Bus;
  readonly report: (problem: Problem) => void;
  readonly remote: RemoteMailboxes;
  readonly #parts: RuntimeParts;
  readonly #store: Store;
  readonly #loop: Loop;
  readonly #equipment = new Equipment();
  readonly #kernel: TaskKernel;
  readonly #names: TaskNames;
  readonly #room: Room;
  readonly #scheduler: Scheduler<TaskWork>;
  readonly #turns: Turns;
  readonly #effects: Effects;
  readonly #deliveries: Deliveries;
  readonly #holds: Holds;
  readonly #timers: Timers;
  readonly #recovery: Recovery;
  readonly #waiters = new Waiters();
  readonly #followers = new Followers();
  readonly #params = new Params();
  /** Tasks that rest in memory, longest first. */
  readonly #resting = new Set<JournalKey>();
  /** Definitions that were replaced, while their actions end. */
  readonly #leaving = new Set<Promise<void>>();
  readonly #newId: () => string;
  #moment: Moment;
  #definition: SwarmDefinition;
  #rules: SwarmRules;
  #phase: Phase = "open";
  /** The grace is over: what did not get anywhere is left to the next process. */
  #parking = false;
  #closing: Promise<Closed> | undefined;
  #onQuiet: (() => void) | undefined;

  constructor(parts: RuntimeParts) {
    const { store, clock, bus, loop = systemLoop } = parts;
    this.#parts = parts;
    this.limits = { ...DEFAULT_RUNTIME_LIMITS, ...parts.limits };
    this.clock = clock;
    this.bus = bus;
    this.report = safely(parts.report);
    this.#store = store;
    this.#loop = loop;
    this.#newId = () => parts.ids.uuid();
    this.#moment = { at: -1, timestamp: "", id: this.#newId };
    this.#definition = parts.definition;
    this.#rules = rulesOf(parts.definition, this.limits);
    this.#equipment.equip(parts.definition);
    for (const action of parts.systemActions ?? []) this.addSystemAction(action);
    this.#names = new TaskNames(store.tasks);
    this.#room = new Room(this.limits, clock);
    this.#kernel = new Kernel<Tasks>({
      aggregate: taskAggregate<TaskOrder, TaskWork>(() => this.#rules),
      store,
      clock,
      loop,
      limits: this.limits,
      moment: () => this.#now(),
      report: this.report,
      prepare: (live, entries, first, before) => this.#prepare(live, entries, first, before),
      attach: (live, from) => this.#attach(live, from),
      takeUp: (live) => this.#takeUp(live),
      suspend: (live) => this.#suspend(live),
      detach: (live, why) => this.#detach(live, why),
      decided: (live, unit) => this.#decided(live, unit),
      idle: (live) => this.#idle(live),
      reactors: this.#reactors(),
    });
    this.#scheduler = new Scheduler<TaskWork>({
      limits: this.limits,
      loop,
      start: (work) => this.#start(work),
      idle: (work) => this.#rest(work.key),
      mayStart: () => !store.writer.degraded,
    });
    const shared = {
      kernel: this.#kernel,
      equipment: this.#equipment,
      clock,
      limits: this.limits,
      paramsOf: (instance: InstanceId) => this.paramsOf(instance),
      report: this.report,
    };
    this.#turns = new Turns({
      ...shared,
      scheduler: this.#scheduler,
      bus,
      undurable: () => store.writer.undurable,
      isOpen: () => this.#phase === "open",
      freed: (key) => this.#rest(key),
    });
    this.#effects = new Effects({
      ...shared,
      override: parts.actionOverride,
      memory: parts.memory ?? store.memory,
      ended: (key) => this.#rest(key),
    });
    this.#deliveries = new Deliveries({
      carriers: parts.carriers ?? [],
      store,
      clock,
      tell: (key, carried) => this.#kernel.submit(key, carried),
      isOpen: () => this.#phase === "open",
      report: this.report,
    });
    this.#holds = new Holds({
      retry: (key) => this.#retry(key),
      failed: (cause, task) => {
        if (this.#phase !== "open") return;
        this.report({ code: "retry_failed", message: describe(cause), task, cause });
      },
    });
    this.#timers = new Timers(this.#kernel, clock, this.limits.replyTime);
    this.#recovery = new Recovery({
      store,
      kernel: this.#kernel,
      clock,
      loop,
      retryHeld: (key) => this.#holds.retry(key),
      isOpen: () => this.#phase === "open",
      report: this.report,
    });
    this.remote = new RemoteMailboxes({
      command: (key, command, decided) => this.#command(key, command, { ...(decided && { decided }) }),
      peek: (key) => this.#kernel.peek(key),
      tools: (agent) => this.#equipment.agent(agent)?.tools ?? [],
      isRemote: (agent) => this.#rules.agents.get(agent)?.remote === true,
    });
    store.writer.onState(() => this.#storeChanged());
  }

  /** After a commit, in this order. Each sees a unit with the facts as of its entries. */
  #reactors(): readonly Reactor<Tasks>[] {
    return [
      { name: "waiters", react: (live, unit) => this.#waiters.see(live.key, unit.first, unit.entries) },
      { name: "holds", react: (live, unit) => this.#holds.react(live, unit) },
      { name: "timers", react: (live, unit) => this.#timers.react(live, unit) },
      { name: "deliveries", react: (live, unit) => this.#deliver(live, unit) },
      { name: "actions", react: (live, unit) => this.#effects.react(live, unit) },
      { name: "remote mailboxes", react: (live) => this.#lend(live) },
      { name: "streams", react: (live, unit) => this.#publish(live, unit) },
      { name: "turns", react: (live, unit) => this.#afterTurns(live, unit) },
      { name: "memory", react: (live) => this.#remember(live) },
    ];
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** Why nothing goes on here any more, if the store has failed for good. */
  get failure(): RuntimeError | undefined {
    const { failure } = this.#store.writer;
    return failure === undefined ? undefined : storeFailed(failure);
  }

  get definition(): SwarmDefinition {
    return this.#definition;
  }

  get rules(): SwarmRules {
    return this.#rules;
  }

  /** For those who watch the process. */
  get figures(): { liveTasks: number; runningTasks: number; turns: number; recovery?: RecoveryProgress } {
    const { progress } = this.#recovery;
    return {
      liveTasks: this.#kernel.size,
      runningTasks: this.#room.running,
      turns: this.#scheduler.running,
      ...(progress !== undefined && { recovery: progress }),
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
   * Replaces the swarm. Running tasks go on with what is there now, and their journals say so; the old definition is
   * closed when its actions that are under way have ended.
   */
  redefine(definition: SwarmDefinition): void {
    const replaced = this.#definition;
    // It was still being loaded when the end came, and nobody else will close it.
    if (this.#phase !== "open") return this.#letGo(definition);
    this.#definition = definition;
    this.#rules = rulesOf(definition, this.limits);
    this.#equipment.equip(definition);
    const running: JournalKey[] = [];
    for (const { key, state } of this.#kernel.all()) if (state.status === "running") running.push(key);
    void this.#noteDefinition(running);
    if (replaced.close !== definition.close) this.#letGo(replaced);
  }

  async #noteDefinition(keys: readonly JournalKey[]): Promise<void> {
    for (const [index, key] of keys.entries()) {
      if (this.#phase !== "open") return;
      const live = this.#kernel.peek(key);
      if (live?.state.status === "running") this.#kernel.apply(live, { type: "redefine" }, { own: true });
      if (index % CHANGES_IN_A_ROW !== CHANGES_IN_A_ROW - 1) continue;
      await this.#store.writer.below(CHANGES_IN_A_ROW);
      await new Promise<void>((resolve) => this.#loop.soon(resolve));
    }
  }

  #letGo(definition: SwarmDefinition): void {
    const leaving = this.#effects
      .ended()
      .then(() => definition.close?.())
      .catch((cause: unknown) => this.report({ code: "close_failed", message: describe(cause), cause }))
      .finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  /** Takes up what an earlier process left. Resolves with the number of tasks that run again. */
  recover(onProgress?: (recovered: number, of: number) => void): Promise<number> {
    return this.#recovery.run(onProgress);
  }

  // --- commands ---------------------------------------------------------------------------------------------------

  /** Puts a person's message into a task of theirs: a new one, or one that goes on. Resolves when it is durable. */
  async post(instance: InstanceId, { rows, ...given }: PostInput): Promise<Posted> {
    this.#assertOpen();
    const input: PostInput = { ...storable(given), ...(rows !== undefined && { rows }) };
    this.#admit(input.body.length);
    const { taskId } = input;
    const open = () => {
      if (input.resumeFrom !== undefined) throw unknownTask(taskId ?? "");
      return this.#open(instance, input);
    };
    return taskId === undefined
      ? open()
      : this.#inOrAnew(instance, taskId, (key) => this.#postTo(key, instance, input), open);
  }

  /** Puts something into the instance's task of this id; where there is none, it is opened. */
  async #inOrAnew<P>(
    instance: InstanceId,
    taskId: string,
    put: (key: JournalKey) => Promise<P>,
    open: () => Promise<P>,
  ): Promise<P> {
    const found = await this.#names.findOrReserve(instance, taskId);
    if (typeof found === "string") {
      try {
        return await put(found);
      } catch (error) {
        const isGone = error instanceof RuntimeError && error.code === "unknown_task";
        if (!isGone || (await this.find(instance, taskId)) === found) throw error;
      }
      // It was removed meanwhile, so the id is unused.
      return this.#inOrAnew(instance, taskId, put, open);
    }
    try {
      // The id is unused, and reserved for us until the task is open.
      return await open();
    } finally {
      found();
    }
  }

  #open(instance: InstanceId, input: PostInput): Promise<Posted> {
    const { swarm } = this.#rules;
    const { maxSteps } = input;
    const { ids } = this.#parts;
    const taskId = input.taskId === undefined ? ids.ordered() : checkedTaskId(input.taskId);
    const key = ids.ordered();
    const moment = this.#now();
    const addressed = messageFromPerson(this.#rules, instance, taskId, input, moment);
    const { message, to, remote, entrypoint } = addressed;
    const owner = formatTaskContributor({ role: instance.role, id: instance.id, swarm });
    const header = { key, instance, taskId, swarm, owner, contributors: [owner], entrypoint };
    const limited = maxSteps === undefined ? header : { ...header, maxSteps };
    const task = input.manual === true ? { ...limited, manual: true as const } : limited;
    const waiter = new Waiter(this.#waiters, key);
    const at = { key, taskId, messageId: message.id };
    return this.#create(
      { type: "open", task, message, to, remote },
      titleOf(input.body),
      at,
      input.rows,
      waiter,
    );
  }

  /** @param waiter who waits for what becomes of it, if anybody does */
  #create(
    command: OpenTask,
    title: string,
    at: Omit<PostedAt, "number">,
    rows: RowsFor | undefined,
    waiter: Waiter,
  ): Promise<Posted> {
    const { key, instance } = command.task;
    // It took time to find out that there is no such task.
    this.#assertOpen();
    this.#room.assertRoom(instanceKey(instance));
    const given = rowsAt(rows, at);
    return new Promise((resolve, reject) => {
      this.#kernel.create(key, command, {
        ...this.#waiting(at, waiter, true, resolve, reject),
        rows: (entries, first) => {
          const live = this.#kernel.peek(key);
          const row = live?.latest === undefined ? [] : [rowOf(live.state, live.latest, title)];
          return [...row, ...(given?.(entries, first) ?? [])];
        },
      });
    });
  }

  #postTo(key: JournalKey, instance: InstanceId, input: PostInput): Promise<Posted> {
    const taskId = input.taskId ?? "";
    return this.#ask(key, taskId, (live) => {
      const { state } = live;
      if (input.manual === true && !state.manual) {
        throw new RuntimeError("wrong_state", `task '${taskId}' exists and does not run in manual mode`);
      }
      const addressed = messageFromPerson(this.#rules, instance, taskId, input, this.#now(), {
        entrypoint: state.entrypoint,
      });
      const { message, to, remote } = addressed;
      const { resumeFrom, maxSteps, rows } = input;
      return {
        messageId: message.id,
        command: {
          type: "post",
          message,
          to,
          remote,
          ...(resumeFrom !== undefined && { resumeFrom }),
          ...(maxSteps !== undefined && { maxSteps }),
        },
        rows,
      };
    });
  }

  /** Answers the breakpoint calls of a paused task; what becomes of it is the outcome. */
  async answerBreakpoint(
    instance: InstanceId,
    taskId: string,
    answer: Omit<Extract<Command, { type: "answer_breakpoint" }>, "type">,
    rows?: RowsFor,
  ): Promise<Posted> {
    this.#assertOpen();
    const given = storable(answer);
    this.#admit(0);
    const key = await this.#require(instance, taskId);
    return this.#ask(key, taskId, () => ({
      messageId: this.#newId(),
      command: { type: "answer_breakpoint", ...given },
      rows,
    }));
  }

  /** Puts something into a task that is there, for somebody who waits for what becomes of it. */
  #ask(
    key: JournalKey,
    taskId: string,
    make: (live: LiveTask) => {
      readonly messageId: string;
      readonly command: Command;
      readonly rows: RowsFor | undefined;
    },
  ): Promise<Posted> {
    return new Promise((resolve, reject) => {
      this.#kernel.with(key, (live, error) => {
        if (live === undefined)
          return reject(error === undefined ? unknownTask(taskId) : asRuntimeError(error, taskId));
        try {
          this.#assertOpen();
          this.#assertRoomIn(live);
          const { messageId, command, rows } = make(live);
          const at = { key, taskId, messageId };
          this.#kernel.apply(live, command, {
            ...this.#waiting(at, new Waiter(this.#waiters, key), false, resolve, reject),
            rows: rowsAt(rows, at),
          });
        } catch (thrown) {
          reject(thrown);
        }
      });
    });
  }

  #waiting(
    at: Omit<PostedAt, "number">,
    waiter: Waiter,
    opened: boolean,
    resolve: (posted: Posted) => void,
    reject: (error: Error) => void,
  ): Handling<Tasks> {
    const fail = (error: Error) => {
      waiter.forget();
      reject(error);
    };
    return {
      decided: ({ entries, first }) => {
        const number = numberOf(entries, first, at.messageId);
        waiter.place(number, entries[number - first]);
      },
      done: (unit) => {
        if (unit === undefined) return fail(new RuntimeError("bad_input", "there was nothing to do"));
        const number = numberOf(unit.entries, unit.first, at.messageId);
        resolve({ ...at, number, opened, outcome: waiter.promise });
      },
      refused: (refusal) => fail(refused(refusal)),
      failed: (error) => fail(asRuntimeError(error, at.taskId)),
    };
  }

  /**
   * Puts mail from another swarm into the task it belongs to, or adopts the task. Resolves when it is durable.
   * @throws RuntimeError `unknown_task`, `owner_mismatch`, or what the engine refuses
   */
  async receive({ rows, ...given }: ReceiveInput): Promise<PostedAt & { readonly opened: boolean }> {
    this.#assertOpen();
    const input: ReceiveInput = { ...storable(given), ...(rows !== undefined && { rows }) };
    const { instance, taskId, message } = input;
    this.#admit(message.message.body.length);
    return this.#inOrAnew(
      instance,
      taskId,
      (key) => this.#receiveIn(key, input),
      () => {
        if (!input.adopts) throw unknownTask(taskId);
        return this.#adopt(input);
      },
    );
  }

  #receiveIn(key: JournalKey, input: ReceiveInput): Promise<PostedAt & { readonly opened: boolean }> {
    const { taskId, owner, contributors, message, to, resumes } = input;
    const at = { key, taskId, messageId: message.id };
    return new Promise((resolve, reject) => {
      this.#kernel.with(key, (live, error) => {
        if (live === undefined)
          return reject(error === undefined ? unknownTask(taskId) : asRuntimeError(error, taskId));
        try {
          this.#assertOpen();
          if (live.state.owner !== owner) {
            const text = `task '${taskId}' belongs to another owner than '${owner}'`;
            throw new RuntimeError("owner_mismatch", text);
          }
          if (resumes) this.#assertRoomIn(live);
          this.#kernel.apply(
            live,
            { type: "post", message, to, contributors, resumes },
            {
              rows: rowsAt(input.rows, at),
              done: (unit) => {
                const number =
                  unit === undefined ? live.durable : numberOf(unit.entries, unit.first, message.id);
                resolve({ ...at, number, opened: false });
              },
              refused: (refusal) => reject(refused(refusal)),
              failed: (failure) => reject(asRuntimeError(failure, taskId)),
            },
          );
        } catch (thrown) {
          reject(thrown);
        }
      });
    });
  }

  async #adopt(input: ReceiveInput): Promise<PostedAt & { readonly opened: boolean }> {
    const { instance, taskId, owner, contributors, message, to } = input;
    const { swarm, entrypoint } = this.#rules;
    const key = this.#parts.ids.ordered();
    const task = { key, instance, taskId, swarm, owner, contributors, entrypoint };
    const at = { key, taskId, messageId: message.id };
    const waiter = new Waiter(this.#waiters, key);
    const title = titleOf(message.message.body);
    const { number } = await this.#create({ type: "open", task, message, to }, title, at, input.rows, waiter);
    // Whoever sent it hears of the end by mail.
    waiter.forget();
    return { ...at, number, opened: true };
  }

  /** @throws RuntimeError `already_ended` */
  cancel(key: JournalKey, by: string, rows?: readonly RowWrite[]): Promise<void> {
    return this.#command(key, { type: "cancel", by }, { rows });
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
    const step = storable({ agent, payload, reply });
    const key = await this.#require(instance, taskId);
    let number = 0;
    await this.#command(
      key,
      { type: "manual_step", ...step },
      {
        decided: ({ first }) => {
          number = first;
        },
      },
    );
    return { key, number };
  }

  /**
   * Any other command, for the modules that extend the engine. The rows are committed also if there is nothing to decide.
   * @throws RuntimeError when it is refused
   */
  command(key: JournalKey, command: Command, rows?: readonly RowWrite[]): Promise<void> {
    return this.#command(key, command, rows === undefined ? {} : { rows, rowsAlways: true });
  }

  /** Held tasks count as running once they are tried. */
  async #retry(key: JournalKey): Promise<void> {
    const live = await this.#kernel.load(key);
    if (live !== undefined) this.#assertRoomIn(live);
    await this.#command(key, { type: "retry" }, {});
  }

  #command(key: JournalKey, command: Command, handling: Handling<Tasks>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#assertNotEnded();
      this.#kernel.submit(key, command, {
        ...handling,
        done: () => resolve(),
        refused: (refusal: Refusal) => reject(refused(refusal)),
        failed: (error) => reject(asRuntimeError(error, key)),
      });
    });
  }

  /**
   * What becomes of something that was posted before, also by an earlier process: from the journal if its round has
   * ended, else when it ends.
   * @throws RuntimeError `unknown_task` when the task was removed
   */
  async outcomeOf(at: PostedAt): Promise<Outcome> {
    this.#assertOpen();
    const round = new Round(at);
    // Who has nothing to wait for is told at once.
    if ((await this.#store.lastNumber(at.key)) < at.number) throw unknownTask(at.taskId);
    for await (const { number, entry } of this.#entries(at.key, { after: at.number - 1 })) {
      const outcome = round.see(number, entry);
      if (outcome !== undefined) return outcome;
    }
    throw this.failure ?? (this.#phase === "open" ? unknownTask(at.taskId) : closed());
  }

  // --- reading ----------------------------------------------------------------------------------------------------

  /** The internal key of a task of this instance. */
  find(instance: InstanceId, taskId: string): Promise<JournalKey | undefined> {
    return this.#names.keyOf(instance, taskId);
  }

  /** Reads a task's state as it is on disk. The reader gets the live object: it must copy what it keeps. */
  read<T>(key: JournalKey, reader: (state: TaskState) => T): Promise<T | undefined> {
    return this.#kernel.read(key, reader).catch((error: Error) => {
      throw asRuntimeError(error, key);
    });
  }

  /** What can be told of a task without waiting for what is being written. */
  summary(key: JournalKey): Promise<TaskFigures | undefined> {
    return this.#kernel.summary(key);
  }

  /** A task's journal as a stream. Ends when the runtime is closed or the task is removed. */
  async *follow(
    key: JournalKey,
    options: Partial<FollowOptions> = {},
  ): AsyncGenerator<NumberedEntry, void, undefined> {
    const watches = options.once !== true;
    if (watches) this.bus.publish(WATCH_CHANNEL, { key, watching: true });
    try {
      yield* this.#entries(key, options);
    } finally {
      if (watches) this.bus.publish(WATCH_CHANNEL, { key, watching: false });
    }
  }

  /** The same for who only waits: nothing is fetched from other swarms for the sake of it. */
  #entries(key: JournalKey, options: Partial<FollowOptions>): AsyncGenerator<NumberedEntry, void, undefined> {
    return follow<Entry>(
      {
        read: (journal, page) => this.#store.read(journal, page),
        bus: this.bus,
        channel: taskChannel(key),
        key,
        followers: this.#followers,
      },
      { backlog: this.limits.followerBacklog, ...options },
    );
  }

  /** Removes a finished task that rests. False if something is going on in it. */
  async remove(key: JournalKey): Promise<boolean> {
    const removed = await this.#kernel.remove(
      key,
      ({ state, work }) =>
        state.status !== "running" &&
        state.outbound.length === 0 &&
        work.doing.size === 0 &&
        !this.#waiters.has(key) &&
        !this.#effects.has(key),
      (expected) => [{ kind: "task.remove", key, expected } satisfies TaskRemove],
    );
    if (removed) this.bus.publish(taskChannel(key), { key, removed: true });
    return removed;
  }

  // --- the end ----------------------------------------------------------------------------------------------------

  /**
   * Stops: no turn starts any more, turns and actions under way get `grace` milliseconds to finish, then their
   * signals fire and they are parked; the next process takes them up. Calling it again gives the same promise.
   */
  close(grace = 10_000): Promise<Closed> {
    this.#closing ??= this.#close(grace);
    return this.#closing;
  }

  async #close(grace: number): Promise<Closed> {
    if (this.#phase === "open") {
      this.#phase = "closing";
      this.#scheduler.stop();
      this.remote.close();
      const isQuiet = () => this.#turns.thinking === 0 && this.#isWritten();
      await this.#until(isQuiet, grace);
      this.#parking = true;
      for (const live of [...this.#kernel.all()]) this.#turns.park(live);
      this.#effects.stopAll("shutdown");
      await this.#until(() => this.#isWritten(), Math.max(grace, WRITING_TIME));
    }
    const { undurable: unwritten } = this.#store.writer;
    if (this.#phase === "closing") this.#end("closed", closed());
    await Promise.all(this.#leaving);
    return { unwritten };
  }

  #isWritten(): boolean {
    const { size } = this.#effects;
    return size === 0 && this.#kernel.unsettled === 0 && this.#store.writer.undurable === 0;
  }

  /** Resolves when it holds, and after `ms` milliseconds at the latest. */
  #until(holds: () => boolean, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.clock.after(ms, () => {
        this.#onQuiet = undefined;
        resolve();
      });
      let watched = false;
      // Not everything that is written belongs to a task in memory, and some of it comes late.
      const watchWriter = () => {
        const { writer } = this.#store;
        if (watched || writer.undurable === 0) return;
        watched = true;
        void writer.drained().then(() => {
          watched = false;
          look();
        });
      };
      const check = () => {
        if (this.#onQuiet !== look) return;
        if (this.#phase === "closing" && !holds()) return watchWriter();
        this.#onQuiet = undefined;
        cancel();
        resolve();
      };
      // After what runs now: the end of one thing may be the beginning of another.
      const look = () => this.#loop.micro(check);
      this.#onQuiet = look;
      look();
    });
  }

  /** The store is degraded, well again, or has failed for good. */
  #storeChanged(): void {
    const { failure, degraded } = this.#store.writer;
    if (failure === undefined) {
      if (!degraded) this.#scheduler.pump();
      return;
    }
    if (this.#phase === "failed" || this.#phase === "closed") return;
    const error = storeFailed(failure);
    this.report({ code: error.code, message: error.message, cause: failure });
    this.#end("failed", error);
    this.#onQuiet?.();
    this.#parts.onFailed?.(error);
  }

  /** Nothing is decided any more. Whoever waits is told why. */
  #end(phase: "closed" | "failed", error: RuntimeError): void {
    this.#phase = phase;
    this.#recovery.stop();
    this.#scheduler.stop();
    this.remote.close();
    for (const live of [...this.#kernel.all()])
      this.#turns.stopAll(live, phase === "failed" ? "lost" : "shutdown");
    this.#effects.stopAll("shutdown");
    this.#kernel.stop(error);
    this.#waiters.failAll(error);
    this.#followers.close();
  }

  // --- what the kernel asks ---------------------------------------------------------------------------------------

  /** Most moments share their millisecond with others, and formatting one costs as much as deciding. */
  #now(): Moment {
    const at = this.clock.now();
    if (at !== this.#moment.at) {
      this.#moment = { at, timestamp: new Date(at).toISOString(), id: this.#newId };
    }
    return this.#moment;
  }

  #prepare(
    live: LiveTask,
    entries: readonly Entry[],
    first: number,
    before: TaskFigures | undefined,
  ): { readonly rows: readonly RowWrite[]; readonly orders: readonly TaskOrder[] } {
    let rows = NO_ROWS;
    let orders: readonly TaskOrder[] = NO_ORDERS;
    // The opening brings its own row, which has a title.
    if (before !== undefined && live.latest !== undefined) {
      const row = rowAfter(live.state, live.latest, before);
      if (row !== undefined) rows = [row];
    }
    for (const entry of entries) {
      if (entry.t === "action_started") orders = [...orders, ...actionOrders(live.state, [entry], first)];
      else if (entry.t === "sent" && entry.remote !== undefined) {
        const mails = entry.remote.map((swarm) =>
          outgoing(live.state, live.work.facts, entry.message, swarm),
        );
        const prepared = this.#deliveries.prepare(mails);
        rows = [...rows, ...prepared.rows];
        orders = [...orders, { type: "delivery", prepared }];
      }
      first++;
    }
    return { rows, orders };
  }

  #attach(live: LiveTask, from: "opened" | "stored"): TaskWork {
    const { state } = live;
    const before = from === "stored" && live.hasWork ? live.work : undefined;
    const work = new TaskWork(state, before);
    if (from === "stored" && before === undefined && state.status === "running") {
      work.recoveredUpTo = state.number;
      work.careful = true;
      // In the middle of its calls an agent takes no mail: none of what waits for it was under way.
      for (const [agent, { turn }] of state.agents) if (turn !== undefined) work.recovered.add(agent);
    }
    work.counted = before?.counted ?? false;
    this.#names.add(state);
    this.#count(state, work);
    return work;
  }

  #takeUp(live: LiveTask): void {
    const { state, work } = live;
    const runs = state.status === "running";
    this.#holds.note(live.key, work.instanceKey, state.held !== undefined);
    if (runs) this.#kernel.apply(live, { type: "redefine" }, { own: true });
    this.#turns.takeUp(live);
    this.#effects.takeUp(live);
    this.#timers.takeUp(live);
    if (state.outbound.length > 0) {
      this.#deliveries.takeUp(
        state.outbound.map(({ message, swarm }) => outgoing(state, work.facts, message, swarm)),
      );
    }
    this.#lend(live);
    if (this.#phase === "closing") this.#turns.park(live);
  }

  #suspend(live: LiveTask): void {
    live.work.cancelTimers();
    this.#turns.suspend(live);
  }

  #detach(live: LiveTask, why: "evicted" | "removed" | "missing" | "closed"): void {
    const { work, state, key } = live;
    work.cancelTimers();
    this.#turns.suspend(live);
    if (work.counted) this.#room.count(work.instanceKey, -1);
    work.counted = false;
    this.#names.remove(state);
    this.#resting.delete(key);
    this.remote.withdraw(key, "gone");
    // What is held is tried again also if it is not in memory.
    if (why !== "evicted") this.#holds.note(key, work.instanceKey, false);
    this.#onQuiet?.();
  }

  /** At decide time: nothing here may leave the process. */
  #decided(live: LiveTask, { entries }: TaskUnit): void {
    const { state, work } = live;
    this.#resting.delete(live.key);
    for (const entry of entries) {
      switch (entry.t) {
        case "sent":
          if (entry.message.msg_type === "interrupt") this.#turns.interrupt(live, entry.to, "decided");
          break;
        case "cancelled":
          this.#turns.stopAll(live, "cancelled");
          break;
        case "failed":
          if (entry.code === TASK_TIMEOUT) this.#turns.stopAll(live, "task_time_limit");
          break;
        case "opened":
        case "resumed":
          // What starts from here on was not under way when the process started.
          work.recoveredUpTo = 0;
          work.careful = false;
          break;
        default:
          break;
      }
    }
    this.#count(state, work);
    this.#turns.settle(live);
    if (state.status === "running") {
      this.#scheduler.offer(work);
      if (live.size > this.limits.taskBytes) this.#failTooLarge(live);
      if (this.#parking) this.#parkSoon(live);
    }
  }

  /** Mail that came in at the very end waits for the next process, like everything else. */
  #parkSoon(live: LiveTask): void {
    this.#loop.micro(() => {
      if (!live.gone) this.#turns.park(live);
    });
  }

  #failTooLarge(live: LiveTask): void {
    const reason = `the task's journal is larger than ${this.limits.taskBytes} characters`;
    // After what is being decided now.
    this.#loop.micro(() => {
      if (!live.gone) this.#kernel.apply(live, { type: "fail", code: "too_large", reason }, { own: true });
    });
  }

  #idle(live: LiveTask): void {
    this.#onQuiet?.();
    if (live.state.status === "running") this.#scheduler.offer(live.work);
    else this.#rest(live.key);
  }

  #count({ status }: TaskState, work: TaskWork): void {
    const runs = status === "running";
    if (runs === work.counted) return;
    work.counted = runs;
    this.#room.count(work.instanceKey, runs ? 1 : -1);
  }

  #start(work: TaskWork): boolean {
    const live = this.#kernel.peek(work.key);
    if (live === undefined || live.work !== work) return false;
    try {
      return this.#turns.start(live);
    } catch (cause) {
      // A mistake of ours in one task keeps no other from being served.
      this.report({ code: "turn_failed", message: describe(cause), task: work.key, cause });
      return false;
    }
  }

  // --- reactors ---------------------------------------------------------------------------------------------------

  #deliver(live: LiveTask, { orders }: TaskUnit): void {
    for (const order of orders) {
      if (order.type !== "delivery") continue;
      for (const carried of order.prepared.settled) this.#kernel.apply(live, carried);
      order.prepared.wake();
    }
  }

  #lend(live: LiveTask): void {
    if (!this.#equipment.hasRemote) return;
    if (live.state.status === "running") this.remote.offer(live);
    else this.remote.withdraw(live.key, "stopped");
  }

  #publish(live: LiveTask, { first, entries }: TaskUnit): void {
    const note: CommitNote = { key: live.key, first, entries };
    this.bus.publish(live.work.channel, note);
    this.bus.publish(ALL_TASKS_CHANNEL, note);
  }

  #afterTurns(live: LiveTask, { entries }: TaskUnit): void {
    const { work } = live;
    for (const entry of entries) {
      if (entry.t === "turn") work.careful = false;
      else if (entry.t === "recovered") work.recovered.add(entry.agent);
      else if (entry.t === "sent" && entry.message.msg_type === "interrupt") {
        this.#turns.interrupt(live, entry.to, "durable");
      }
    }
    this.#turns.flushDeltas(live);
    if (live.state.status === "running") this.#scheduler.offer(work);
  }

  #remember(live: LiveTask): void {
    this.#kernel.snapshotIfLong(live);
    this.#onQuiet?.();
    this.#rest(live.key);
  }

  /** Memory follows what is running: of the tasks that rest only the latest stay. */
  #rest(key: JournalKey): void {
    this.#onQuiet?.();
    const live = this.#kernel.peek(key);
    if (live === undefined || !this.#rests(live)) {
      this.#resting.delete(key);
      return;
    }
    this.#resting.delete(key);
    this.#resting.add(key);
    if (this.#resting.size <= this.limits.restingTasks) return;
    const [oldest] = this.#resting;
    if (oldest === undefined) return;
    this.#resting.delete(oldest);
    const leaving = this.#kernel.peek(oldest);
    if (leaving !== undefined && this.#rests(leaving)) this.#kernel.evict(leaving);
  }

  #rests(live: LiveTask): boolean {
    const { state, work, key } = live;
    if (state.status === "running" || !live.quiet || work.doing.size > 0 || work.queued) return false;
    return !this.#waiters.has(key) && !this.#effects.has(key);
  }

  // --- checks -----------------------------------------------------------------------------------------------------

  async #require(instance: InstanceId, taskId: string): Promise<JournalKey> {
    const key = await this.find(instance, taskId);
    if (key === undefined) throw unknownTask(taskId);
    return key;
  }

  #admit(characters: number): void {
    try {
      this.#store.writer.admit(characters);
    } catch (error) {
      throw error instanceof Error ? asRuntimeError(error, "") : error;
    }
  }

  /** Asked wherever a command of a caller can make a task run. */
  #assertRoomIn(live: LiveTask): void {
    try {
      this.#kernel.assertRoomIn(live.key);
    } catch (error) {
      throw error instanceof Error ? asRuntimeError(error, "") : error;
    }
    if (live.state.status !== "running") this.#room.assertRoom(live.work.instanceKey);
  }

  #assertOpen(): void {
    if (this.#phase === "open") return;
    this.#assertNotEnded();
    throw new RuntimeError("closed", "the mailroom is closing");
  }

  /** Results of what is under way are taken until the end. */
  #assertNotEnded(): void {
    const { failure } = this;
    if (failure !== undefined) throw failure;
    if (this.#phase === "closed") throw closed();
  }
}

const NO_ROWS: readonly RowWrite[] = [];
const NO_ORDERS: readonly TaskOrder[] = [];

/** A reporter that throws must not break what it is told of. */
function safely(report: ((problem: Problem) => void) | undefined): (problem: Problem) => void {
  return (problem) => {
    try {
      report?.(problem);
    } catch {
      // There is nobody left to tell.
    }
  };
}

/** What callers hand in is copied: it must be JSON, and nobody outside may hold a reference into a state. */
function storable<T extends object>(input: T): T {
  try {
    return copyJson(input);
  } catch (error) {
    throw new RuntimeError("bad_input", `it cannot be stored: ${describe(error)}`);
  }
}
