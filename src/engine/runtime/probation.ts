/**
 * Turns that the end of a process cut short more than once start one at a time. One of them may be what ends the
 * process (decisions B12); were they started together, it would take the innocent ones down with it until all of them
 * count as poison.
 */
import type { Clock } from "../ports.js";
import type { LiveTask } from "./live-task.js";

/** Milliseconds after which a turn that is still under way no longer keeps the next one waiting. */
const LONGEST_PROBATION = 1_000;

export class Probation {
  readonly #clock: Clock;
  readonly #offer: (task: LiveTask) => void;
  readonly #waiting = new Set<LiveTask>();
  #current: { readonly task: LiveTask; readonly agent: string; readonly cancelTimer: () => void } | undefined;

  /** `offer` is called for each task that was kept waiting when there is room for the next turn. */
  constructor(clock: Clock, offer: (task: LiveTask) => void) {
    this.#clock = clock;
    this.#offer = offer;
  }

  /** Whether the agent's turn may start now; if not, its task is offered again later. */
  admits(task: LiveTask, agent: string): boolean {
    if (this.#current === undefined || !isSuspect(task, agent)) return true;
    this.#waiting.add(task);
    return false;
  }

  begin(task: LiveTask, agent: string): void {
    if (!isSuspect(task, agent)) return;
    const cancelTimer = this.#clock.after(LONGEST_PROBATION, () => this.#end());
    this.#current = { task, agent, cancelTimer };
  }

  /** Something has happened in the task: its turn on probation may be over. */
  check(task: LiveTask): void {
    const current = this.#current;
    if (current?.task === task && (task.lost || !task.isStarted(current.agent))) this.#end();
  }

  #end(): void {
    this.#current?.cancelTimer();
    this.#current = undefined;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const task of waiting) this.#offer(task);
  }
}

/** Its turn was recovered before, did not get anywhere, and has not been started in this process. */
function isSuspect(task: LiveTask, agent: string): boolean {
  return !task.recovering.has(agent) && (task.state.agents.get(agent)?.recoveries ?? 0) > 0;
}
