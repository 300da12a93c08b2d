import { expect, it } from "vitest";
import { agent, swarm } from "../../../test/kit/swarms.js";
import { openWorld, ULLA } from "../../../test/kit/world.js";
import { Shelf } from "./shelf.js";

it("a picture of a task that has left memory does not take the one that counts with it", async () => {
  const run = () => ({ calls: [{ id: "1", name: "task_complete", args: { finish_message: "done" } }] });
  const world = await openWorld(swarm([agent("boss", { supervisor: true, entrypoint: true, run })]));
  const keys: string[] = [];
  for (let task = 0; task < 3; task++) {
    const { key, outcome } = await world.runtime.post(ULLA, { body: `${task}` });
    await outcome;
    keys.push(key);
  }
  const shelf = new Shelf({
    store: world.store,
    limits: { restingTasks: 1, snapshotAfter: 1_000 },
    onLoaded: () => {},
    isAwaited: () => false,
    report: () => {},
  });
  const [first = "", ...others] = keys;
  const old = await shelf.get(first);
  for (const other of others) await shelf.get(other);
  expect(shelf.peek(first)).toBeUndefined();
  const current = await shelf.get(first);
  if (old === undefined || current === undefined) throw new Error("the task is gone");
  current.holds++;
  // Whoever was told of the old one tells us that nothing is going on in it.
  shelf.rest(old);
  for (const other of others) await shelf.get(other);
  shelf.forget(old);
  expect(shelf.peek(first)).toBe(current);
});
