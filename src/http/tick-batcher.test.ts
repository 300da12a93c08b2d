import { expect, it } from "vitest";
import { TickBatcher } from "./tick-batcher.js";

it("requests of one event loop turn continue together, and later ones in a later batch", async () => {
  const gathering = new TickBatcher();
  const order: string[] = [];
  const come = async (name: string): Promise<void> => {
    await gathering.join();
    order.push(name);
  };
  const early = [come("first"), come("second")];
  order.push("all read");
  await Promise.all(early);
  const late = come("third");
  order.push("read later");
  await late;
  expect(order).toEqual(["all read", "first", "second", "read later", "third"]);
});
