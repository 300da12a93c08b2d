/** The answer of a round while it is written, as pieces of an artifact. */
import { systemClock } from "../../base/index.js";
import { DeltaBuffer, type DeltaNotification } from "../../engine/index.js";
import type { Mailroom } from "../../library/index.js";

/** Milliseconds in which pieces are joined. */
const EVERY = 100;

export interface AnswerChunk {
  readonly text: string;
  /** Whether it continues the chunk before; otherwise it replaces everything before. */
  readonly append: boolean;
}

export class GrowingAnswer {
  readonly #waiting = new DeltaBuffer();
  readonly #stop: () => void;
  #wake: () => void = () => {};
  #cancelTimer: (() => void) | undefined;
  /** The text that the caller has a part of. */
  #shown: { readonly agent: string; readonly id: string; length: number } | undefined;

  constructor({ runtime }: Mailroom, key: string) {
    const subscription = runtime.watchText(key, (note) => {
      const isAnswer = note.call?.name === "task_complete";
      if (!isAnswer && note.reset !== true) return;
      // The agent's own text is no answer.
      this.#waiting.add(isAnswer ? note : { ...note, delta: "" });
      this.#cancelTimer ??= systemClock.after(EVERY, () => {
        this.#cancelTimer = undefined;
        this.#wake();
      });
    });
    this.#stop = () => subscription.close();
  }

  /** Resolves to undefined when there are chunks to take. */
  changed(): Promise<undefined> {
    if (!this.#waiting.isEmpty && this.#cancelTimer === undefined) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#wake = () => resolve(undefined);
    });
  }

  take(): AnswerChunk[] {
    return this.#waiting.take().flatMap((note) => this.#chunk(note) ?? []);
  }

  close(): void {
    this.#stop();
    this.#cancelTimer?.();
  }

  #chunk({ agent, call, offset, delta, reset }: DeltaNotification): AnswerChunk | undefined {
    const shown = this.#shown;
    if (reset === true && delta === "") {
      if (shown?.agent !== agent) return undefined;
      this.#shown = undefined;
      return { text: "", append: false };
    }
    const id = call?.id ?? "";
    if (offset === 0) {
      this.#shown = { agent, id, length: delta.length };
      return { text: delta, append: false };
    }
    // Other pieces follow a gap: the finished answer replaces them.
    if (shown?.agent !== agent || shown.id !== id || shown.length !== offset) return undefined;
    shown.length += delta.length;
    return { text: delta, append: true };
  }
}
