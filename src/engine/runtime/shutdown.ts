/** Ends the runtime: after a grace period when it is closed, at once when the store has failed for good. */
import type { MailroomError, Report } from "../../base/index.js";
import type { Followers, Writer } from "../../journal/index.js";
import type { ActionRunner } from "./action-runner.js";
import type { CurrentDefinition } from "./current-definition.js";
import { closed } from "./errors.js";
import type { HeldTasks } from "./held-tasks.js";
import type { IdleWaiter } from "./idle-waiter.js";
import type { RuntimePhase } from "./phase.js";
import type { Recovery } from "./recovery.js";
import type { RemoteMailboxes } from "./remote.js";
import type { Scheduler } from "./scheduler.js";
import type { TaskTimers } from "./task-timers.js";
import type { TaskKernel, TaskWork } from "./task-work.js";
import type { Turns } from "./turns.js";
import type { Waiters } from "./waiters.js";

export interface ShutdownParts {
  readonly phase: RuntimePhase;
  readonly idle: IdleWaiter;
  readonly writer: Writer;
  readonly kernel: TaskKernel;
  readonly scheduler: Scheduler<TaskWork>;
  readonly turns: Turns;
  readonly actionRunner: ActionRunner;
  readonly remote: RemoteMailboxes;
  readonly recovery: Recovery;
  readonly timers: TaskTimers;
  readonly heldTasks: HeldTasks;
  readonly waiters: Waiters;
  readonly followers: Followers;
  readonly current: CurrentDefinition;
  readonly report: Report;
  readonly onFailed: ((error: MailroomError) => void) | undefined;
}

/** What was left when the runtime closed. */
export interface Closed {
  /** Decisions that the store could not write before the end; no caller was notified of them. */
  readonly unwritten: number;
}

/** Known results get this long to become durable, even if the grace period is shorter. */
const WRITING_TIME = 5_000;

export class Shutdown {
  readonly #parts: ShutdownParts;
  #closing: Promise<Closed> | undefined;

  constructor(parts: ShutdownParts) {
    this.#parts = parts;
    parts.writer.onState(() => this.#storeChanged());
  }

  close(grace: number): Promise<Closed> {
    this.#closing ??= this.#close(grace);
    return this.#closing;
  }

  async #close(grace: number): Promise<Closed> {
    const { phase, idle, writer, kernel, scheduler, turns, actionRunner, remote, current } = this.#parts;
    if (phase.isOpen) {
      phase.current = "closing";
      scheduler.stop();
      remote.close();
      const isQuiet = () => turns.thinking === 0 && this.#isWritten();
      await idle.until(isQuiet, grace);
      phase.parking = true;
      for (const live of [...kernel.all()]) turns.park(live);
      actionRunner.stopAll("shutdown");
      await idle.until(() => this.#isWritten(), Math.max(grace, WRITING_TIME));
    }
    const { undurable: unwritten } = writer;
    if (phase.current === "closing") this.#end("closed", closed());
    await current.released();
    return { unwritten };
  }

  #isWritten(): boolean {
    const { actionRunner, kernel, writer } = this.#parts;
    return actionRunner.size === 0 && kernel.unsettled === 0 && writer.undurable === 0;
  }

  /** The store is degraded, has recovered, or has failed for good. */
  #storeChanged(): void {
    const { phase, idle, writer, scheduler, report, onFailed } = this.#parts;
    const { failure, degraded } = writer;
    if (failure === undefined) {
      if (!degraded) scheduler.pump();
      return;
    }
    if (phase.current === "failed" || phase.current === "closed") return;
    report({ code: failure.code, message: failure.message, cause: failure.cause });
    this.#end("failed", failure);
    idle.check();
    onFailed?.(failure);
  }

  /** Nothing is decided any longer, and every waiting caller gets the error. */
  #end(phase: "closed" | "failed", error: MailroomError): void {
    const { kernel, scheduler, turns, actionRunner, remote, recovery, waiters, followers } = this.#parts;
    this.#parts.phase.current = phase;
    recovery.stop();
    scheduler.stop();
    remote.close();
    for (const live of [...kernel.all()]) turns.stopAll(live, phase === "failed" ? "lost" : "shutdown");
    actionRunner.stopAll("shutdown");
    kernel.stop(error);
    waiters.failAll(error);
    followers.close();
    this.#parts.timers.stop();
    this.#parts.heldTasks.stop();
  }
}
