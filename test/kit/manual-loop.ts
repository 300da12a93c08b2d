/** An event loop that runs one turn at a time. */
import type { Loop } from "../../src/journal/ports.js";

export class ManualLoop implements Loop {
  #waiting: (() => void)[] = [];

  soon(callback: () => void): void {
    this.#waiting.push(callback);
  }

  micro(callback: () => void): void {
    queueMicrotask(callback);
  }

  /** Runs one turn. Returns whether there was work. */
  run(): boolean {
    const due = this.#waiting;
    this.#waiting = [];
    for (const callback of due) callback();
    return due.length > 0;
  }
}
