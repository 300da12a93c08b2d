/**
 * How much waits for each target, for those who set limits: asked before an item is made, so that no commit has to be
 * refused. Items are counted when they are made. One that never becomes durable is counted until the store is asked
 * again; that happens when a target seems to be full.
 */
export class Backlog {
  readonly #parts: BacklogParts;
  #counts = new Map<string, number>();
  /** Items made since a count began, which it may not know of. */
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

  /** For a start: what an earlier process has left. */
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
  /** What waits according to the store, by target. */
  readonly stored: () => Promise<ReadonlyMap<string, number>>;
  /** Resolves when what was made before is durable, or never will be. */
  readonly written: () => Promise<unknown>;
}
