/** Waits until the runtime has nothing left to do, while it closes. */

import type { Clock } from "../../base/index.js";
import type { Loop, Writer } from "../../journal/index.js";
import type { RuntimePhase } from "./phase.js";

export interface IdleWaiterParts {
  readonly clock: Clock;
  readonly loop: Loop;
  readonly writer: Writer;
  readonly phase: RuntimePhase;
}

export class IdleWaiter {
  readonly #parts: IdleWaiterParts;
  #look: (() => void) | undefined;

  constructor(parts: IdleWaiterParts) {
    this.#parts = parts;
  }

  /** Something has ended. Cheap while nothing waits. */
  check(): void {
    this.#look?.();
  }

  /** Resolves when the condition holds, and after `ms` milliseconds at the latest. */
  until(holds: () => boolean, ms: number): Promise<void> {
    const { clock, loop, writer, phase } = this.#parts;
    return new Promise((resolve) => {
      const cancel = clock.after(ms, () => {
        this.#look = undefined;
        resolve();
      });
      let watched = false;
      // Some units belong to no task in memory, and some of them arrive late.
      const watchWriter = () => {
        if (watched || writer.undurable === 0) return;
        watched = true;
        void writer.drained().then(() => {
          watched = false;
          look();
        });
      };
      const check = () => {
        if (this.#look !== look) return;
        if (phase.current === "closing" && !holds()) return watchWriter();
        this.#look = undefined;
        cancel();
        resolve();
      };
      // After the current callback: the end of one piece of work may start another.
      const look = () => loop.micro(check);
      this.#look = look;
      look();
    });
  }
}
