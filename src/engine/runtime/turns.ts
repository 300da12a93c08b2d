/** Asks agents: starts their turns, keeps their time, and brings what they answer back to the engine. */
import type { Bus, Clock, Problem } from "../../journal/ports.js";
import { type AgentAnswer, type ToolChoice, type Turn, TurnHeldError } from "../agent.js";
import type { Command } from "../commands.js";
import type { InstanceId, JournalKey } from "../ports.js";
import { comesBefore, type Mail } from "../state.js";
import { describe } from "./actions.js";
import { copyAnswer } from "./answers.js";
import type { Equipment } from "./equipment.js";
import { type DeltaNote, deltaChannel } from "./follow.js";
import type { RuntimeLimits } from "./limits.js";
import type { Scheduler } from "./scheduler.js";
import { StoppedError, Stopper, type StopReason } from "./stopper.js";
import { Suspects } from "./suspects.js";
import type { Doing, LiveTask, RunningTurn, TaskKernel, TaskUnit, TaskWork } from "./task-work.js";
import { TurnView } from "./turn-view.js";

export interface TurnsParts {
  readonly kernel: TaskKernel;
  readonly scheduler: Scheduler<TaskWork>;
  readonly equipment: Equipment;
  readonly clock: Clock;
  readonly bus: Bus;
  readonly limits: RuntimeLimits;
  /** Units of the whole process that are not durable. */
  readonly undurable: () => number;
  readonly isOpen: () => boolean;
  readonly paramsOf: (instance: InstanceId) => Turn["params"];
  /** An agent of this task is free again. */
  readonly freed: (key: JournalKey) => void;
  readonly report: (problem: Problem) => void;
}

interface NextTurn {
  readonly agent: string;
  readonly mails: readonly [Mail, ...Mail[]];
}

/** Characters of an answer that are kept back while the mail that it answers is not durable. */
const MOST_KEPT_BACK = 64 * 1024;

export class Turns {
  readonly #parts: TurnsParts;
  readonly #suspects: Suspects;
  #thinking = 0;

  constructor(parts: TurnsParts) {
    this.#parts = parts;
    this.#suspects = new Suspects(parts.clock, (key) => {
      const live = parts.kernel.peek(key);
      if (live !== undefined) parts.scheduler.offer(live.work);
    });
  }

  /** How many agents are being asked right now. */
  get thinking(): number {
    return this.#thinking;
  }

  /** Starts the turn that is next in this task. False if there is none. */
  start(live: LiveTask): boolean {
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
    // A turn with this message may have been what ended the last process: that is counted first, durably.
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
      // It was counted and does not start here any more: the next process must not count it again.
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

  /** An interrupt reached these agents. Those that run ahead of the disk hear of it when it is decided. */
  interrupt(live: LiveTask, agents: readonly string[], when: "decided" | "durable"): void {
    for (const agent of agents) {
      const doing = live.work.doing.get(agent);
      if (doing?.kind !== "turn") continue;
      if (this.#runsAhead(agent) === (when === "decided")) doing.stopper.stop("interrupt");
    }
  }

  stopAll(live: LiveTask, reason: StopReason): void {
    for (const doing of [...live.work.doing.values()]) if (doing.kind === "turn") doing.stopper.stop(reason);
  }

  /**
   * Closing: turns under way are stopped, and everything that the next process starts is journaled as parked, so that
   * starting it is no recovery.
   */
  park(live: LiveTask): void {
    for (const doing of [...live.work.doing.values()])
      if (doing.kind === "turn") doing.stopper.stop("shutdown");
    if (live.state.status !== "running") return;
    for (const [agent, { mailbox, turn, parked }] of live.state.agents) {
      const [head] = mailbox;
      if (head === undefined || turn !== undefined || parked) continue;
      if (live.work.doing.get(agent) === STARTING) continue;
      if (this.#parts.equipment.mind(agent) !== undefined) this.#park(live, agent, [head.number]);
    }
  }

  #park(live: LiveTask, agent: string, took: readonly number[]): void {
    this.#parts.kernel.apply(live, { type: "park", agent, took }, { own: true });
  }

  /** The task's state is about to be read again: nothing of what agents are doing counts any more. */
  suspend(live: LiveTask): void {
    for (const [agent, doing] of [...live.work.doing]) {
      this.#free(live, agent);
      if (doing.kind === "turn") doing.stopper.stop("lost");
    }
  }

  /** An agent's calls may all be carried out by now, or one that came from the store may be in the middle of them. */
  settle(live: LiveTask): void {
    const { doing } = live.work;
    for (const [agent, { kind }] of doing) {
      if (kind === "acting" && live.state.agents.get(agent)?.turn === undefined) this.#free(live, agent);
    }
  }

  /** Agents that were carrying out calls when the task was read from the store hold their slots. */
  takeUp(live: LiveTask): void {
    for (const [agent, { turn }] of live.state.agents) {
      if (turn !== undefined) this.#set(live, agent, ACTING);
    }
  }

  /** The mail that these turns work on may be durable now. */
  flushDeltas(live: LiveTask): void {
    for (const doing of live.work.doing.values()) {
      if (doing.kind !== "turn" || doing.deltas === undefined || !isDurable(live, doing)) continue;
      const { deltas } = doing;
      doing.deltas = undefined;
      this.#publish(live.key, doing.agent, deltas);
    }
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
      return mail !== undefined && this.#mayTake(live, state.entrypoint, mail)
        ? { agent: state.entrypoint, mails: [mail] }
        : undefined;
    }
    let best: { agent: string; head: Mail } | undefined;
    for (const [agent, { mailbox }] of state.agents) {
      const head = state.manual ? mailbox.find((mail) => mail.manual !== undefined) : mailbox[0];
      if (head === undefined || (best !== undefined && !comesBefore(head, best.head))) continue;
      if (this.#mayTake(live, agent, head)) best = { agent, head };
    }
    if (best === undefined) return undefined;
    const { agent, head } = best;
    if (!state.manual) return { agent, mails: [head] };
    // A manual step takes everything that has gathered.
    const mailbox = state.agents.get(agent)?.mailbox ?? [];
    const [first = head, ...rest] = mailbox.filter((mail) => mail !== head && mail.number <= live.durable);
    return { agent, mails: first === head ? [head] : [first, ...rest, head] };
  }

  #mayTake(live: LiveTask, agent: string, mail: Mail): boolean {
    const { limits, equipment, undurable } = this.#parts;
    if (live.work.doing.has(agent) || live.state.agents.get(agent)?.turn !== undefined) return false;
    if (equipment.mind(agent) === undefined) return false;
    if (this.#isSuspect(live, agent) && !this.#suspects.admits(live.key)) return false;
    // Durable is the mail, and that the task runs.
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
    return this.#parts.limits.speculation && this.#parts.equipment.speculates(agent);
  }

  /** Its turn was recovered before, did not get anywhere, and has not been started in this process. */
  #isSuspect({ state, work }: LiveTask, agent: string): boolean {
    return !work.recovered.has(agent) && (state.agents.get(agent)?.recoveries ?? 0) > 0;
  }

  // --- running ----------------------------------------------------------------------------------------------------

  #run(live: LiveTask, agent: string, mails: readonly [Mail, ...Mail[]], attempt: number): void {
    const { equipment, clock, limits } = this.#parts;
    const mind = equipment.mind(agent);
    const agentEquipment = equipment.agent(agent);
    if (mind === undefined || agentEquipment === undefined) return this.#free(live, agent);
    const { state, work } = live;
    const params = this.#parts.paramsOf(state.instance);
    const stopper = new Stopper();
    const turn: RunningTurn = { kind: "turn", agent, mails, stopper, attempt, params, deltas: undefined };
    this.#set(live, agent, turn);
    const isLast = state.lastTurn !== undefined && mails.some((mail) => mail.number === state.lastTurn);
    const toolChoice: ToolChoice = isLast ? { name: "task_complete" } : state.manual ? "auto" : "required";
    const view = new TurnView({
      state,
      facts: work.facts,
      agent,
      mails,
      tools: isLast ? agentEquipment.lastTurn : agentEquipment.tools,
      toolChoice,
      peers: agentEquipment.peers,
      params,
      attempt,
      stopper,
      emitDelta: (delta) => this.#delta(live, turn, delta),
    });
    let answer: AgentAnswer | Promise<AgentAnswer>;
    let comesLater: boolean;
    try {
      answer = mind(view);
      comesLater = isThenable(answer);
    } catch (error) {
      this.#failed(live, turn, error);
      return;
    }
    if (!comesLater) {
      this.#answered(live, turn, answer);
      return;
    }
    const cancelTimer = clock.after(limits.turnTime, () => stopper.stop("time_limit"));
    stopper.race(Promise.resolve(answer)).then(
      (result) => {
        cancelTimer();
        if (result instanceof StoppedError) this.#stopped(live, turn, result);
        else this.#answered(live, turn, result);
      },
      (error: unknown) => {
        cancelTimer();
        this.#failed(live, turn, error);
      },
    );
  }

  #answered(live: LiveTask, turn: RunningTurn, answer: unknown): void {
    const { stopped } = turn.stopper;
    if (stopped !== undefined) {
      this.#stopped(live, turn, stopped);
      return;
    }
    let copy: AgentAnswer;
    try {
      copy = copyAnswer(answer, "its answer");
    } catch (error) {
      this.#failed(live, turn, error);
      return;
    }
    this.#finish(live, turn, { type: "answer", agent: turn.agent, took: tookBy(turn), answer: copy });
  }

  #failed(live: LiveTask, turn: RunningTurn, error: unknown): void {
    const { report, kernel, paramsOf } = this.#parts;
    const { stopped } = turn.stopper;
    if (stopped !== undefined) {
      this.#stopped(live, turn, stopped);
      return;
    }
    const message = describe(error);
    if (!(error instanceof TurnHeldError)) {
      report({ code: "agent_error", message, task: live.key, cause: error });
      this.#fail(live, turn, "agent_error", message);
      return;
    }
    report({ code: error.code, message, task: live.key, cause: error });
    // The task stands still already: there is nothing to journal, and this agent is asked again when it goes on.
    if (live.state.status !== "running") return this.#leave(live, turn);
    const hold: Command = {
      type: "hold_turn",
      agent: turn.agent,
      took: tookBy(turn),
      reason: error.reason,
      message: error.message,
    };
    this.#finish(live, turn, hold, () => {
      // What was missing may have come while the agent was looking for it, and then nobody brings it again.
      if (paramsOf(live.work.instance) !== turn.params) kernel.submit(live.key, { type: "retry" });
    });
  }

  #stopped(live: LiveTask, turn: RunningTurn, { reason }: StoppedError): void {
    switch (reason) {
      case "interrupt": {
        // Asked again, with the interrupt appended; unless its mail is gone, or nothing may start now.
        const goesOn =
          this.#isCurrent(live, turn) && !live.held && this.#parts.isOpen() && hasMail(live, turn);
        if (!goesOn) return this.#leave(live, turn);
        const upTo = this.#runsAhead(turn.agent) ? Number.POSITIVE_INFINITY : live.durable;
        this.#run(live, turn.agent, withInterrupts(live, turn, upTo), turn.attempt + 1);
        return;
      }
      case "time_limit":
        this.#fail(live, turn, "turn_timeout", `it did not answer within ${this.#parts.limits.turnTime} ms`);
        return;
      case "cancelled":
      case "task_time_limit":
      case "shutdown":
      case "lost":
        // Its message stays where it is (or is gone with the task); nothing is journaled.
        this.#leave(live, turn);
        return;
      default:
        reason satisfies never;
    }
  }

  #fail(live: LiveTask, turn: RunningTurn, code: string, message: string): void {
    this.#finish(live, turn, { type: "fail_turn", agent: turn.agent, took: tookBy(turn), code, message });
  }

  /** The agent stays busy until its answer is decided, or it would take the same mail again. */
  #finish(live: LiveTask, turn: RunningTurn, command: Command, durable?: () => void): void {
    if (!this.#isCurrent(live, turn)) return;
    const { agent } = turn;
    this.#parts.kernel.apply(live, command, {
      decided: ({ live: now }: TaskUnit) => {
        if (turn.deltas !== undefined) turn.deltas = undefined;
        // Where actions follow, the turn goes on with them.
        if (now.state.agents.get(agent)?.turn !== undefined) this.#set(now, agent, ACTING);
        else this.#free(now, agent);
      },
      refused: () => this.#leave(live, turn),
      failed: () => this.#leave(live, turn),
      ...(durable !== undefined && { done: durable }),
    });
  }

  #leave(live: LiveTask, turn: RunningTurn): void {
    if (this.#isCurrent(live, turn)) this.#free(live, turn.agent);
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

  #delta(live: LiveTask, turn: RunningTurn, delta: string): void {
    // Of a turn that is over nothing is told: the numbers of mail that was taken back are given to other mail.
    if (!this.#isCurrent(live, turn)) return;
    if (isDurable(live, turn) && turn.deltas === undefined) {
      this.#publish(live.key, turn.agent, delta);
      return;
    }
    const kept = turn.deltas ?? "";
    if (kept.length + delta.length <= MOST_KEPT_BACK) turn.deltas = kept + delta;
  }

  #publish(key: JournalKey, agent: string, delta: string): void {
    const note: DeltaNote = { key, agent, delta };
    this.#parts.bus.publish(deltaChannel(key), note);
  }
}

const STARTING: Doing = { kind: "starting" };
const ACTING: Doing = { kind: "acting" };

function thinks(doing: Doing | undefined): number {
  return doing?.kind === "turn" ? 1 : 0;
}

function attemptOf({ state }: LiveTask, agent: string): number {
  return (state.agents.get(agent)?.recoveries ?? 0) + 1;
}

function tookBy({ mails }: RunningTurn): number[] {
  return mails.map((mail) => mail.number);
}

function isDurable(live: LiveTask, { mails }: RunningTurn): boolean {
  return mails.every((mail) => mail.number <= live.durable);
}

function hasMail({ state }: LiveTask, { agent, mails }: RunningTurn): boolean {
  const mailbox = state.agents.get(agent)?.mailbox ?? [];
  return state.status === "running" && mails.every((mail) => mailbox.includes(mail));
}

function withInterrupts({ state }: LiveTask, turn: RunningTurn, upTo: number): [Mail, ...Mail[]] {
  const [first, ...rest] = turn.mails;
  const waiting = state.agents.get(turn.agent)?.mailbox ?? [];
  const interrupts = waiting.filter(
    (mail) => mail.message.msg_type === "interrupt" && mail.number <= upTo && !turn.mails.includes(mail),
  );
  return [first, ...rest, ...interrupts];
}

function isThenable(value: AgentAnswer | Promise<AgentAnswer>): boolean {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
