/**
 * Lane heads that are not due yet, and those that wait only for a free slot. Pure: no clock, no store.
 *
 * Slots go round robin over targets, so that a target with a thousand lanes gets no more than one with a single lane.
 */
import type { LaneHead } from "./ports.js";

export class DueQueue {
  /** Not due yet: a binary heap by due time, then number. */
  readonly #waiting: LaneHead[] = [];
  /** Due heads by target, in order of due time. The map's order is the round robin order. */
  readonly #ready = new Map<string, LaneHead[]>();

  add(head: LaneHead): void {
    this.#waiting.push(head);
    this.#rise(this.#waiting.length - 1);
  }

  /** When the next head becomes due. */
  get nextDue(): number | undefined {
    return this.#waiting[0]?.dueAt;
  }

  /** Moves heads that have become due to the ones that wait for a slot. */
  ripen(now: number): void {
    for (let head = this.#waiting[0]; head !== undefined && head.dueAt <= now; head = this.#waiting[0]) {
      this.#pop();
      const ready = this.#ready.get(head.target);
      if (ready === undefined) this.#ready.set(head.target, [head]);
      else ready.push(head);
    }
  }

  /**
   * The next head whose target accepts attempts; its target goes to the end of the round. Asks about each target at
   * most once.
   */
  take(mayGo: (target: string) => boolean): LaneHead | undefined {
    for (const [target, heads] of this.#ready) {
      if (!mayGo(target)) continue;
      const head = heads.shift();
      this.#ready.delete(target);
      if (heads.length > 0) this.#ready.set(target, heads);
      if (head !== undefined) return head;
    }
    return undefined;
  }

  /** Makes every head of a target due now. */
  hasten(target: string, now: number): void {
    const others: LaneHead[] = [];
    const hastened: LaneHead[] = [];
    for (const head of this.#waiting.splice(0)) {
      if (head.target === target && head.dueAt > now) hastened.push({ ...head, dueAt: now });
      else others.push(head);
    }
    for (const head of [...others, ...hastened]) this.add(head);
  }

  get size(): number {
    let size = this.#waiting.length;
    for (const heads of this.#ready.values()) size += heads.length;
    return size;
  }

  #before(a: number, b: number): boolean {
    const left = this.#waiting[a];
    const right = this.#waiting[b];
    if (left === undefined || right === undefined) return right === undefined && left !== undefined;
    return left.dueAt !== right.dueAt ? left.dueAt < right.dueAt : left.number < right.number;
  }

  #swap(a: number, b: number): void {
    const left = this.#waiting[a];
    const right = this.#waiting[b];
    if (left === undefined || right === undefined) return;
    this.#waiting[a] = right;
    this.#waiting[b] = left;
  }

  #rise(start: number): void {
    let child = start;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!this.#before(child, parent)) return;
      this.#swap(child, parent);
      child = parent;
    }
  }

  #pop(): void {
    this.#swap(0, this.#waiting.length - 1);
    this.#waiting.pop();
    let parent = 0;
    for (;;) {
      const left = 2 * parent + 1;
      const smaller = this.#before(left + 1, left) ? left + 1 : left;
      if (!this.#before(smaller, parent)) return;
      this.#swap(smaller, parent);
      parent = smaller;
    }
  }
}
