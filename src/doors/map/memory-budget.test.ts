import { describe, expect, it } from "vitest";
import { type BudgetedConnection, MemoryBudget } from "./memory-budget.js";

const MB = 1024 * 1024;

class Connection implements BudgetedConnection {
  isClosed = false;
  isAborted = false;

  readonly owner: string;
  readonly held: number;
  readonly #budget: MemoryBudget;

  constructor(budget: MemoryBudget, owner: string, held: number) {
    this.#budget = budget;
    this.owner = owner;
    this.held = held;
    budget.update(this);
  }

  close(): void {
    this.isClosed = true;
  }

  abort(): void {
    this.isAborted = true;
    this.#budget.remove(this);
  }
}

describe("what all connections hold", () => {
  it("stays below the total when many callers hold less than each of them may", () => {
    const budget = new MemoryBudget({ maxMemory: 20 * MB, maxMemoryPerCaller: 8 * MB });
    const honest = new Connection(budget, "user:honest", MB);
    for (let n = 0; n < 200; n++) {
      new Connection(budget, `user:attacker-${n}`, 2 * MB);
      expect(budget.total).toBeLessThanOrEqual(24 * MB);
    }
    expect(honest.isClosed).toBe(false);
  });

  it("is taken from the caller that holds most", () => {
    const budget = new MemoryBudget({ maxMemory: 20 * MB, maxMemoryPerCaller: 16 * MB });
    const [small, large] = [
      new Connection(budget, "user:ann", 4 * MB),
      new Connection(budget, "user:bob", 12 * MB),
    ];
    new Connection(budget, "user:cem", 5 * MB);
    expect([small.isClosed, large.isClosed]).toEqual([false, true]);
  });

  it("is dropped at once for a closed connection whose client does not read", () => {
    const budget = new MemoryBudget({ maxMemory: 20 * MB, maxMemoryPerCaller: 16 * MB });
    const unread = new Connection(budget, "user:bob", 12 * MB);
    new Connection(budget, "user:ann", 9 * MB);
    expect([unread.isClosed, unread.isAborted]).toEqual([true, false]);
    new Connection(budget, "user:cem", MB);
    expect(unread.isAborted).toBe(true);
    expect(budget.total).toBe(10 * MB);
  });
});
