/**
 * The store as one process sees it. The process can die: what it had not handed to the disk is lost, and whatever it
 * was told afterwards it never heard. Commits can also simply fail.
 */
import type { Batch, Committed, Store } from "../../src/engine/ports.js";
import type { Random } from "../kit/seeded.js";

interface Waiting {
  readonly batch: Batch;
  readonly resolve: (committed: Committed) => void;
  readonly reject: (error: unknown) => void;
}

export class MortalStore implements Store {
  readonly #inner: Store;
  readonly #random: Random;
  readonly #failureRate: () => number;
  #waiting: Waiting[] = [];
  #dead = false;

  constructor(inner: Store, random: Random, failureRate: () => number) {
    this.#inner = inner;
    this.#random = random;
    this.#failureRate = failureRate;
  }

  /** Nothing that waits is written, and nobody is told anything any more. */
  die(): void {
    this.#dead = true;
    this.#waiting = [];
  }

  get busy(): boolean {
    return this.#waiting.length > 0;
  }

  commit(batch: Batch): Promise<Committed> {
    return new Promise((resolve, reject) => {
      if (this.#dead) return;
      if (this.#random.chance(this.#failureRate())) {
        reject(new Error("injected: the disk is full"));
        return;
      }
      this.#waiting.push({ batch, resolve, reject });
      if (this.#waiting.length === 1) setImmediate(() => this.#write());
    });
  }

  #write(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { batch, resolve, reject } of waiting) {
      this.#inner.commit(batch).then(
        (committed) => !this.#dead && resolve(committed),
        (error: unknown) => !this.#dead && reject(error),
      );
    }
  }

  read: Store["read"] = (journal, options) => this.#inner.read(journal, options);
  readAll: Store["readAll"] = (after, limit) => this.#inner.readAll(after, limit);
  lastNumber: Store["lastNumber"] = (journal) => this.#inner.lastNumber(journal);
  readSnapshot: Store["readSnapshot"] = (journal) => this.#inner.readSnapshot(journal);

  get tasks(): Store["tasks"] {
    return this.#inner.tasks;
  }

  async close(): Promise<void> {}
}
