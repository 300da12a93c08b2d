import assert from "node:assert/strict";
import type { Bus } from "../../journal/index.js";
import { type Checks, type ContractCase, toCases } from "./cases.js";

/** A bus under test. */
export interface BusHarness {
  readonly bus: Bus;
  /** Errors of handlers that the bus reported, in order. */
  readonly errors: readonly unknown[];
}

/**
 * Everything that a {@link Bus} promises, as cases for any test runner.
 * @param open Creates a bus for one case.
 * @example
 * for (const { name, run } of busContract(openMyBus)) it(name, run);
 */
export function busContract(open: () => Promise<BusHarness>): readonly ContractCase[] {
  return toCases(BUS, open, ({ bus }) => bus.close());
}

/** Delivery may take time, so the checks wait for notifications and never for a length of time. */
const BUS: Checks<BusHarness> = {
  async "delivers every notification to every subscriber of its channel, in the order of publication"({
    bus,
  }) {
    const first = collect(bus, "news");
    const second = collect(bus, "news");
    const other = collect(bus, "sport");
    for (let note = 1; note <= 100; note += 1) bus.publish("news", { note });
    bus.publish("sport", "goal");
    const expected = Array.from({ length: 100 }, (_, index) => ({ note: index + 1 }));
    assert.deepEqual(await first.until(100), expected);
    assert.deepEqual(await second.until(100), expected);
    assert.deepEqual(await other.until(1), ["goal"]);
  },

  async "keeps the order for all subscribers when a handler publishes"({ bus }) {
    bus.subscribe("chain", (note) => {
      if (typeof note === "number" && note < 5) bus.publish("chain", note + 1);
    });
    const watcher = collect(bus, "chain");
    bus.publish("chain", 1);
    assert.deepEqual(await watcher.until(5), [1, 2, 3, 4, 5]);
  },

  async "reports a handler that throws and still calls the others"({ bus, errors }) {
    bus.subscribe("news", () => {
      throw new Error("subscriber broke");
    });
    const healthy = collect(bus, "news");
    bus.publish("news", 1);
    bus.publish("news", 2);
    assert.deepEqual(await healthy.until(2), [1, 2]);
    assert.deepEqual(
      errors.map((error) => error instanceof Error && error.message),
      ["subscriber broke", "subscriber broke"],
    );
  },

  async "calls no handler after it unsubscribed, not even with a notification published before"({ bus }) {
    const gone = collect(bus, "news");
    const staying = collect(bus, "news");
    bus.publish("news", 1);
    gone.unsubscribe();
    bus.publish("news", 2);
    assert.deepEqual(await staying.until(2), [1, 2]);
    assert.deepEqual(gone.notes, []);
  },

  async "lets a handler unsubscribe itself and others during a delivery"({ bus }) {
    const seen: string[] = [];
    const first = bus.subscribe("news", () => {
      seen.push("first");
      first.close();
      second.close();
    });
    const second = bus.subscribe("news", () => seen.push("second"));
    const last = collect(bus, "news");
    bus.publish("news", 1);
    bus.publish("news", 2);
    assert.deepEqual(await last.until(2), [1, 2]);
    assert.deepEqual(seen, ["first"]);
  },

  async "delivers to a new subscriber only what is published after it subscribed"({ bus }) {
    const early = collect(bus, "news");
    bus.publish("news", "before");
    const late = collect(bus, "news");
    bus.publish("news", "after");
    assert.deepEqual(await late.until(1), ["after"]);
    assert.deepEqual(await early.until(2), ["before", "after"]);
  },

  async "delivers nothing after it was closed"({ bus }) {
    const before = collect(bus, "news");
    await bus.close();
    bus.publish("news", 1);
    const after = collect(bus, "news");
    bus.publish("news", 2);
    await bus.close();
    assert.deepEqual([...before.notes, ...after.notes], []);
  },
};

function collect(bus: Bus, channel: string) {
  const notes: unknown[] = [];
  let arrived = (): void => {};
  const subscription = bus.subscribe(channel, (note) => {
    notes.push(note);
    arrived();
  });
  return {
    notes,
    unsubscribe: () => subscription.close(),
    /** Resolves with all notifications once there are `count`. */
    async until(count: number): Promise<unknown[]> {
      while (notes.length < count) {
        await new Promise<void>((resolve) => {
          arrived = resolve;
        });
      }
      return notes;
    },
  };
}
