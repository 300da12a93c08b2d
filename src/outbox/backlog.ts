/**
 * Counts waiting items per target, for callers that limit them: check before creating an item, so that no commit has to
 * be rejected. Items count from their creation. An item that never becomes durable counts until the store is read
 * again, which happens when a target seems to be full.
 */
export class Backlog {
  readonly #parts: BacklogParts;
  #counts = new Map<string, number>();
  /** Items created since a count began, which may not include them. */
  #made: string[] | undefined;

  constructor(parts: BacklogParts) {
    this.#parts = parts;
  }

  /** Whether `most` items wait for a target. */
  isFull(target: string, most: number): boolean {
    if (this.#of(target) < most) return false;
    if (this.#made === undefined) this.#recount().catch(() => undefined);
    return true;
  }

  add(target: string): void {
    this.#counts.set(target, this.#of(target) + 1);
    this.#made?.push(target);
  }

  remove(target: string): void {
    const left = this.#of(target) - 1;
    if (left > 0) this.#counts.set(target, left);
    else this.#counts.delete(target);
  }

  /** Called at startup: counts what an earlier process left. */
  async load(): Promise<void> {
    const stored = await this.#parts.stored();
    for (const [target, count] of stored) this.#counts.set(target, this.#of(target) + count);
  }

  async #recount(): Promise<void> {
    this.#made = [];
    try {
      await this.#parts.written();
      this.#counts = new Map(await this.#parts.stored());
      for (const target of this.#made) this.#counts.set(target, this.#of(target) + 1);
    } finally {
      this.#made = undefined;
    }
  }

  #of(target: string): number {
    return this.#counts.get(target) ?? 0;
  }
}

export interface BacklogParts {
  /** Stored waiting items by target. */
  readonly stored: () => Promise<ReadonlyMap<string, number>>;
  /** Resolves when every item created before is durable or never will be. */
  readonly written: () => Promise<unknown>;
}
