/**
 * Reads from the journal what became of a message (decisions B6): an ending releases those whose message an agent has
 * taken; whoever's message still waits in a mailbox waits for the next one. The same rule as that of the waiters in
 * memory, so that an answer can be had again after a restart.
 */
import type { Entry } from "../entries.js";
import { type Outcome, outcomeOf } from "./waiters.js";

/** Where a round begins: the number that a person's message or answer has in the journal. */
export interface RoundStart {
  readonly number: number;
}

export class Round {
  readonly #start: number;
  #taken = false;

  constructor({ number }: RoundStart) {
    this.#start = number;
  }

  /** To be shown every entry from the round's first on, in order. The outcome, once an entry ends the round. */
  see(number: number, entry: Entry): Outcome | undefined {
    if (number < this.#start) return undefined;
    // What is not a message (the answer to a breakpoint), or one to other swarms alone, waits in no mailbox.
    if (number === this.#start && (entry.t !== "sent" || entry.to.length === 0)) this.#taken = true;
    switch (entry.t) {
      case "turn":
      case "turn_failed":
        if (entry.took.includes(this.#start)) this.#taken = true;
        return undefined;
      case "cancelled":
        // Empties every mailbox.
        return outcomeOf(entry);
      case "paused":
        return this.#taken || entry.reason !== undefined ? outcomeOf(entry) : undefined;
      default:
        return this.#taken ? outcomeOf(entry) : undefined;
    }
  }
}
