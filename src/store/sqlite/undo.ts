/**
 * What a connection keeps in memory about its tables changes together with them, inside the transaction. This is the
 * way back when the transaction, or the part of it behind a savepoint, is rolled back.
 */
export class Undo {
  readonly #steps: (() => void)[] = [];

  /** To be handed to `backTo`. */
  get mark(): number {
    return this.#steps.length;
  }

  push(step: () => void): void {
    this.#steps.push(step);
  }

  backTo(mark: number): void {
    while (this.#steps.length > mark) this.#steps.pop()?.();
  }

  /** The transaction is durable: there is no way back. */
  clear(): void {
    this.#steps.length = 0;
  }
}
