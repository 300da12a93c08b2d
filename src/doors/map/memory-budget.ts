/**
 * Limits the bytes that the connections of one caller, and all connections together, make the server hold: unfinished
 * frames, requests that wait, and frames that clients have not read. A limit per connection is not enough, because a
 * caller can open many.
 */
import type { MapLimits } from "./settings.js";

export interface BudgetedConnection {
  /** The caller that is charged. */
  readonly owner: string;
  /** Bytes held at the moment. */
  readonly held: number;
  readonly isClosed: boolean;
  /** Asks the client to leave. What it has not read is held for a moment longer. */
  close(code: number, reason: string): void;
  /** Drops the transport with everything that waits on it. */
  abort(): void;
}

interface Charge {
  readonly owner: string;
  readonly bytes: number;
}

/** Connections that hold less are not counted, because most hold nothing. */
const WORTH_COUNTING = 64 * 1024;

export class MemoryBudget {
  readonly #limits: Pick<MapLimits, "maxMemory" | "maxMemoryPerCaller">;
  readonly #charges = new Map<BudgetedConnection, Charge>();
  readonly #byOwner = new Map<string, number>();
  #total = 0;

  constructor(limits: Pick<MapLimits, "maxMemory" | "maxMemoryPerCaller">) {
    this.#limits = limits;
  }

  get total(): number {
    return this.#total;
  }

  /** Whether the caller's connections should send no more for now. */
  isCrowded(owner: string): boolean {
    return this.#of(owner) > this.#limits.maxMemoryPerCaller / 2;
  }

  /** The connection holds more or less than before. */
  update(connection: BudgetedConnection): void {
    const { held, owner } = connection;
    if (held < WORTH_COUNTING && !this.#charges.has(connection)) return;
    this.#charge(connection, held < WORTH_COUNTING ? undefined : { owner, bytes: held });
    const { maxMemory, maxMemoryPerCaller } = this.#limits;
    if (this.#of(owner) > maxMemoryPerCaller) this.#shed(owner, maxMemoryPerCaller);
    if (this.#total > maxMemory) this.#shedLargest();
  }

  /** The transport is closed: nothing is held for it. */
  remove(connection: BudgetedConnection): void {
    this.#charge(connection, undefined);
  }

  #charge(connection: BudgetedConnection, charge: Charge | undefined): void {
    const old = this.#charges.get(connection);
    if (old !== undefined) this.#add(old.owner, -old.bytes);
    if (charge === undefined) {
      this.#charges.delete(connection);
      return;
    }
    this.#charges.set(connection, charge);
    this.#add(charge.owner, charge.bytes);
  }

  #add(owner: string, bytes: number): void {
    this.#total += bytes;
    const sum = this.#of(owner) + bytes;
    if (sum > 0) this.#byOwner.set(owner, sum);
    else this.#byOwner.delete(owner);
  }

  #of(owner: string): number {
    return this.#byOwner.get(owner) ?? 0;
  }

  /** Takes from the callers that hold most. Many callers can exceed the total without any of them exceeding its own. */
  #shedLargest(): void {
    const { maxMemory, maxMemoryPerCaller } = this.#limits;
    for (const connection of [...this.#charges.keys()]) if (connection.isClosed) connection.abort();
    let over = this.#total - maxMemory;
    for (const [owner, bytes] of [...this.#byOwner].sort(([, a], [, b]) => b - a)) {
      if (over <= 0) return;
      const limit = Math.min(maxMemoryPerCaller / 2, Math.max(0, bytes - over));
      over -= bytes - this.#shed(owner, limit);
    }
  }

  /**
   * Closes the connections that hold most, and aborts those that were closed before and still hold something.
   * @returns what the others of the caller hold
   */
  #shed(owner: string, limit: number): number {
    const own = [...this.#charges].flatMap(([connection, charge]) =>
      charge.owner === owner ? [connection] : [],
    );
    // Clients may have read a lot since they were counted.
    for (const connection of own) {
      const { held } = connection;
      this.#charge(connection, held < WORTH_COUNTING ? undefined : { owner, bytes: held });
    }
    let left = this.#of(owner);
    for (const connection of own.sort((a, b) => b.held - a.held)) {
      if (left <= limit) break;
      left -= connection.held;
      if (connection.isClosed) connection.abort();
      else connection.close(1013, "this caller makes the server hold too much; read faster, or send less");
    }
    return left;
  }
}
