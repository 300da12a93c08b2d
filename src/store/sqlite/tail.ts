/** Location of an append: the journal's last number with it, and its position. */
interface Place {
  readonly last: number;
  readonly position: number;
}

/**
 * The rows of journals that are not in the index yet, by journal and in order. The index would otherwise cost a page
 * of the log per append and live journal; written in sorted batches it costs a page per batch.
 */
export class Tail {
  readonly #places = new Map<number, Place[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(journal: number, place: Place): void {
    const places = this.#places.get(journal);
    if (places === undefined) this.#places.set(journal, [place]);
    else places.push(place);
    this.#size++;
  }

  /** Removes the newest row of a journal. */
  drop(journal: number): void {
    const places = this.#places.get(journal);
    if (places?.pop() === undefined) return;
    this.#size--;
    if (places.length === 0) this.#places.delete(journal);
  }

  /** Removes and returns up to `most` of a journal's oldest rows. */
  take(journal: number, most: number): readonly Place[] {
    const places = this.#places.get(journal) ?? [];
    const taken = places.slice(0, most);
    this.#replace(journal, places.slice(most));
    return taken;
  }

  /** Undoes a `take`. */
  putBack(journal: number, taken: readonly Place[]): void {
    this.#replace(journal, [...taken, ...(this.#places.get(journal) ?? [])]);
  }

  last(journal: number): number | undefined {
    return this.#places.get(journal)?.at(-1)?.last;
  }

  /** Rows of a journal with entries after a number. */
  after(journal: number, number: number): readonly Place[] {
    const places = this.#places.get(journal) ?? [];
    const from = places.findIndex(({ last }) => last > number);
    return from === -1 ? [] : places.slice(from);
  }

  #replace(journal: number, places: Place[]): void {
    this.#size += places.length - (this.#places.get(journal)?.length ?? 0);
    if (places.length === 0) this.#places.delete(journal);
    else this.#places.set(journal, places);
  }
}
