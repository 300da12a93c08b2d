import { expect, it } from "vitest";
import { QueuedSlots } from "./queued-slots.js";
import { Slots } from "./slots.js";

it("each caller gets a few slots at once, and further calls wait in order", async () => {
  const turns = new QueuedSlots(new Slots("things can be requested", 10, 4), 2);
  const order: string[] = [];
  const asking = ["a", "b", "c", "d"].map((name) =>
    turns.take("ann").then((end) => {
      order.push(name);
      return end;
    }),
  );
  const [a, b, c, d] = asking;
  const endA = await a;
  await b;
  expect(order).toEqual(["a", "b"]);
  await expect(turns.take("ann")).rejects.toThrow(/4 per caller/);
  const endOther = await turns.take("bob");
  endOther();
  endA?.();
  endA?.();
  await c;
  expect(order).toEqual(["a", "b", "c"]);
  (await b)?.();
  await d;
  for (const end of await Promise.all(asking)) end();
  const ends = await Promise.all([turns.take("ann"), turns.take("ann")]);
  expect(ends).toHaveLength(2);
});
