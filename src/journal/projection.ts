/**
 * State derived from journals by a module that does not own them: read from the store as far as it is committed, and
 * cached.
 */
import { byNumber, pages } from "./pages.js";
import type { JournalKey, JournalRow, Loop } from "./ports.js";

export interface ProjectionParts<State, Entry> {
  readonly read: (
    key: JournalKey,
    options: { after: number; limit: number; characters: number },
  ) => Promise<JournalRow[]>;
  readonly loop: Loop;
  /** Limit on cached states; the least recently used are dropped. */
  readonly most: number;
  /** The last number that a state includes. */
  readonly number: (state: State) => number;
  /**
   * Adds entries that were stored together, in place. Without a state they begin the journal; returns `undefined` if
   * the journal is of another kind.
   */
  readonly add: (state: State | undefined, entries: readonly Entry[], first: number) => State | undefined;
}

export class Projection<State, Entry> {
  readonly #parts: ProjectionParts<State, Entry>;
  /** Least recently used first. */
  readonly #held = new Map<JournalKey, State>();
  readonly #reading = new Map<JournalKey, Promise<State | undefined>>();

  constructor(parts: ProjectionParts<State, Entry>) {
    this.#parts = parts;
  }

  /** As far as the journal is committed. */
  async get(key: JournalKey): Promise<State | undefined> {
    // The caller must see what is committed now: a running read may have started too early.
    await this.#reading.get(key);
    const known = this.#reading.get(key);
    if (known !== undefined) return known;
    const reading = this.#read(key).finally(() => this.#reading.delete(key));
    this.#reading.set(key, reading);
    return reading;
  }

  /** At least up to a number; a cached state suffices if it reaches that far. */
  async upTo(key: JournalKey, number: number): Promise<State | undefined> {
    const held = this.#held.get(key);
    return held !== undefined && this.#parts.number(held) >= number ? held : this.get(key);
  }

  /** Adds entries of one stored row. If they follow the cached state, nothing is read. */
  async including(key: JournalKey, entries: readonly Entry[], first: number): Promise<State | undefined> {
    const held = this.#held.get(key);
    if (held !== undefined && this.#parts.number(held) === first - 1) this.#parts.add(held, entries, first);
    return this.upTo(key, first + entries.length - 1);
  }

  forget(key: JournalKey): void {
    this.#held.delete(key);
  }

  async #read(key: JournalKey): Promise<State | undefined> {
    const { read, loop, most, number } = this.#parts;
    let state = this.#held.get(key);
    const after = state === undefined ? 0 : number(state);
    const readPage = (from: number, limit: number, characters: number) =>
      read(key, { after: from, limit, characters });
    for await (const rows of pages(readPage, after, byNumber, loop)) {
      for (const row of rows) {
        state = this.#add(state, row);
        if (state === undefined) return undefined;
      }
    }
    if (state === undefined) return undefined;
    this.#held.delete(key);
    this.#held.set(key, state);
    const [oldest] = this.#held.keys();
    if (this.#held.size > most && oldest !== undefined) this.#held.delete(oldest);
    return state;
  }

  /** Skips entries that the state already includes: a row is found by any number within it. */
  #add(state: State | undefined, { data, first }: JournalRow): State | undefined {
    const entries: Entry[] = JSON.parse(data);
    const seen = state === undefined ? 0 : this.#parts.number(state);
    if (seen < first) return this.#parts.add(state, entries, first);
    return seen < first + entries.length - 1
      ? this.#parts.add(state, entries.slice(seen - first + 1), seen + 1)
      : state;
  }
}
