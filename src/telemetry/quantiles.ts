/** Durations in buckets of a growing size: cheap to add, and exact enough for a chart. */

const FIRST = 0.01;
const GROWTH = 1.2;
const BUCKETS = 110;
const LOG_GROWTH = Math.log(GROWTH);

export class Quantiles {
  readonly #counts = new Uint32Array(BUCKETS);
  #total = 0;

  get count(): number {
    return this.#total;
  }

  /** @param ms up to about two months */
  add(ms: number): void {
    const bucket = ms <= FIRST ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log(ms / FIRST) / LOG_GROWTH));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total++;
  }

  merge(other: Quantiles): void {
    for (const [bucket, count] of other.#counts.entries()) {
      if (count > 0) this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
    }
    this.#total += other.#total;
  }

  /** The upper bound of the bucket with this share of the values below it; null without values. */
  at(share: number): number | null {
    if (this.#total === 0) return null;
    let left = Math.ceil(share * this.#total);
    for (const [bucket, count] of this.#counts.entries()) {
      left -= count;
      if (left <= 0) return Math.round(FIRST * GROWTH ** bucket * 100) / 100;
    }
    return null;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#total = 0;
  }
}
