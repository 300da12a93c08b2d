/** A runtime on a real store with a virtual clock, whose every write is checked. */
import { expect, onTestFinished } from "vitest";
import type { Ids, Problem } from "../../src/base/index.js";
import { createLocalBus } from "../../src/bus/index.js";
import type { Carrier } from "../../src/engine/carrier.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { InstanceId } from "../../src/engine/ports.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import type { RuntimeLimits } from "../../src/engine/settings.js";
import type { EntryKind } from "../../src/engine/task/entries.js";
import type { Bus, JournalKey } from "../../src/journal/index.js";
import { openStore } from "../../src/store/index.js";
import { seededIds } from "../../src/testing/seeded-ids.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { CheckedStore, type DrivenStore } from "./checked-store.js";

export const ULLA: InstanceId = { role: "user", id: "ulla" };
export const OTTO: InstanceId = { role: "user", id: "otto" };

export interface WorldOptions {
  readonly limits?: Partial<RuntimeLimits>;
  readonly carriers?: readonly Carrier[];
  /** Default: in memory. */
  readonly store?: DrivenStore;
}

export class World {
  readonly store: CheckedStore;
  readonly clock = new VirtualClock();
  readonly ids: Ids = seededIds(0);
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
   * Simulates a crash: only committed data survives. A new process starts on the same store; answers to the old one's
   * agents are dropped.
   */
  async crash(definition: SwarmDefinition = this.#definition): Promise<void> {
    await this.settle();
    // Writes of the dead process never arrive, because its writer is gone.
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

  /** Waits until nothing is being written: agents and actions that wait for the test are idle. */
  async settle(): Promise<void> {
    let seen = -1;
    for (let calm = 0; calm < 4; calm++) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (this.store.asked !== seen || this.store.waiting > 0) calm = 0;
      seen = this.store.asked;
    }
  }

  /** Advances the clock of the tasks and the store. */
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

/** Opens a world for one test; at its end, every write must have been valid. */
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
    world.store.checkInvariants();
  });
  return world;
}
