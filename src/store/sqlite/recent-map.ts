/**
 * A bounded map that drops approximately the least recently used entries: entries live in two generations, and when the
 * young one is full the old one is dropped. A hit in the young generation costs one lookup and no reordering, which is
 * why it is preferred here to an exact LRU.
 */
export class RecentMap<Key, Value> {
  readonly #half: number;
  #young = new Map<Key, Value>();
  #old = new Map<Key, Value>();

  constructor(capacity: number) {
    this.#half = Math.max(1, Math.floor(capacity / 2));
  }

  get(key: Key): Value | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: Key, value: Value): void {
    if (this.#young.size >= this.#half && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }

  delete(key: Key): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** At most the capacity; an entry that is in both generations counts twice. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }
}
