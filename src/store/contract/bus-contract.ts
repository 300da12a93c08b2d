import { describe, expect, it } from "vitest";
import type { Bus } from "../../engine/ports.js";

/** A bus under test, and where it reports the errors of handlers. */
export interface BusHarness {
  readonly bus: Bus;
  readonly errors: readonly unknown[];
}

/** What every Bus promises. Delivery may take time, so the tests wait for notes and never for a moment. */
export function busContract(name: string, open: () => Promise<BusHarness>): void {
  describe(`bus contract: ${name}`, () => {
    it("hands every note to every subscriber of its channel, in the order of publication", async () => {
      const { bus } = await open();
      const first = collect(bus, "news");
      const second = collect(bus, "news");
      const other = collect(bus, "sport");
      for (let note = 1; note <= 100; note += 1) bus.publish("news", { note });
      bus.publish("sport", "goal");
      const expected = Array.from({ length: 100 }, (_, index) => ({ note: index + 1 }));
      expect(await first.until(100)).toEqual(expected);
      expect(await second.until(100)).toEqual(expected);
      expect(await other.until(1)).toEqual(["goal"]);
      await bus.close();
    });

    it("keeps the order for all when a handler publishes", async () => {
      const { bus } = await open();
      bus.subscribe("chain", (note) => {
        if (typeof note === "number" && note < 5) bus.publish("chain", note + 1);
      });
      const watcher = collect(bus, "chain");
      bus.publish("chain", 1);
      expect(await watcher.until(5)).toEqual([1, 2, 3, 4, 5]);
      await bus.close();
    });

    it("does not let a handler that throws disturb the others, and reports it", async () => {
      const { bus, errors } = await open();
      bus.subscribe("news", () => {
        throw new Error("subscriber broke");
      });
      const healthy = collect(bus, "news");
      bus.publish("news", 1);
      bus.publish("news", 2);
      expect(await healthy.until(2)).toEqual([1, 2]);
      expect(errors).toHaveLength(2);
      expect(errors[0]).toMatchObject({ message: "subscriber broke" });
      await bus.close();
    });

    it("calls nobody any more after an unsubscribe, not even with a note under way", async () => {
      const { bus } = await open();
      const gone = collect(bus, "news");
      const staying = collect(bus, "news");
      bus.publish("news", 1);
      gone.unsubscribe();
      bus.publish("news", 2);
      expect(await staying.until(2)).toEqual([1, 2]);
      expect(gone.notes).toEqual([]);
      await bus.close();
    });

    it("lets a handler unsubscribe itself and others while a note is handed out", async () => {
      const { bus } = await open();
      const seen: string[] = [];
      const stopFirst = bus.subscribe("news", () => {
        seen.push("first");
        stopFirst();
        stopSecond();
      });
      const stopSecond = bus.subscribe("news", () => seen.push("second"));
      const last = collect(bus, "news");
      bus.publish("news", 1);
      bus.publish("news", 2);
      expect(await last.until(2)).toEqual([1, 2]);
      expect(seen).toEqual(["first"]);
      await bus.close();
    });

    it("gives a new subscriber only what is published from then on", async () => {
      const { bus } = await open();
      const early = collect(bus, "news");
      bus.publish("news", "before");
      const late = collect(bus, "news");
      bus.publish("news", "after");
      expect(await late.until(1)).toEqual(["after"]);
      expect(await early.until(2)).toEqual(["before", "after"]);
      await bus.close();
    });

    it("is silent after it was closed", async () => {
      const { bus } = await open();
      const before = collect(bus, "news");
      await bus.close();
      bus.publish("news", 1);
      const after = collect(bus, "news");
      bus.publish("news", 2);
      await bus.close();
      expect([...before.notes, ...after.notes]).toEqual([]);
    });
  });
}

function collect(bus: Bus, channel: string) {
  const notes: unknown[] = [];
  let arrived = (): void => {};
  const unsubscribe = bus.subscribe(channel, (note) => {
    notes.push(note);
    arrived();
  });
  return {
    notes,
    unsubscribe,
    /** All notes so far, as soon as there are `count`. */
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
