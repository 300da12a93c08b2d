/**
 * Cached state changes together with the tables, inside the transaction. This reverts it when the transaction, or the
 * part after a savepoint, is rolled back.
 */
export class Undo {
  readonly #steps: (() => void)[] = [];

  /** Pass it to `backTo`. */
  get mark(): number {
    return this.#steps.length;
  }

  push(step: () => void): void {
    this.#steps.push(step);
  }

  backTo(mark: number): void {
    while (this.#steps.length > mark) this.#steps.pop()?.();
  }

  /** The transaction is durable: forget the steps. */
  clear(): void {
    this.#steps.length = 0;
  }
}
