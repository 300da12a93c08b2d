/** A runtime on a real store with a clock that stands still, and everything it writes checked. */
import { expect, onTestFinished } from "vitest";
import type { Carrier } from "../../src/engine/carrier.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { EntryKind } from "../../src/engine/entries.js";
import type { Bus, Ids, InstanceId, JournalKey } from "../../src/engine/ports.js";
import type { Problem } from "../../src/engine/runtime/index.js";
import type { RuntimeLimits } from "../../src/engine/runtime/limits.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import { createLocalBus, openStore } from "../../src/store/index.js";
import { CheckedStore, type DrivenStore } from "./checked-store.js";
import { countingIds } from "./seeded.js";
import { VirtualClock } from "./virtual-clock.js";

export const ULLA: InstanceId = { role: "user", id: "ulla" };
export const OTTO: InstanceId = { role: "user", id: "otto" };

export interface WorldOptions {
  readonly limits?: Partial<RuntimeLimits>;
  readonly carriers?: readonly Carrier[];
  /** In memory unless given. */
  readonly store?: DrivenStore;
}

export class World {
  readonly store: CheckedStore;
  readonly clock = new VirtualClock();
  readonly ids: Ids = countingIds();
  readonly reports: Problem[] = [];
  bus: Bus = createLocalBus();
  runtime: Runtime;
  #definition: SwarmDefinition;
  readonly #options: WorldOptions;

  constructor(store: DrivenStore, definition: SwarmDefinition, options: WorldOptions) {
    this.store = new CheckedStore(store);
    this.#definition = definition;
    this.#options = options;
    this.runtime = this.#start();
  }

  #start(): Runtime {
    return new Runtime({
      store: this.store,
      bus: this.bus,
      clock: this.clock,
      ids: this.ids,
      definition: this.#definition,
      limits: this.#options.limits ?? {},
      carriers: this.#options.carriers ?? [],
      report: (problem) => this.reports.push(problem),
    });
  }

  /**
   * The process dies: nothing of it is left but what was committed. A new one is started on the same store, with the
   * old one's agents answering into the void.
   */
  async crash(definition: SwarmDefinition = this.#definition): Promise<void> {
    await this.settle();
    // What the dead process still tries to write never arrives: its writer is gone.
    const dead = this.runtime;
    this.store.restart();
    const closed = dead.close(0);
    await this.settle();
    this.clock.advance(0);
    await closed;
    this.bus = createLocalBus();
    this.#definition = definition;
    this.runtime = this.#start();
    await this.runtime.recover();
  }

  /** Until nothing is written any more: agents and actions that wait for the test stand still. */
  async settle(): Promise<void> {
    let seen = -1;
    for (let calm = 0; calm < 4; calm++) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (this.store.asked !== seen || this.store.waiting > 0) calm = 0;
      seen = this.store.asked;
    }
  }

  /** Lets time pass, in the task's and the store's eyes. */
  async pass(ms: number): Promise<void> {
    await this.settle();
    this.clock.advance(ms);
    await this.settle();
  }

  kinds(key: JournalKey): EntryKind[] {
    return this.store.entriesOf(key).map((entry) => entry.t);
  }

  async status(key: JournalKey): Promise<string | undefined> {
    return (await this.store.tasks.byKey(key))?.status;
  }
}

/** Opens a world for one test; when the test ends, whatever was written must have been right. */
export async function openWorld(definition: SwarmDefinition, options: WorldOptions = {}): Promise<World> {
  const store = options.store ?? (await openStore({ path: ":memory:" }));
  const world = new World(store, definition, options);
  onTestFinished(async () => {
    const closed = world.runtime.close(0);
    await world.settle();
    world.clock.advance(0);
    await closed;
    await store.close();
    expect(world.store.problems).toEqual([]);
    world.store.checkLaws();
  });
  return world;
}
