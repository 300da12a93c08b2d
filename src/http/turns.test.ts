import { expect, it } from "vitest";
import { Places } from "./places.js";
import { Turns } from "./turns.js";

it("gives each caller a few turns at once, the others in the order in which they asked", async () => {
  const turns = new Turns(new Places("things can be asked for", 10, 4), 2);
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
