/** Says once that the server closes. An AbortSignal would do, but thousands may listen, and it forgets them one by one. */
export class Closing {
  readonly #listeners = new Set<() => void>();
  #begun = false;

  get begun(): boolean {
    return this.#begun;
  }

  /** Calls back when it begins; at once if it has begun. The returned function takes the listener away. */
  listen(listener: () => void): () => void {
    if (this.#begun) {
      listener();
      return () => {};
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}
