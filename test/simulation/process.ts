/** A simulated process: what it is made of, and what it owes to whoever asked something of it. */
import { type Runtime, RuntimeError } from "../../src/engine/runtime/index.js";
import {
  RowConflictError,
  StoreBusyError,
  StoreClosedError,
  StoreFailedError,
} from "../../src/journal/ports.js";
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
  /** What was asked and not answered yet. */
  readonly #asked = new Set<string>();
  /** Streams and takers, which may wait until the process is closed. */
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

  /** Whatever is asked is answered, unless the process dies; and what goes wrong must be one of the known things. */
  ask<T>(what: string, call: () => Promise<T>, told: Told<T> = {}): void {
    this.#await(this.#asked, what, call, told);
  }

  /** The same for what may take until the process is closed. */
  waitFor<T>(what: string, call: () => Promise<T>, told: Told<T> = {}): void {
    this.#await(this.#open, what, call, told);
  }

  #await<T>(waiting: Set<string>, what: string, call: () => Promise<T>, told: Told<T>): void {
    const name = `${what} (${++this.#count})`;
    waiting.add(name);
    // The dead are told nothing.
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
    if (isInjected(error) || error instanceof StoreBusyError) return true;
    if (error instanceof StoreClosedError || error instanceof StoreFailedError) return this.phase !== "open";
    if (error instanceof RowConflictError) return error.kind === "name.put" || error.kind === "task.remove";
    if (!(error instanceof RuntimeError)) return false;
    return this.phase !== "open" || (error.code !== "closed" && error.code !== "store_failed");
  }
}

/** A failure that the simulation itself made. */
export function isInjected(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.message.includes("injected") || isInjected(error.cause);
}
