/** The text that a turn has streamed so far. Neither journaled nor replayed after the turn. */
import type { JournalKey } from "../../journal/index.js";
import type { StreamedCall } from "../agent.js";
import type { DeltaNotification } from "./follow.js";

/** Characters that a turn may stream. The rest of a longer answer arrives with the answer. */
const MOST_STREAMED = 128 * 1024;

/** Characters that one more text counts as, so that many small ones are bounded too. */
const COST_OF_TEXT = 100;

interface GrowingText {
  readonly call: StreamedCall | undefined;
  text: string;
}

export class TurnText {
  readonly #key: JournalKey;
  readonly #agent: string;
  #attempt: number;
  /** By call; the agent's own text has no call. */
  #texts = new Map<string, GrowingText>();
  #left = MOST_STREAMED;
  /** Whether clients may see it: the mail of the turn is durable. */
  isPublic = false;

  constructor(key: JournalKey, agent: string, attempt: number) {
    this.#key = key;
    this.#agent = agent;
    this.#attempt = attempt;
  }

  /** Grows with every reset. */
  get attempt(): number {
    return this.#attempt;
  }

  /** @returns the piece to publish; undefined beyond the limit */
  add(delta: string, call: StreamedCall | undefined): DeltaNotification | undefined {
    const id = call?.id ?? "";
    let growing = this.#texts.get(id);
    const cost = delta.length + (growing === undefined ? COST_OF_TEXT : 0);
    if (delta === "" || this.#left < cost) {
      // Otherwise a later, shorter piece would follow a gap.
      if (delta !== "") this.#left = 0;
      return undefined;
    }
    this.#left -= cost;
    if (growing === undefined) {
      growing = { call: call && { id: call.id, name: call.name }, text: "" };
      this.#texts.set(id, growing);
    }
    const offset = growing.text.length;
    growing.text += delta;
    const isFirst = offset === 0 && this.#texts.size === 1;
    return this.#piece(growing, offset, delta, isFirst);
  }

  /** Everything so far, for clients that have seen nothing of it. */
  all(): DeltaNotification[] {
    return [...this.#texts.values()].map((growing, index) =>
      this.#piece(growing, 0, growing.text, index === 0),
    );
  }

  /** @returns the mark to publish; undefined if there was no text */
  reset(): DeltaNotification | undefined {
    if (this.#texts.size === 0) return undefined;
    this.#texts = new Map();
    this.#left = MOST_STREAMED;
    this.#attempt++;
    return { key: this.#key, agent: this.#agent, attempt: this.#attempt, offset: 0, delta: "", reset: true };
  }

  #piece({ call }: GrowingText, offset: number, delta: string, isFirst: boolean): DeltaNotification {
    // Clients may have pieces of an earlier attempt, which ended with its process.
    const reset = isFirst && this.#attempt > 1;
    return {
      key: this.#key,
      agent: this.#agent,
      attempt: this.#attempt,
      ...(call !== undefined && { call }),
      offset,
      delta,
      ...(reset && { reset }),
    };
  }
}
