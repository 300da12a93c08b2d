/** Waits until nothing is under way in any task. */
import type { Clock } from "../ports.js";
import type { LiveTask } from "./live-task.js";

export class Quiet {
  readonly #clock: Clock;
  readonly #tasks: () => Iterable<LiveTask>;
  #onQuiet: (() => void) | undefined;

  constructor(clock: Clock, tasks: () => Iterable<LiveTask>) {
    this.#clock = clock;
    this.#tasks = tasks;
  }

  /** Resolves when it is quiet, and after `ms` milliseconds at the latest. */
  async within(ms: number): Promise<void> {
    if (this.#isQuiet()) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(ms, () => {
        this.#onQuiet = undefined;
        resolve();
      });
      this.#onQuiet = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Something came to an end. Costs nothing while nobody waits. */
  check(): void {
    if (this.#onQuiet === undefined || !this.#isQuiet()) return;
    const onQuiet = this.#onQuiet;
    this.#onQuiet = undefined;
    onQuiet();
  }

  #isQuiet(): boolean {
    for (const task of this.#tasks()) {
      if (task.turns.size > 0 || task.actions.size > 0 || task.uncommitted > 0) return false;
    }
    return true;
  }
}
