/** Signals once that the server closes. Replaces an AbortSignal, which removes thousands of listeners slowly. */
export class ShutdownSignal {
  readonly #listeners = new Set<() => void>();
  #begun = false;

  get begun(): boolean {
    return this.#begun;
  }

  /**
   * Calls back when the shutdown begins, or at once if it already has. Returns a function that removes the listener.
   */
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
