import { describe, expect, it } from "vitest";
import { busContract } from "../testing/contracts/bus.js";
import { createLocalBus } from "./local.js";

describe("local bus contract", () => {
  const open = async () => {
    const errors: unknown[] = [];
    return { bus: createLocalBus({ onError: (error) => errors.push(error) }), errors };
  };
  for (const { name, run } of busContract(open)) it(name, run);
});

describe("createLocalBus", () => {
  it("never calls a handler synchronously from publish", async () => {
    const bus = createLocalBus();
    const seen: unknown[] = [];
    bus.subscribe("news", (note) => seen.push(note));
    bus.publish("news", 1);
    expect(seen).toEqual([]);
    await Promise.resolve();
    expect(seen).toEqual([1]);
  });

  it("delivers what was published before it was closed", async () => {
    const bus = createLocalBus();
    const seen: unknown[] = [];
    bus.subscribe("news", (note) => seen.push(note));
    bus.publish("news", 1);
    await bus.close();
    expect(seen).toEqual([1]);
  });
});
