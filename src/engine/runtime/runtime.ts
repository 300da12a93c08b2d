/**
 * The shell around the pure engine: its commands, and the wiring of its parts. The journal kernel decides and commits;
 * `turns` calls agents, `action-runner` runs actions, `outbound-mail` handles mail to other swarms, `scheduler` chooses
 * the next task, `posting` opens tasks and posts into them, `task-lifecycle` has the kernel's callbacks, and `shutdown`
 * stops everything.
 */

import type { Clock, Ids } from "../../base/index.js";
import { defaultsOf, MailroomError, messageOf, type Report } from "../../base/index.js";
import type {
  Bus,
  Handling,
  JournalKey,
  Loop,
  Reactor,
  RowWrite,
  Subscription,
} from "../../journal/index.js";
import { Followers, type FollowOptions, follow, Kernel, systemLoop } from "../../journal/index.js";
import type { Action } from "../agent.js";
import type { Carrier } from "../carrier.js";
import type { SwarmDefinition } from "../definition.js";
import type { BudgetPut, BudgetScope, InstanceId, KeyValueStore, Store, TaskRemove } from "../ports.js";
import { type RuntimeLimits, runtimeSettings } from "../settings.js";
import { type TaskStats, taskAggregate } from "../task/aggregate.js";
import type { AnswerApprovals, Command, DecisionContext, Refusal, SetBudget } from "../task/commands.js";
import type { Entry, ManualReply } from "../task/entries.js";
import type { SwarmRules } from "../task/rules.js";
import { askedCalls, type TaskState } from "../task/state.js";
import { type BudgetChange, type BudgetLimits, budgetProblem } from "../usage.js";
import { ActionRunner } from "./action-runner.js";
import type { ActionOverride } from "./actions.js";
import { Admission } from "./admission.js";
import { Budgets } from "./budgets.js";
import { CallerParams } from "./caller-params.js";
import { CurrentDefinition } from "./current-definition.js";
import { DefinitionIndex } from "./definition-index.js";
import { closed, refused, toTaskError, unknownTask } from "./errors.js";
import { Eviction } from "./eviction.js";
import {
  ALL_TASKS_CHANNEL,
  type DeltaNotification,
  deltaChannel,
  isDelta,
  type NumberedEntry,
  publishCommit,
  taskChannel,
  WATCH_CHANNEL,
} from "./follow.js";
import { HeldTasks } from "./held-tasks.js";
import { IdleWaiter } from "./idle-waiter.js";
import { OutboundMail } from "./outbound-mail.js";
import { type Phase, RuntimePhase } from "./phase.js";
import { Posting } from "./posting.js";
import type { JournalLocation, PostInput, PostReceipt, ReceiveInput, RowsFor } from "./receipts.js";
import { Recovery, type RecoveryProgress } from "./recovery.js";
import { RemoteMailboxes } from "./remote.js";
import { RunningTaskLimits } from "./running-task-limits.js";
import { Scheduler } from "./scheduler.js";
import { type Closed, Shutdown } from "./shutdown.js";
import { storable } from "./storable.js";
import { TaskLifecycle } from "./task-lifecycle.js";
import { TaskNames } from "./task-names.js";
import { TaskTimers } from "./task-timers.js";
import type { LiveTask, TaskKernel, TaskOrder, Tasks, TaskUnit, TaskWork } from "./task-work.js";
import { Turns } from "./turns.js";
import { vetCalls } from "./vetting.js";
import { Round, type RoundOutcome, Waiters } from "./waiters.js";

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
  /** See `addSystemAction`. Actions that are passed here exist before the first task is recovered. */
  readonly systemActions?: readonly Action[];
  readonly actionOverride?: ActionOverride;
  /** For actions. Default: the store's. */
  readonly memory?: KeyValueStore;
  readonly report?: Report;
  /** Called once, when the store has failed permanently and the runtime has stopped. */
  readonly onFailed?: (error: MailroomError) => void;
}

/** Tasks that are changed in a row before the event loop continues. */
const CHANGES_IN_A_ROW = 256;

export class Runtime {
  readonly limits: RuntimeLimits;
  readonly clock: Clock;
  readonly bus: Bus;
  readonly report: Report;
  readonly remote: RemoteMailboxes;
  readonly #store: Store;
  readonly #loop: Loop;
  readonly #phase: RuntimePhase;
  readonly #definitionIndex = new DefinitionIndex();
  readonly #current: CurrentDefinition;
  readonly #kernel: TaskKernel;
  readonly #names: TaskNames;
  readonly #taskLimits: RunningTaskLimits;
  readonly #admission: Admission;
  readonly #scheduler: Scheduler<TaskWork>;
  readonly #turns: Turns;
  readonly #actionRunner: ActionRunner;
  readonly #outboundMail: OutboundMail;
  readonly #heldTasks: HeldTasks;
  readonly #budgets: Budgets;
  readonly #timers: TaskTimers;
  readonly #recovery: Recovery;
  readonly #eviction: Eviction;
  readonly #lifecycle: TaskLifecycle;
  readonly #posting: Posting;
  readonly #shutdown: Shutdown;
  readonly #waiters = new Waiters();
  readonly #turnListeners = new Set<(agent: string, ms: number) => void>();
  readonly #followers = new Followers();
  readonly #params = new CallerParams();

  constructor(parts: RuntimeParts) {
    const { store, clock, bus, loop = systemLoop } = parts;
    const { writer } = store;
    const limits = { ...defaultsOf(runtimeSettings), ...parts.limits };
    const report = safely(parts.report);
    this.limits = limits;
    this.clock = clock;
    this.bus = bus;
    this.report = report;
    this.#store = store;
    this.#loop = loop;
    const definitionIndex = this.#definitionIndex;
    const waiters = this.#waiters;
    const phase = new RuntimePhase(writer);
    this.#phase = phase;
    const isOpen = () => phase.isOpen;
    const paramsOf = (instance: InstanceId) => this.paramsOf(instance);
    const idle = new IdleWaiter({ clock, loop, writer, phase });
    const now = decisionContexts(clock, () => parts.ids.uuid());
    const actionsEnded = () => this.#actionRunner.ended();
    const current = new CurrentDefinition(parts.definition, {
      limits,
      definitionIndex,
      actionsEnded,
      report,
    });
    this.#current = current;
    for (const action of parts.systemActions ?? []) this.addSystemAction(action);
    const names = new TaskNames(store.tasks);
    this.#names = names;
    const taskLimits = new RunningTaskLimits(limits, clock);
    this.#taskLimits = taskLimits;
    const kernel = new Kernel<Tasks>({
      aggregate: taskAggregate<TaskOrder, TaskWork>(() => current.rules),
      store,
      clock,
      loop,
      limits,
      moment: now,
      report,
      prepare: (live, entries, first, before) => this.#lifecycle.prepare(live, entries, first, before),
      attach: (live, from) => this.#lifecycle.attach(live, from),
      resume: (live) => this.#lifecycle.resume(live),
      suspend: (live) => this.#lifecycle.suspend(live),
      detach: (live, why) => this.#lifecycle.detach(live, why),
      decided: (live, unit) => this.#lifecycle.decided(live, unit),
      idle: (live) => this.#lifecycle.idle(live),
      reactors: this.#reactors(),
    });
    this.#kernel = kernel;
    const admission = new Admission({ writer, kernel, taskLimits });
    this.#admission = admission;
    const scheduler = new Scheduler<TaskWork>({
      limits,
      loop,
      start: (work) => this.#turns.start(work),
      idle: (work) => this.#eviction.consider(work.key),
      mayStart: () => !writer.degraded,
    });
    this.#scheduler = scheduler;
    const budgets = new Budgets({
      store,
      kernel,
      limits,
      rules: () => current.rules,
      now: () => clock.now(),
    });
    this.#budgets = budgets;
    const turns = new Turns({
      kernel,
      budgets,
      scheduler,
      definitionIndex,
      clock,
      loop,
      bus,
      limits,
      undurable: () => writer.undurable,
      isOpen,
      paramsOf,
      freed: (key) => this.#eviction.consider(key),
      timed: (agent, ms) => {
        for (const listener of this.#turnListeners) listener(agent, ms);
      },
      report,
    });
    this.#turns = turns;
    const actionRunner = new ActionRunner({
      kernel,
      definitionIndex,
      clock,
      limits,
      override: parts.actionOverride,
      memory: parts.memory ?? store.memory,
      paramsOf,
      report,
      ended: (key) => this.#eviction.consider(key),
    });
    this.#actionRunner = actionRunner;
    const eviction = new Eviction({ kernel, limits, waiters, actionRunner, idle });
    this.#eviction = eviction;
    const outboundMail = new OutboundMail({
      carriers: parts.carriers ?? [],
      store,
      clock,
      notify: (key, carried) => kernel.submit(key, carried),
      isOpen,
      report,
    });
    this.#outboundMail = outboundMail;
    const heldTasks = new HeldTasks({
      clock,
      retry: (key) => this.#retry(key),
      nextWithRoom: (isHeld) => budgets.nextWithRoom(isHeld),
      ended: (key) => budgets.forget(key),
      failed: (cause, task) => {
        if (isOpen()) report({ code: "retry_failed", message: messageOf(cause), task, cause });
      },
    });
    this.#heldTasks = heldTasks;
    const timers = new TaskTimers(kernel, clock, limits);
    this.#timers = timers;
    const recovery = new Recovery({
      store,
      kernel,
      clock,
      loop,
      retryHeld: (key) => heldTasks.retry(key),
      isOpen,
      report,
    });
    this.#recovery = recovery;
    const remote = new RemoteMailboxes({
      command: (key, command, decided) => this.#command(key, command, { ...(decided && { decided }) }),
      peek: (key) => kernel.peek(key),
      vet: (key, agent, calls) => {
        const live = kernel.peek(key);
        return live === undefined ? undefined : vetCalls(live, agent, calls, definitionIndex, report);
      },
      tools: (agent) => definitionIndex.agent(agent)?.tools ?? [],
      isRemote: (agent) => current.rules.agents.get(agent)?.remote === true,
      hasRemote: () => definitionIndex.hasRemote,
    });
    this.remote = remote;
    this.#lifecycle = new TaskLifecycle({
      kernel,
      loop,
      limits,
      phase,
      idle,
      names,
      taskLimits,
      scheduler,
      turns,
      actionRunner,
      outboundMail,
      heldTasks,
      budgets,
      timers,
      remote,
      eviction,
    });
    this.#posting = new Posting({
      kernel,
      ids: parts.ids,
      rules: () => current.rules,
      now,
      phase,
      names,
      admission,
      waiters,
    });
    this.#shutdown = new Shutdown({
      phase,
      idle,
      writer,
      kernel,
      scheduler,
      turns,
      actionRunner,
      remote,
      recovery,
      timers,
      heldTasks,
      waiters,
      followers: this.#followers,
      current,
      report,
      onFailed: parts.onFailed,
    });
  }

  /** Run after a commit, in this order. Each receives a unit with the state as of its entries. */
  #reactors(): readonly Reactor<Tasks>[] {
    return [
      { name: "waiters", react: (live, unit) => this.#waiters.see(live.key, unit.first, unit.entries) },
      { name: "held tasks", react: (live, unit) => this.#heldTasks.react(live, unit) },
      { name: "timers", react: (live, unit) => this.#timers.react(live, unit) },
      { name: "outbound mail", react: (live, unit) => this.#outboundMail.react(live, unit) },
      { name: "actions", react: (live, unit) => this.#actionRunner.react(live, unit) },
      { name: "remote mailboxes", react: (live) => this.remote.react(live) },
      { name: "streams", react: (live, unit) => this.#publish(live, unit) },
      { name: "turns", react: (live, unit) => this.#turns.react(live, unit) },
      { name: "memory", react: (live) => this.#eviction.react(live) },
    ];
  }

  #publish({ key, work }: LiveTask, { first, entries }: TaskUnit): void {
    publishCommit(this.bus, work.channel, { key, first, entries });
  }

  get phase(): Phase {
    return this.#phase.current;
  }

  /** The error that stopped the runtime, if the store has failed permanently. */
  get failure(): MailroomError | undefined {
    return this.#phase.failure;
  }

  get definition(): SwarmDefinition {
    return this.#current.definition;
  }

  get rules(): SwarmRules {
    return this.#current.rules;
  }

  /** Figures for monitoring. */
  get stats(): { liveTasks: number; runningTasks: number; turns: number; recovery?: RecoveryProgress } {
    const { progress } = this.#recovery;
    return {
      liveTasks: this.#kernel.size,
      runningTasks: this.#taskLimits.running,
      turns: this.#scheduler.running,
      ...(progress !== undefined && { recovery: progress }),
    };
  }

  /** Messages in the mailboxes of running tasks by agent, including those that a turn is working on. */
  waitingMail(): Map<string, number> {
    const waiting = new Map<string, number>();
    for (const { state } of this.#kernel.all()) {
      if (state.status !== "running") continue;
      for (const [name, { mailbox }] of state.agents)
        if (mailbox.length > 0) waiting.set(name, (waiting.get(name) ?? 0) + mailbox.length);
    }
    return waiting;
  }

  /** Calls back with the duration of each turn that took time. Returns a function that ends it. */
  onTurn(listener: (agent: string, ms: number) => void): () => void {
    this.#turnListeners.add(listener);
    return () => this.#turnListeners.delete(listener);
  }

  addCarrier(carrier: Carrier): void {
    this.#outboundMail.addCarrier(carrier);
  }

  /** Adds the implementation of a MAIL tool that runs like an action (`discover_swarms`). */
  addSystemAction(action: Action): void {
    this.#definitionIndex.addSystemAction(action);
  }

  /** Values for the agents and actions of an instance. Held in memory only. */
  setParams(instance: InstanceId, params: Readonly<Record<string, unknown>>): void {
    if (this.#params.set(instance, params)) void this.#heldTasks.retryAll("credentials", instance);
  }

  paramsOf(instance: InstanceId): Readonly<Record<string, unknown>> {
    return this.#params.of(instance);
  }

  /**
   * Replaces the swarm definition. Running tasks continue with the new one, and their journals record the change. The
   * old definition is closed when its running actions have ended.
   */
  redefine(definition: SwarmDefinition): void {
    // The runtime was closed while the definition was being loaded, and nothing else closes it.
    if (!this.#phase.isOpen) return this.#current.release(definition);
    this.#current.replace(definition);
    const running: JournalKey[] = [];
    for (const { key, state } of this.#kernel.all()) if (state.status === "running") running.push(key);
    void this.#noteDefinition(running);
    // It may have other budgets.
    void this.#heldTasks.retryAll("budget");
  }

  async #noteDefinition(keys: readonly JournalKey[]): Promise<void> {
    for (const [index, key] of keys.entries()) {
      if (!this.#phase.isOpen) return;
      const live = this.#kernel.peek(key);
      if (live?.state.status === "running") this.#kernel.apply(live, { type: "redefine" }, { own: true });
      if (index % CHANGES_IN_A_ROW !== CHANGES_IN_A_ROW - 1) continue;
      await this.#store.writer.below(CHANGES_IN_A_ROW);
      await new Promise<void>((resolve) => this.#loop.soon(resolve));
    }
  }

  /** Continues the work of an earlier process. Resolves with the number of recovered running tasks. */
  recover(onProgress?: (recovered: number, of: number) => void): Promise<number> {
    return this.#recovery.run(onProgress);
  }

  // --- commands ---------------------------------------------------------------------------------------------------

  /** Posts a user's message into a new or an existing task. Resolves when the message is durable. */
  post(instance: InstanceId, input: PostInput): Promise<PostReceipt> {
    return this.#posting.post(instance, input);
  }

  /** Answers the breakpoint calls of a paused task; the outcome is that of the round that follows. */
  answerBreakpoint(
    instance: InstanceId,
    taskId: string,
    answer: Omit<Extract<Command, { type: "answer_breakpoint" }>, "type">,
    rows?: RowsFor,
  ): Promise<PostReceipt> {
    return this.#posting.answerBreakpoint(instance, taskId, answer, rows);
  }

  /** The same for a task of any instance; `by` is the principal that answers, and the engine checks its permission. */
  answerFor(
    at: Pick<JournalLocation, "key" | "taskId">,
    answer: Omit<Extract<Command, { type: "answer_breakpoint" }>, "type">,
    rows?: RowsFor,
  ): Promise<PostReceipt> {
    return this.#posting.answerFor(at, answer, rows);
  }

  /**
   * Decides calls that wait for approval, in a task of any instance. Changed arguments are checked first. The outcome is that
   * of the round that follows.
   * @throws MailroomError `bad_arguments`, or the code of the engine's refusal
   */
  async answerApprovals(
    at: Pick<JournalLocation, "key" | "taskId">,
    answer: Omit<AnswerApprovals, "type">,
    rows?: RowsFor,
  ): Promise<PostReceipt> {
    const { decisions } = answer;
    const named = await this.read(at.key, (state) => askedCalls(state).map(({ call }) => call));
    for (const decision of decisions) {
      if (decision.decision !== "approve" || decision.args === undefined) continue;
      const call = named?.find(({ id }) => id === decision.callId);
      const action = call === undefined ? undefined : this.#definitionIndex.action(call.name);
      const checked = await action?.check(storable(decision.args));
      if (checked?.ok === false) {
        const text = `the arguments of call '${decision.callId}' are invalid: ${checked.message}`;
        throw new MailroomError("bad_arguments", text);
      }
    }
    return this.#posting.answerApprovals(at, answer, rows);
  }

  /** Puts a message of another person into a task that is there. The caller has checked that it may. */
  postFor(
    at: Pick<JournalLocation, "key" | "taskId">,
    sender: InstanceId,
    input: Omit<PostInput, "taskId">,
  ): Promise<PostReceipt> {
    return this.#posting.postFor(at, sender, input);
  }

  /**
   * Posts mail from another swarm into the task it belongs to, or adopts the task. Resolves when the mail is durable.
   * @throws MailroomError `unknown_task`, `owner_mismatch`, or the code of the engine's refusal
   */
  receive(input: ReceiveInput): Promise<JournalLocation & { readonly opened: boolean }> {
    return this.#posting.receive(input);
  }

  /** @throws MailroomError `already_ended` */
  cancel(key: JournalKey, by: string, rows?: readonly RowWrite[]): Promise<void> {
    return this.#command(key, { type: "cancel", by }, { rows });
  }

  /** Runs one step of a task in manual mode. Resolves when the step is durable and about to run. */
  async manualStep(
    instance: InstanceId,
    taskId: string,
    agent: string,
    payload: string,
    reply: ManualReply,
  ): Promise<{ key: JournalKey; number: number }> {
    this.#phase.assertOpen();
    const step = storable({ agent, payload, reply });
    const key = await this.find(instance, taskId);
    if (key === undefined) throw unknownTask(taskId);
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
   * Any other command, for the modules that extend the engine. The rows are committed even if there is nothing to decide.
   * @throws MailroomError when the command is refused
   */
  command(key: JournalKey, command: Command, rows?: readonly RowWrite[]): Promise<void> {
    return this.#command(key, command, rows === undefined ? {} : { rows, rowsAlways: true });
  }

  // --- budgets ----------------------------------------------------------------------------------------------------

  /**
   * Changes the limits of a task: those of its owner, or those that an admin sets in place of the configured ones. A task
   * that was paused at a limit continues if no limit is reached.
   * @throws MailroomError `bad_input`, `forbidden`, `unknown_agent`, `unknown_task`
   */
  async setTaskBudget(
    key: JournalKey,
    change: Omit<SetBudget, "type">,
    rows: readonly RowWrite[] = [],
  ): Promise<void> {
    this.#phase.assertOpen();
    for (const limits of [change.limits, ...Object.values(change.agents ?? {})]) assertBudget(limits);
    const given = storable(change);
    await this.#command(key, { type: "set_budget", ...given }, { rows });
    await this.#heldTasks.retry(key);
  }

  /**
   * Sets limits per day (UTC) of a caller or of the server, in place of the configured ones. Tasks that were paused at a
   * limit continue if no limit is reached.
   * @throws MailroomError `bad_input`
   */
  async setDailyBudget(
    scope: BudgetScope,
    change: BudgetChange,
    rows: readonly RowWrite[] = [],
  ): Promise<void> {
    this.#phase.assertOpen();
    assertBudget(change);
    const limits = storable(change);
    const put: BudgetPut = { kind: "budget.put", scope, limits };
    await this.#store.commit({ appends: [], rows: [put, ...rows] });
    void this.#heldTasks.retryAll("budget", scope === "day" ? undefined : scope.caller);
  }

  /** The limits per day (UTC) that apply to a caller or to the server. */
  dailyBudget(scope: BudgetScope): Promise<BudgetLimits> {
    return this.#budgets.limitsOf(scope);
  }

  /** A held task counts as running once it is retried. */
  async #retry(key: JournalKey): Promise<boolean> {
    const live = await this.#kernel.load(key);
    if (live?.state.held === "budget" && !(await this.#budgets.admits(live.state))) return false;
    if (live !== undefined) this.#admission.assertCapacityIn(live);
    await this.#command(key, { type: "retry" }, {});
    return true;
  }

  #command(key: JournalKey, command: Command, handling: Handling<Tasks>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#phase.assertNotEnded();
      this.#kernel.submit(key, command, {
        ...handling,
        done: () => resolve(),
        refused: (refusal: Refusal) => reject(refused(refusal)),
        failed: (error) => reject(toTaskError(error, key)),
      });
    });
  }

  /**
   * The outcome of a message that was posted before, possibly by an earlier process. Read from the journal if its round
   * has ended; otherwise resolves when it ends.
   * @throws MailroomError `unknown_task` when the task was removed
   */
  async outcomeOf(at: JournalLocation): Promise<RoundOutcome> {
    this.#phase.assertOpen();
    const round = new Round(at);
    // Fail immediately if there is no round to wait for.
    if ((await this.#store.lastNumber(at.key)) < at.number) throw unknownTask(at.taskId);
    for await (const { number, entry } of this.#entries(at.key, { after: at.number - 1 })) {
      const outcome = round.see(number, entry);
      if (outcome !== undefined) return outcome;
    }
    throw this.failure ?? (this.#phase.isOpen ? unknownTask(at.taskId) : closed());
  }

  // --- reading ----------------------------------------------------------------------------------------------------

  /** The internal key of a task of this instance. */
  find(instance: InstanceId, taskId: string): Promise<JournalKey | undefined> {
    return this.#names.keyOf(instance, taskId);
  }

  /** Reads a task's durable state. The reader receives the live object and must copy what it keeps. */
  read<T>(key: JournalKey, reader: (state: TaskState) => T): Promise<T | undefined> {
    return this.#kernel.read(key, reader).catch((error: Error) => {
      throw toTaskError(error, key);
    });
  }

  /** A task's durable summary. Does not wait for pending writes. */
  summary(key: JournalKey): Promise<TaskStats | undefined> {
    return this.#kernel.summary(key);
  }

  /** The agents that work on a task now: their functions or actions run in this process. */
  workingAgents(key: JournalKey): readonly string[] {
    const live = this.#kernel.peek(key);
    return live === undefined ? [] : [...live.work.doing.keys()];
  }

  /**
   * Passes on the text that agents stream for a task, beginning with what running turns have streamed so far. Notes are
   * of no use after the entries that follow them.
   */
  watchText(key: JournalKey, take: (note: DeltaNotification) => void): Subscription {
    const subscription = this.bus.subscribe(deltaChannel(key), (note) => {
      if (isDelta(note)) take(note);
    });
    const live = this.#kernel.peek(key);
    try {
      if (live !== undefined) for (const note of this.#turns.textOf(live)) take(note);
    } catch (cause) {
      this.report({ code: "listener_failed", message: messageOf(cause), task: key, cause });
    }
    return subscription;
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

  /** Like `follow`, for callers that only wait: no events are copied from other swarms because of it. */
  #entries(key: JournalKey, options: Partial<FollowOptions>): AsyncGenerator<NumberedEntry, void, undefined> {
    return follow<Entry>(
      {
        read: (journal, page) => this.#store.read(journal, page),
        lastNumber: (journal) => this.#store.lastNumber(journal),
        bus: this.bus,
        loop: this.#loop,
        channel: taskChannel(key),
        key,
        followers: this.#followers,
      },
      { backlog: this.limits.followerBacklog, ...options },
    );
  }

  /** Removes an ended task. Returns false if work on it is still running. */
  async remove(key: JournalKey): Promise<boolean> {
    const row = await this.#store.tasks.byKey(key);
    const removed = await this.#kernel.remove(
      key,
      ({ state, work }) =>
        state.status !== "running" &&
        state.outbound.length === 0 &&
        work.doing.size === 0 &&
        !this.#waiters.has(key) &&
        !this.#actionRunner.has(key),
      (expected) => [{ kind: "task.remove", key, expected } satisfies TaskRemove],
    );
    if (removed) {
      this.bus.publish(taskChannel(key), { key, removed: true });
      if (row !== undefined) {
        const { taskId, instance } = row;
        this.bus.publish(ALL_TASKS_CHANNEL, { key, removed: true, taskId, instance });
      }
    }
    return removed;
  }

  // --- the end ----------------------------------------------------------------------------------------------------

  /**
   * Stops the runtime. No further turn starts; running turns and actions get `grace` milliseconds to finish. Then their
   * signals fire, and the next process continues them. Every call returns the same promise.
   */
  close(grace = 10_000): Promise<Closed> {
    return this.#shutdown.close(grace);
  }
}

function assertBudget(limits: BudgetChange): void {
  const problem = budgetProblem(limits);
  if (problem !== undefined) throw new MailroomError("bad_input", problem);
}

/** A reporter that throws must not break the code that reports to it. */
function safely(report: Report | undefined): Report {
  return (problem) => {
    try {
      report?.(problem);
    } catch {
      // There is no other place to report to.
    }
  };
}

/** Most decisions share their millisecond with others, and formatting one costs as much as deciding. */
function decisionContexts(clock: Clock, id: () => string): () => DecisionContext {
  let latest: DecisionContext = { at: -1, timestamp: "", id };
  return () => {
    const at = clock.now();
    if (at !== latest.at) latest = { at, timestamp: new Date(at).toISOString(), id };
    return latest;
  };
}
