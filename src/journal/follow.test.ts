import { describe, expect, it } from "vitest";
import { deferred } from "../base/index.js";
import { Followers, follow } from "./follow.js";
import type { Bus, JournalRow } from "./ports.js";
import { systemLoop } from "./system.js";

const row = (number: number): JournalRow => ({
  journal: "j",
  position: number,
  first: number,
  last: number,
  data: JSON.stringify([{ number }]),
});

const silentBus = (ready: Promise<void>): Bus => ({
  publish: () => {},
  subscribe: () => ({ ready, close: () => {} }),
  close: async () => {},
});

describe("following a journal", () => {
  it("reads nothing before the subscription is effective, so that no entry is missed in between", async () => {
    const { promise: ready, resolve } = deferred<void>();
    const bus = silentBus(ready);
    const rows = [row(1)];
    let reads = 0;
    const entries = follow<{ number: number }>(
      {
        bus,
        loop: systemLoop,
        channel: "c",
        key: "j",
        followers: new Followers(),
        lastNumber: async () => rows.length,
        read: async (_, { after }) => {
          reads++;
          return rows.filter(({ last }) => last > after);
        },
      },
      { backlog: 10 },
    );
    const first = entries.next();
    await new Promise((done) => setImmediate(done));
    expect(reads).toBe(0);
    // Committed and announced while the bus did not deliver yet.
    rows.push(row(2));
    resolve();
    expect((await first).value).toEqual({ number: 1, entry: { number: 1 } });
    expect((await entries.next()).value).toEqual({ number: 2, entry: { number: 2 } });
    await entries.return(undefined);
  });

  it("reads every page with a limit on its size", async () => {
    const rows = Array.from({ length: 40 }, (_, index) => row(index + 1));
    const sizes: number[] = [];
    const entries = follow<{ number: number }>(
      {
        bus: silentBus(Promise.resolve()),
        loop: systemLoop,
        channel: "c",
        key: "j",
        followers: new Followers(),
        lastNumber: async () => rows.length,
        read: async (_, { after, limit, characters }) => {
          sizes.push(characters);
          return rows.filter(({ last }) => last > after).slice(0, limit);
        },
      },
      { backlog: 10, once: true },
    );
    const numbers: number[] = [];
    for await (const { number } of entries) numbers.push(number);
    expect(numbers).toEqual(rows.map(({ last }) => last));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4 * 1024 * 1024);
  });

  it("queues nothing for a reader that is behind, which reads from the store instead, page by page", async () => {
    const rows = [row(1)];
    let publish = (_: unknown): void => {};
    const places = { taken: 0, held: 0 };
    let isBehind = true;
    const entries = follow<{ number: number }>(
      {
        bus: {
          publish: () => {},
          subscribe: (_, listener) => {
            publish = listener;
            return { ready: Promise.resolve(), close: () => {} };
          },
          close: async () => {},
        },
        loop: systemLoop,
        channel: "c",
        key: "j",
        followers: new Followers(),
        lastNumber: async () => rows.length,
        read: async (_, { after, limit }) => rows.filter(({ last }) => last > after).slice(0, limit),
      },
      {
        backlog: 10,
        isBehind: () => isBehind,
        place: async () => {
          places.taken++;
          places.held++;
          return () => places.held--;
        },
      },
    );
    expect((await entries.next()).value).toMatchObject({ number: 1 });
    expect(places).toEqual({ taken: 1, held: 1 });
    const second = entries.next();
    await new Promise((done) => setImmediate(done));
    expect(places.held).toBe(0);
    rows.push(row(2));
    // The entry of the notification is another one: what comes was read.
    publish({ key: "j", first: 2, entries: [{ number: -2 }] });
    expect((await second).value).toEqual({ number: 2, entry: { number: 2 } });
    isBehind = false;
    const third = entries.next();
    await new Promise((done) => setImmediate(done));
    rows.push(row(3));
    publish({ key: "j", first: 3, entries: [{ number: -3 }] });
    expect((await third).value).toEqual({ number: 3, entry: { number: -3 } });
    await entries.return(undefined);
    expect(places.held).toBe(0);
  });
});
