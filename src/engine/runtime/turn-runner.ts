/** Asks agents: starts their turns, keeps their time, and brings what they answer back to the engine. */
import { isRecord } from "../../mail/record.js";
import { type AgentAnswer, type ToolChoice, TurnHeldError } from "../agent.js";
import type { Command } from "../commands.js";
import type { Mail } from "../state.js";
import { describe } from "./actions.js";
import type { Core } from "./core.js";
import type { Equipment } from "./equipment.js";
import { type DeltaNote, deltaChannel } from "./follow.js";
import type { LiveTask, RunningTurn } from "./live-task.js";
import type { Probation } from "./probation.js";
import type { Scheduler } from "./scheduler.js";
import { StoppedError, Stopper } from "./stopper.js";
import { TurnView } from "./turn-view.js";

export class TurnRunner {
  readonly #core: Core;
  readonly #equipment: Equipment;
  readonly #probation: Probation;
  readonly #scheduler: Pick<Scheduler, "occupy" | "giveBack">;

  constructor(parts: {
    core: Core;
    equipment: Equipment;
    probation: Probation;
    scheduler: Pick<Scheduler, "occupy" | "giveBack">;
  }) {
    this.#core = parts.core;
    this.#equipment = parts.equipment;
    this.#probation = parts.probation;
    this.#scheduler = parts.scheduler;
  }

  /** Starts the turn that is next in this task. False if there is none. */
  start(task: LiveTask): boolean {
    const next = task.nextRunnable(
      (agent) => this.#equipment.mind(agent) !== undefined && this.#probation.admits(task, agent),
    );
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
    this.#core.apply(task, { type: "recover", agent, took }, () => {
      task.starting.delete(agent);
      const current = task.state.agents.get(agent);
      const there = !task.lost && mails.every((mail) => current?.mailbox.includes(mail));
      if (there && this.#core.phase === "open") {
        this.#run(task, agent, mails, (current?.recoveries ?? 0) + 1);
      }
    });
    return true;
  }

  #run(task: LiveTask, agent: string, mails: readonly [Mail, ...Mail[]], attempt: number): void {
    const mind = this.#equipment.mind(agent);
    const equipment = this.#equipment.agent(agent);
    if (mind === undefined || equipment === undefined) return;
    const { state } = task;
    const params = this.#core.paramsOf(state.instance);
    const turn: RunningTurn = { agent, mails, stopper: new Stopper(), attempt, params };
    task.turns.set(agent, turn);
    const isLast = state.lastTurn !== undefined && mails.some((mail) => mail.number === state.lastTurn);
    const toolChoice: ToolChoice = isLast ? { name: "task_complete" } : state.manual ? "auto" : "required";
    const view = new TurnView({
      state,
      facts: task.facts,
      agent,
      mails,
      tools: isLast ? equipment.lastTurn : equipment.tools,
      toolChoice,
      peers: equipment.peers,
      params,
      attempt,
      stopper: turn.stopper,
      emitDelta: (delta) => {
        const note: DeltaNote = { key: task.key, agent, delta };
        this.#core.bus.publish(deltaChannel(task.key), note);
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
    const cancelTimer = this.#core.clock.after(this.#core.limits.turnTime, () =>
      turn.stopper.stop("time_limit"),
    );
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
    const message = describe(error);
    if (error instanceof TurnHeldError) {
      this.#core.report({ code: error.code, message, task: task.key, cause: error });
      this.#hold(task, turn, error);
      return;
    }
    this.#core.report({ code: "agent_error", message, task: task.key, cause: error });
    this.#fail(task, turn, "agent_error", message);
  }

  #hold(task: LiveTask, turn: RunningTurn, { reason, message }: TurnHeldError): void {
    // The task stands still already: there is nothing to journal, and this agent is asked again when it goes on.
    if (task.state.status !== "running") return this.#leave(task, turn);
    const { agent, mails, params } = turn;
    const took = mails.map((mail) => mail.number);
    this.#finish(task, turn, { type: "hold_turn", agent, took, reason, message }, () => {
      // What was missing may have come while the agent was looking for it, and then nobody brings it again.
      if (this.#core.paramsOf(task.state.instance) !== params) this.#core.apply(task, { type: "retry" });
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
        this.#fail(task, turn, "turn_timeout", `it did not answer within ${this.#core.limits.turnTime} ms`);
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

  #fail(task: LiveTask, turn: RunningTurn, code: string, message: string): void {
    const took = turn.mails.map((mail) => mail.number);
    this.#finish(task, turn, { type: "fail_turn", agent: turn.agent, took, code, message });
  }

  #finish(task: LiveTask, turn: RunningTurn, command: Command, onCommitted?: () => void): void {
    const applied = this.#core.apply(task, command, () => {
      task.turns.delete(turn.agent);
      onCommitted?.();
    });
    if (!applied) this.#leave(task, turn);
    // Where actions follow, the turn goes on with them.
    else if (task.state.agents.get(turn.agent)?.turn === undefined)
      this.#scheduler.giveBack(task, turn.agent);
  }

  #leave(task: LiveTask, turn: RunningTurn): void {
    if (task.turns.get(turn.agent) === turn) task.turns.delete(turn.agent);
    this.#core.settle(task);
  }
}

function hasMail(task: LiveTask, { agent, mails }: RunningTurn): boolean {
  const mailbox = task.state.agents.get(agent)?.mailbox ?? [];
  return mails.every((mail) => mailbox.includes(mail));
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
