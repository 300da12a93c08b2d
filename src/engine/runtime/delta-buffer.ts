/** Pieces of text that wait for a reader: joined, and bounded (law 8). */
import type { Entry } from "../task/entries.js";
import type { DeltaNotification } from "./follow.js";

/** Characters that may wait for one reader. Of what is more, the oldest text is left out. */
const MOST_WAITING = 256 * 1024;

const COST_OF_PIECE = 100;

export class DeltaBuffer {
  #pieces = new Map<string, DeltaNotification>();
  #size = 0;

  get isEmpty(): boolean {
    return this.#pieces.size === 0;
  }

  add(note: DeltaNotification): void {
    if (note.reset === true) this.#dropAgent(note.agent);
    const id = `${note.agent}\n${note.call?.id ?? ""}`;
    const before = this.#pieces.get(id);
    // Text that does not continue what waits replaces it: it is of another turn, or a part was left out.
    const continues =
      before !== undefined &&
      before.attempt === note.attempt &&
      before.offset + before.delta.length === note.offset;
    if (before !== undefined && !continues) this.#drop(id, before);
    const joined = continues ? { ...before, delta: before.delta + note.delta } : note;
    this.#pieces.set(id, joined);
    this.#size += note.delta.length + (continues ? 0 : COST_OF_PIECE);
    for (const [oldest, piece] of this.#pieces) {
      if (this.#size <= MOST_WAITING) break;
      this.#drop(oldest, piece);
    }
  }

  /** An entry follows: text that it replaces is not sent after it. */
  replaceBy(entry: Entry): void {
    switch (entry.t) {
      case "turn":
      case "turn_failed":
        this.#dropAgent(entry.agent);
        return;
      case "completed":
      case "failed":
      case "cancelled":
        this.take();
        return;
      default:
    }
  }

  take(): DeltaNotification[] {
    const taken = [...this.#pieces.values()];
    this.#pieces = new Map();
    this.#size = 0;
    return taken;
  }

  #dropAgent(agent: string): void {
    for (const [id, piece] of this.#pieces) if (piece.agent === agent) this.#drop(id, piece);
  }

  #drop(id: string, { delta }: DeltaNotification): void {
    this.#pieces.delete(id);
    this.#size -= delta.length + COST_OF_PIECE;
  }
}
