/** A simulated process: its parts, and the requests that it has not answered yet. */
import { hasCode, isPublicError } from "../../src/base/index.js";
import type { Runtime } from "../../src/engine/runtime/index.js";
import { RowConflictError } from "../../src/journal/ports.js";
import type { SimulatedStore } from "./disk.js";
import { describe, type Life, type World } from "./world.js";

interface Told<T> {
  readonly answered?: (value: T) => void;
  readonly rejected?: (error: unknown) => void;
}

export class Process {
  readonly life: Life;
  readonly store: SimulatedStore;
  readonly runtime: Runtime;
  phase: "open" | "closing" | "failed" = "open";
  readonly #world: World;
  /** Requests without a response. */
  readonly #asked = new Set<string>();
  /** Streams and takers, which may stay open until the process is closed. */
  readonly #open = new Set<string>();
  #count = 0;

  constructor(parts: { life: Life; store: SimulatedStore; runtime: Runtime; world: World }) {
    this.life = parts.life;
    this.store = parts.store;
    this.runtime = parts.runtime;
    this.#world = parts.world;
  }

  get unanswered(): readonly string[] {
    return [...this.#asked];
  }

  get stillOpen(): readonly string[] {
    return [...this.#open];
  }

  /** Every request must be answered unless the process dies, and only with expected errors. */
  ask<T>(what: string, call: () => Promise<T>, told: Told<T> = {}): void {
    this.#await(this.#asked, what, call, told);
  }

  /** The same for requests that may stay open until the process is closed. */
  waitFor<T>(what: string, call: () => Promise<T>, told: Told<T> = {}): void {
    this.#await(this.#open, what, call, told);
  }

  #await<T>(waiting: Set<string>, what: string, call: () => Promise<T>, told: Told<T>): void {
    const name = `${what} (${++this.#count})`;
    waiting.add(name);
    // A dead process receives nothing.
    const isHeard = () => waiting.delete(name) && this.life.alive;
    call().then(
      (value) => {
        if (isHeard()) told.answered?.(value);
      },
      (error: unknown) => {
        if (!isHeard()) return;
        const world = this.#world;
        if (world.tracing) world.note("rejected", name, describe(error).split("\n")[0] ?? "");
        if (!this.#isExpected(error)) world.violate(`${name} was rejected: ${describe(error)}`);
        told.rejected?.(error);
      },
    );
  }

  #isExpected(error: unknown): boolean {
    if (isInjected(error) || hasCode(error, "store_busy")) return true;
    if (hasCode(error, "store_closed", "store_failed")) return this.phase !== "open";
    if (error instanceof RowConflictError) return error.kind === "name.put" || error.kind === "task.remove";
    if (!isPublicError(error)) return false;
    return this.phase !== "open" || (error.code !== "closed" && error.code !== "store_failed");
  }
}

/** A failure that the simulation injected. */
export function isInjected(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.message.includes("injected") || isInjected(error.cause);
}
