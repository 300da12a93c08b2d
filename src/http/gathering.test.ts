import { expect, it } from "vitest";
import { Gathering } from "./gathering.js";

it("lets those who come in one turn of the event loop go on in a row, and later ones in a later row", async () => {
  const gathering = new Gathering();
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
