import { expect, it } from "vitest";
import { deferred } from "../base/index.js";
import { StreamMemory } from "./stream-memory.js";

const { signal } = new AbortController();
const LARGE = "x".repeat(3_000_000);

it("large events of one caller wait without their text until those before them are written", async () => {
  const memory = new StreamMemory();
  const taken = deferred<void>();
  const written: string[] = [];
  let formatted = 0;
  const send = (name: string, caller: string, text: string, end: Promise<void>) =>
    memory.event(
      caller,
      signal,
      () => {
        formatted++;
        return text;
      },
      async () => {
        written.push(name);
        await end;
      },
    );
  const all = [
    send("1", "ann", LARGE, taken.promise),
    send("2", "ann", LARGE, taken.promise),
    send("3", "ann", LARGE, taken.promise),
    send("small", "ann", "x", Promise.resolve()),
    send("other", "bob", LARGE, Promise.resolve()),
  ];
  await Promise.resolve();
  expect(written).toEqual(["1", "2", "small", "other"]);
  expect(formatted).toBe(5);
  taken.resolve();
  await Promise.all(all);
  expect(written).toEqual(["1", "2", "small", "other", "3"]);
  expect(formatted).toBe(6);
});

it("a stream that ended no longer waits for a place", async () => {
  const memory = new StreamMemory();
  const gone = new AbortController();
  const places = await Promise.all(Array.from({ length: 4 }, () => memory.page("ann", signal)));
  const fifth = memory.page("ann", gone.signal);
  gone.abort();
  (await fifth)();
  for (const leave of places) leave();
});
