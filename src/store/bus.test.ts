import { describe, expect, it } from "vitest";
import { createLocalBus } from "./bus.js";
import { busContract } from "./contract/bus-contract.js";

busContract("in process", async () => {
  const errors: unknown[] = [];
  return { bus: createLocalBus({ onError: (error) => errors.push(error) }), errors };
});

describe("createLocalBus", () => {
  it("never calls a handler on the stack of the publisher", async () => {
    const bus = createLocalBus();
    const seen: unknown[] = [];
    bus.subscribe("news", (note) => seen.push(note));
    bus.publish("news", 1);
    expect(seen).toEqual([]);
    await Promise.resolve();
    expect(seen).toEqual([1]);
  });

  it("hands out what was published before it was closed", async () => {
    const bus = createLocalBus();
    const seen: unknown[] = [];
    bus.subscribe("news", (note) => seen.push(note));
    bus.publish("news", 1);
    await bus.close();
    expect(seen).toEqual([1]);
  });
});
