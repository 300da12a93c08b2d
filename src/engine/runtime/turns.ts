/** Runs agents: starts their turns, enforces their timeouts, and hands their answers to the engine. */

import { type Clock, hasCode, messageOf, type Report } from "../../base/index.js";
import type { Bus, Handling, JournalKey, Loop } from "../../journal/index.js";
import {
  type PlannedCall,
  type StreamedCall,
  sumOf,
  type ToolChoice,
  type Turn,
  TurnHeldError,
  type TurnResult,
  type Usage,
} from "../agent.js";
import type { InstanceId } from "../ports.js";
import type { RuntimeLimits } from "../settings.js";
import type { AnswerTurn, Command, VettedCall } from "../task/commands.js";
import { comesBefore, type MailboxItem } from "../task/state.js";
import { isNothing, usedIn } from "../usage.js";
import { AbortHandle, StoppedError, type StopReason } from "./abort-handle.js";
import { copyAnswer } from "./answers.js";
import type { Budgets } from "./budgets.js";
import { CrashSuspects } from "./crash-suspects.js";
import type { DefinitionIndex } from "./definition-index.js";
import { type DeltaNotification, deltaChannel } from "./follow.js";
import type { Scheduler } from "./scheduler.js";
import type { Doing, LiveTask, RunningTurn, TaskKernel, Tasks, TaskUnit, TaskWork } from "./task-work.js";
import { TurnView } from "./turn.js";
import { TurnText } from "./turn-text.js";
import { vetCalls } from "./vetting.js";

export interface TurnsParts {
  readonly kernel: TaskKernel;
  readonly scheduler: Scheduler<TaskWork>;
  readonly definitionIndex: DefinitionIndex;
  readonly clock: Clock;
  readonly loop: Loop;
  readonly bus: Bus;
  readonly limits: RuntimeLimits;
  readonly budgets: Pick<Budgets, "begin">;
  /** Units of the whole process that are not durable. */
  readonly undurable: () => number;
  readonly isOpen: () => boolean;
  readonly paramsOf: (instance: InstanceId) => Turn["params"];
  /** An agent of this task is free again. */
  readonly freed: (key: JournalKey) => void;
  /** An agent's function took this many milliseconds. */
  readonly timed: (agent: string, ms: number) => void;
  readonly report: Report;
}

interface NextTurn {
  readonly agent: string;
  readonly mails: readonly [MailboxItem, ...MailboxItem[]];
}

export class Turns {
  readonly #parts: TurnsParts;
  readonly #suspects: CrashSuspects;
  #thinking = 0;

  constructor(parts: TurnsParts) {
    this.#parts = parts;
    this.#suspects = new CrashSuspects(parts.clock, (key) => {
      const live = parts.kernel.peek(key);
      if (live !== undefined) parts.scheduler.offer(live.work);
    });
  }

  /** The number of running turns. */
  get thinking(): number {
    return this.#thinking;
  }

  /** Starts the next turn of this task. Returns false if no turn can start. */
  start(work: TaskWork): boolean {
    const live = this.#parts.kernel.peek(work.key);
    if (live === undefined || live.work !== work) return false;
    try {
      return this.#start(live);
    } catch (cause) {
      // A bug that shows in one task must not keep others from being served.
      this.#parts.report({ code: "turn_failed", message: messageOf(cause), task: work.key, cause });
      return false;
    }
  }

  #start(live: LiveTask): boolean {
    const next = this.#next(live);
    if (next === undefined) return false;
    const { agent, mails } = next;
    const { work } = live;
    if (mails[0].number > work.recoveredUpTo) {
      this.#run(live, agent, mails, 1);
      return true;
    }
    if (work.recovered.has(agent)) {
      this.#run(live, agent, mails, attemptOf(live, agent));
      return true;
    }
    // A turn with this message may have crashed the previous process: the attempt is counted first, durably.
    if (this.#isSuspect(live, agent)) this.#suspects.begin(live.key, agent);
    this.#set(live, agent, STARTING);
    const took = mails.map((mail) => mail.number);
    const isCurrent = () => !live.gone && live.work === work && work.doing.get(agent) === STARTING;
    const go = () => {
      if (!isCurrent()) return;
      const current = live.state.agents.get(agent);
      const there = live.state.status === "running" && mails.every((mail) => current?.mailbox.includes(mail));
      const isOpen = this.#parts.isOpen();
      if (there && !live.held && isOpen) return this.#run(live, agent, mails, attemptOf(live, agent));
      this.#free(live, agent);
      // It was counted and no longer starts here: the next process must not count it again.
      if (there && !isOpen) this.#park(live, agent, took);
    };
    const failed = () => {
      if (isCurrent()) this.#free(live, agent);
    };
    this.#parts.kernel.apply(
      live,
      { type: "recover", agent, took },
      { own: true, done: go, refused: go, failed },
    );
    return true;
  }

  /** After a commit. */
  react(live: LiveTask, { entries }: TaskUnit): void {
    const { work } = live;
    for (const entry of entries) {
      if (entry.t === "turn") work.careful = false;
      else if (entry.t === "recovered") work.recovered.add(entry.agent);
      else if (entry.t === "sent" && entry.message.msg_type === "interrupt") {
        this.interrupt(live, entry.to, "durable");
      }
    }
    this.flushDeltas(live);
    if (live.state.status === "running") this.#parts.scheduler.offer(work);
  }

  /** Interrupts running turns. Agents that run ahead of the disk are interrupted when the interrupt is decided. */
  interrupt(live: LiveTask, agents: readonly string[], when: "decided" | "durable"): void {
    for (const agent of agents) {
      const doing = live.work.doing.get(agent);
      if (doing?.kind !== "turn") continue;
      if (this.#runsAhead(agent) === (when === "decided")) doing.abortHandle.stop("interrupt");
    }
  }

  stopAll(live: LiveTask, reason: StopReason): void {
    for (const doing of [...live.work.doing.values()])
      if (doing.kind === "turn") doing.abortHandle.stop(reason);
  }

  /**
   * Closing: running turns are stopped, and the mail that the next process starts with is journaled as parked, so that
   * starting it does not count as a recovery.
   */
  park(live: LiveTask): void {
    for (const doing of [...live.work.doing.values()])
      if (doing.kind === "turn") doing.abortHandle.stop("shutdown");
    if (live.state.status !== "running") return;
    for (const [agent, { mailbox, turn, parked }] of live.state.agents) {
      const [head] = mailbox;
      if (head === undefined || turn !== undefined || parked) continue;
      if (live.work.doing.get(agent) === STARTING) continue;
      if (this.#parts.definitionIndex.implementation(agent) !== undefined)
        this.#park(live, agent, [head.number]);
    }
  }

  #park(live: LiveTask, agent: string, took: readonly number[]): void {
    this.#parts.kernel.apply(live, { type: "park", agent, took }, { own: true });
  }

  /** The task is about to be reloaded: the current turns no longer count. */
  suspend(live: LiveTask): void {
    for (const [agent, doing] of [...live.work.doing]) {
      this.#free(live, agent);
      if (doing.kind === "turn") doing.abortHandle.stop("lost");
    }
  }

  /** Frees the agents whose calls have all been executed, or wait for a person. */
  settle(live: LiveTask): void {
    const { doing } = live.work;
    for (const [agent, { kind }] of doing) {
      if (kind === "acting" && !hasCallsToRun(live, agent)) this.#free(live, agent);
    }
  }

  /** Agents with calls to run hold slots: after the task was read from the store, and when it continues. */
  resume(live: LiveTask): void {
    for (const agent of live.state.agents.keys()) {
      if (!live.work.doing.has(agent) && hasCallsToRun(live, agent)) this.#set(live, agent, ACTING);
    }
  }

  /** The mail that these turns work on may be durable now. */
  flushDeltas(live: LiveTask): void {
    for (const doing of live.work.doing.values()) {
      if (doing.kind !== "turn" || doing.text === undefined || doing.text.isPublic) continue;
      if (isDurable(live, doing)) this.#publishAll(doing.text);
    }
  }

  /** What the turns of a task have streamed so far. */
  textOf(live: LiveTask): DeltaNotification[] {
    return [...live.work.doing.values()].flatMap((doing) =>
      doing.kind === "turn" && doing.text?.isPublic === true ? doing.text.all() : [],
    );
  }

  // --- choosing ---------------------------------------------------------------------------------------------------

  /** The agent whose mail is served next: of the lowest tier, then the lowest number. */
  #next(live: LiveTask): NextTurn | undefined {
    const { state } = live;
    if (state.status !== "running" || live.gone || live.held || !this.#parts.isOpen()) return undefined;
    if (state.lastTurn !== undefined) {
      const mail = state.agents
        .get(state.entrypoint)
        ?.mailbox.find(({ number }) => number === state.lastTurn);
      return mail !== undefined && this.#canTake(live, state.entrypoint, mail)
        ? { agent: state.entrypoint, mails: [mail] }
        : undefined;
    }
    let best: { agent: string; head: MailboxItem } | undefined;
    for (const [agent, { mailbox }] of state.agents) {
      const head = state.manual ? mailbox.find((mail) => mail.manual !== undefined) : mailbox[0];
      if (head === undefined || (best !== undefined && !comesBefore(head, best.head))) continue;
      if (this.#canTake(live, agent, head)) best = { agent, head };
    }
    if (best === undefined) return undefined;
    const { agent, head } = best;
    if (!state.manual) return { agent, mails: [head] };
    // A manual step takes all collected messages.
    const mailbox = state.agents.get(agent)?.mailbox ?? [];
    const [first = head, ...rest] = mailbox.filter((mail) => mail !== head && mail.number <= live.durable);
    return { agent, mails: first === head ? [head] : [first, ...rest, head] };
  }

  #canTake(live: LiveTask, agent: string, mail: MailboxItem): boolean {
    const { limits, definitionIndex, undurable } = this.#parts;
    if (live.work.doing.has(agent) || live.state.agents.get(agent)?.turn !== undefined) return false;
    if (definitionIndex.implementation(agent) === undefined) return false;
    if (this.#isSuspect(live, agent) && !this.#suspects.admits(live.key)) return false;
    // The mail is durable, and so is the fact that the task runs.
    if (mail.number <= live.durable && live.summary?.status === "running") return true;
    return (
      this.#runsAhead(agent) &&
      !live.work.careful &&
      !live.state.manual &&
      live.ahead < limits.undurablePerTask &&
      undurable() < limits.undurable
    );
  }

  #runsAhead(agent: string): boolean {
    return this.#parts.limits.speculation && this.#parts.definitionIndex.speculates(agent);
  }

  /** Its turn was recovered before without a result, and has not been started in this process. */
  #isSuspect({ state, work }: LiveTask, agent: string): boolean {
    return !work.recovered.has(agent) && (state.agents.get(agent)?.recoveries ?? 0) > 0;
  }

  // --- running ----------------------------------------------------------------------------------------------------

  #run(
    live: LiveTask,
    agent: string,
    mails: readonly [MailboxItem, ...MailboxItem[]],
    attempt: number,
    before?: Pick<RunningTurn, "usedBefore" | "counted">,
  ): void {
    const { definitionIndex } = this.#parts;
    const implementation = definitionIndex.implementation(agent);
    const indexed = definitionIndex.agent(agent);
    if (implementation === undefined || indexed === undefined) return this.#free(live, agent);
    const { state } = live;
    const params = this.#parts.paramsOf(state.instance);
    const abortHandle = new AbortHandle();
    const turn: RunningTurn = {
      kind: "turn",
      agent,
      mails,
      abortHandle,
      attempt,
      params,
      text: undefined,
      usage: undefined,
      usedBefore: before?.usedBefore,
      counted: before?.counted,
    };
    this.#set(live, agent, turn);
    const isLast = state.lastTurn !== undefined && mails.some((mail) => mail.number === state.lastTurn);
    const toolChoice: ToolChoice = isLast ? { name: "task_complete" } : state.manual ? "auto" : "required";
    const { tools: allTools, peers } = indexed;
    const tools = isLast ? indexed.lastTurn : allTools;
    const view = new TurnView(this, live, turn, { tools, allTools, toolChoice, peers });
    let answer: TurnResult | Promise<TurnResult>;
    let comesLater: boolean;
    try {
      answer = implementation(view);
      comesLater = isThenable(answer);
    } catch (error) {
      this.#failed(live, turn, error);
      return;
    }
    if (comesLater) this.#await(live, turn, answer);
    else this.#answered(live, turn, answer);
  }

  #await(live: LiveTask, turn: RunningTurn, answer: TurnResult | Promise<TurnResult>): void {
    const { clock, limits } = this.#parts;
    const { abortHandle } = turn;
    const cancelTimer = clock.after(limits.turnTimeout, () => abortHandle.stop("time_limit"));
    const began = clock.now();
    abortHandle.race(Promise.resolve(answer)).then(
      (result) => {
        cancelTimer();
        this.#parts.timed(turn.agent, clock.now() - began);
        if (result instanceof StoppedError) this.#stopped(live, turn, result);
        else this.#answered(live, turn, result);
      },
      (error: unknown) => {
        cancelTimer();
        this.#parts.timed(turn.agent, clock.now() - began);
        this.#failed(live, turn, error);
      },
    );
  }

  #answered(live: LiveTask, turn: RunningTurn, answer: unknown): void {
    const { stopped } = turn.abortHandle;
    if (stopped !== undefined) {
      this.#stopped(live, turn, stopped);
      return;
    }
    let copy: TurnResult;
    try {
      copy = copyAnswer(answer, "its answer");
    } catch (error) {
      this.#failed(live, turn, error);
      return;
    }
    const own = copy.usage ?? turn.usage;
    const usage = turn.usedBefore === undefined ? own : sumOf(turn.usedBefore, own);
    const counted = usage === undefined ? copy : { ...copy, usage };
    const command = {
      type: "answer",
      agent: turn.agent,
      took: tookBy(turn),
      answer: counted,
      ...countedIn(turn),
    } as const;
    const { definitionIndex, report } = this.#parts;
    const vetting = vetCalls(live, turn.agent, counted.calls, definitionIndex, report);
    if (vetting === undefined) this.#finish(live, turn, command);
    else this.#vet(live, turn, command, vetting);
  }

  #vet(
    live: LiveTask,
    turn: RunningTurn,
    command: AnswerTurn,
    vetting: Promise<readonly VettedCall[]>,
  ): void {
    const { clock, limits } = this.#parts;
    const { abortHandle } = turn;
    const cancelTimer = clock.after(limits.turnTimeout, () => abortHandle.stop("time_limit"));
    void abortHandle.race(vetting).then((vetted) => {
      cancelTimer();
      // The answer is known and must not be lost (law 3). Without the word of their actions, calls need approval.
      this.#finish(live, turn, vetted instanceof StoppedError ? command : { ...command, vetted });
    });
  }

  #failed(live: LiveTask, turn: RunningTurn, error: unknown): void {
    const { report, kernel, paramsOf } = this.#parts;
    const { stopped } = turn.abortHandle;
    if (stopped !== undefined) {
      this.#stopped(live, turn, stopped);
      return;
    }
    // What it streamed will be no answer.
    this.reset(live, turn);
    const message = messageOf(error);
    if (!(error instanceof TurnHeldError)) {
      report({ code: "agent_error", message, task: live.key, cause: error });
      this.#fail(live, turn, "agent_error", message);
      return;
    }
    report({ code: error.code, message, task: live.key, cause: error });
    // The task is already paused: there is nothing to journal, and this agent runs again when the task continues.
    if (live.state.status !== "running") return this.leave(live, turn);
    const hold: Command = {
      type: "hold_turn",
      agent: turn.agent,
      took: tookBy(turn),
      reason: error.reason,
      ...(error.limit !== undefined && { limit: error.limit }),
      message: error.message,
      ...usageIn(turn),
    };
    this.#finish(live, turn, hold, () => {
      // The missing value may have arrived during the turn; then nothing else would retry the task.
      if (paramsOf(live.work.instance) !== turn.params) kernel.submit(live.key, { type: "retry" });
    });
  }

  #stopped(live: LiveTask, turn: RunningTurn, { reason }: StoppedError): void {
    this.reset(live, turn);
    switch (reason) {
      case "interrupt": {
        // Runs again with the interrupt appended, unless its mail is gone or nothing may start now.
        const { isOpen, scheduler } = this.#parts;
        const mayStart = !live.held && isOpen() && scheduler.canStart();
        const runsAgain = mayStart && this.#isCurrent(live, turn) && hasMail(live, turn);
        if (!runsAgain) return this.leave(live, turn);
        const upTo = this.#runsAhead(turn.agent) ? Number.POSITIVE_INFINITY : live.durable;
        // Above the number of everything that it has streamed.
        const attempt = Math.max(turn.attempt + 1, turn.text?.attempt ?? 0);
        this.#run(live, turn.agent, withInterrupts(live, turn, upTo), attempt, {
          usedBefore: usedBy(turn),
          counted: turn.counted,
        });
        return;
      }
      case "time_limit":
        this.#fail(
          live,
          turn,
          "turn_timeout",
          `it did not answer within ${this.#parts.limits.turnTimeout} ms`,
        );
        return;
      case "cancelled":
      case "task_time_limit":
      case "shutdown":
      case "lost":
        // Its message stays in the mailbox (or is gone with the task); nothing is journaled.
        this.leave(live, turn);
        return;
      default:
        reason satisfies never;
    }
  }

  #fail(live: LiveTask, turn: RunningTurn, code: string, message: string): void {
    this.#finish(live, turn, {
      type: "fail_turn",
      agent: turn.agent,
      took: tookBy(turn),
      code,
      message,
      ...usageIn(turn),
    });
  }

  /** The agent stays busy until its answer is decided; otherwise it would take the same mail again. */
  #finish(live: LiveTask, turn: RunningTurn, command: Command, durable?: () => void): void {
    if (this.#isCurrent(live, turn)) {
      this.#parts.kernel.apply(live, command, new TurnHandling(this, live, turn, durable));
    }
  }

  /** The answer is decided. If actions follow, the turn continues with them. */
  decided(live: LiveTask, turn: RunningTurn): void {
    turn.text = undefined;
    if (hasCallsToRun(live, turn.agent)) this.#set(live, turn.agent, ACTING);
    else this.#free(live, turn.agent);
  }

  /**
   * The rules threw on its answer. Another turn would answer the same, so the turn fails; if the rules throw on that as
   * well, the task fails.
   */
  unanswerable(key: JournalKey, turn: RunningTurn, { message }: Error): void {
    const { kernel, loop } = this.#parts;
    const { agent } = turn;
    const reason = `its answer could not be processed: ${message}`;
    const fail: Command = { type: "fail", code: "internal_error", reason: `agent '${agent}': ${reason}` };
    // After the state has been reloaded, and before the agent runs again.
    loop.micro(() => {
      kernel.submit(
        key,
        { type: "fail_turn", agent, took: tookBy(turn), code: "internal_error", message: reason },
        {
          own: true,
          failed: (error) => hasCode(error, "decide_failed") && kernel.submit(key, fail, { own: true }),
        },
      );
    });
  }

  /** The answer is discarded: the agent is free. Its model calls still count. */
  leave(live: LiveTask, turn: RunningTurn): void {
    if (this.#isCurrent(live, turn)) this.#free(live, turn.agent);
    const { usage, counted } = usageIn(turn);
    if (usage === undefined) return;
    const used = usedIn({ usage, ...(counted !== undefined && { counted }) });
    if (used === undefined || isNothing(used)) return;
    this.#parts.kernel.submit(live.key, {
      type: "count_usage",
      agent: turn.agent,
      usage,
      ...(counted !== undefined && { counted }),
    });
  }

  async beginCall(live: LiveTask, turn: RunningTurn, call: PlannedCall): Promise<void> {
    // A stopped turn makes no further calls.
    if (!this.#isCurrent(live, turn)) throw turn.abortHandle.stopped ?? new Error("the turn has ended");
    const counted = await this.#parts.budgets.begin(live, turn.agent, call);
    if (counted !== undefined) turn.counted = sumOf(turn.counted ?? {}, counted);
    if (!this.#isCurrent(live, turn)) throw turn.abortHandle.stopped ?? new Error("the turn has ended");
  }

  #isCurrent(live: LiveTask, turn: RunningTurn): boolean {
    return !live.gone && live.work.doing.get(turn.agent) === turn;
  }

  #set({ work }: LiveTask, agent: string, doing: Doing): void {
    const before = work.doing.get(agent);
    if (before === undefined) this.#parts.scheduler.occupy(work);
    this.#thinking += thinks(doing) - thinks(before);
    work.doing.set(agent, doing);
  }

  #free(live: LiveTask, agent: string): void {
    const { work } = live;
    const doing = work.doing.get(agent);
    if (doing === undefined) return;
    work.doing.delete(agent);
    this.#thinking -= thinks(doing);
    this.#parts.scheduler.release(work);
    this.#suspects.ended(live.key, agent);
    this.#parts.scheduler.offer(work);
    this.#parts.freed(live.key);
  }

  delta(live: LiveTask, turn: RunningTurn, delta: string, call?: StreamedCall): void {
    // An ended turn streams nothing: the numbers of rolled back mail are used again for other mail.
    if (!this.#isCurrent(live, turn)) return;
    turn.text ??= new TurnText(live.key, turn.agent, turn.attempt);
    const piece = turn.text.add(delta, call);
    if (turn.text.isPublic) this.#publish(piece);
    else if (isDurable(live, turn)) this.#publishAll(turn.text);
  }

  reset(live: LiveTask, turn: RunningTurn): void {
    if (!this.#isCurrent(live, turn)) return;
    const mark = turn.text?.reset();
    // Nothing was published if the text is still held back.
    if (turn.text?.isPublic === true) this.#publish(mark);
  }

  #publishAll(text: TurnText): void {
    text.isPublic = true;
    for (const piece of text.all()) this.#publish(piece);
  }

  #publish(note: DeltaNotification | undefined): void {
    if (note !== undefined) this.#parts.bus.publish(deltaChannel(note.key), note);
  }
}

/** The callbacks for an answer. An object without closures, because one exists for every message until it is durable. */
class TurnHandling implements Handling<Tasks> {
  readonly #turns: Turns;
  readonly #live: LiveTask;
  readonly #turn: RunningTurn;
  readonly #durable: (() => void) | undefined;

  constructor(turns: Turns, live: LiveTask, turn: RunningTurn, durable: (() => void) | undefined) {
    this.#turns = turns;
    this.#live = live;
    this.#turn = turn;
    this.#durable = durable;
  }

  decided({ live }: TaskUnit): void {
    this.#turns.decided(live, this.#turn);
  }

  done(): void {
    this.#durable?.();
  }

  refused(): void {
    this.#turns.leave(this.#live, this.#turn);
  }

  failed(error: Error): void {
    this.#turns.leave(this.#live, this.#turn);
    if (hasCode(error, "decide_failed")) this.#turns.unanswerable(this.#live.key, this.#turn, error);
  }
}

const STARTING: Doing = { kind: "starting" };
const ACTING: Doing = { kind: "acting" };

/** In a paused task, calls wait for a person, who may take days: until then they need neither a slot nor memory. */
function hasCallsToRun({ state }: LiveTask, agent: string): boolean {
  const turn = state.agents.get(agent)?.turn;
  return turn !== undefined && (turn.running.length > 0 || state.status === "running");
}

function thinks(doing: Doing | undefined): number {
  return doing?.kind === "turn" ? 1 : 0;
}

function attemptOf({ state }: LiveTask, agent: string): number {
  return (state.agents.get(agent)?.recoveries ?? 0) + 1;
}

function tookBy({ mails }: RunningTurn): number[] {
  return mails.map((mail) => mail.number);
}

/** The same for a command that ends the turn. */
function usageIn(turn: RunningTurn): { usage?: Usage; counted?: Usage } {
  const usage = usedBy(turn);
  return usage === undefined ? {} : { usage, ...countedIn(turn) };
}

function countedIn({ counted }: RunningTurn): { counted?: Usage } {
  return counted === undefined ? {} : { counted };
}

/** The usage of a turn that has no answer. */
function usedBy({ usedBefore, usage }: RunningTurn): Usage | undefined {
  return usedBefore === undefined ? usage : sumOf(usedBefore, usage);
}

function isDurable(live: LiveTask, { mails }: RunningTurn): boolean {
  return mails.every((mail) => mail.number <= live.durable);
}

function hasMail({ state }: LiveTask, { agent, mails }: RunningTurn): boolean {
  const mailbox = state.agents.get(agent)?.mailbox ?? [];
  return state.status === "running" && mails.every((mail) => mailbox.includes(mail));
}

function withInterrupts(
  { state }: LiveTask,
  turn: RunningTurn,
  upTo: number,
): [MailboxItem, ...MailboxItem[]] {
  const [first, ...rest] = turn.mails;
  const waiting = state.agents.get(turn.agent)?.mailbox ?? [];
  const interrupts = waiting.filter(
    (mail) => mail.message.msg_type === "interrupt" && mail.number <= upTo && !turn.mails.includes(mail),
  );
  return [first, ...rest, ...interrupts];
}

function isThenable(value: TurnResult | Promise<TurnResult>): boolean {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
