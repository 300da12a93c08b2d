import { describe, expect, it } from "vitest";
import { ask, complete, respond, wait } from "../../../test/kit/answers.js";
import { Puppets } from "../../../test/kit/puppets.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import { openWorld, ULLA, type World } from "../../../test/kit/world.js";
import type { NumberedEntry } from "./follow.js";

function puppetOffice() {
  const puppets = new Puppets();
  const definition = swarm([
    agent("boss", { targets: ["ann"], supervisor: true, entrypoint: true, run: puppets.mind("boss") }),
    agent("ann", { targets: ["boss"], run: puppets.mind("ann") }),
  ]);
  return { puppets, definition };
}

/** Asks back and forth, then completes. */
async function chat(puppets: Puppets, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    (await puppets.next("boss")).answer(ask("ann", `question ${round}`), wait());
    (await puppets.next("ann")).answer(respond("boss", `answer ${round}`));
  }
  (await puppets.next("boss")).answer(complete("done"));
}

async function upToCompletion(stream: AsyncIterable<NumberedEntry>): Promise<number[]> {
  const numbers: number[] = [];
  for await (const { number, entry } of stream) {
    numbers.push(number);
    if (entry.t === "completed") break;
  }
  return numbers;
}

const upTo = (last: number, first = 1) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);
const lastNumber = (world: World, key: string) => world.store.entriesOf(key).length;

describe("following a task", () => {
  it("everything from the beginning comes once and in order, live and stored alike", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const { key } = await world.runtime.post(ULLA, { body: "go" });
    const early = upToCompletion(world.runtime.follow(key));
    await chat(puppets, 5);
    const seen = await early;
    expect(seen).toEqual(upTo(lastNumber(world, key)));
    expect(await upToCompletion(world.runtime.follow(key))).toEqual(seen);
  });

  it("a stream is taken up after any number without loss or repetition", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const { key } = await world.runtime.post(ULLA, { body: "go" });
    await chat(puppets, 2);
    await world.settle();
    const last = lastNumber(world, key);
    for (let after = 0; after < last; after++) {
      expect(await upToCompletion(world.runtime.follow(key, { after }))).toEqual(upTo(last, after + 1));
    }
  });

  it("a slow reader reads from the store what it missed, and misses nothing", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition, { limits: { followerBacklog: 3 } });
    const { key } = await world.runtime.post(ULLA, { body: "go" });
    const stream = world.runtime.follow(key);
    const numbers = [(await stream.next()).value?.number];
    await chat(puppets, 8);
    await world.settle();
    numbers.push(...(await upToCompletion(stream)));
    expect(numbers).toEqual(upTo(lastNumber(world, key)));
  });

  it("`once` stops at the present end, an abort stops a reader that waits", async () => {
    const { definition } = puppetOffice();
    const world = await openWorld(definition);
    const { key } = await world.runtime.post(ULLA, { body: "go" });
    const numbers: number[] = [];
    for await (const { number } of world.runtime.follow(key, { once: true })) numbers.push(number);
    expect(numbers).toEqual([1, 2]);
    const stop = new AbortController();
    const stream = world.runtime.follow(key, { after: 2, signal: stop.signal });
    const next = stream.next();
    await world.settle();
    stop.abort();
    expect((await next).done).toBe(true);
  });

  it("nothing is shown before it is durable", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const { key } = await world.runtime.post(ULLA, { body: "go" });
    const shown: number[] = [];
    const watching = (async () => {
      for await (const { number, entry } of world.runtime.follow(key)) {
        expect(await world.store.lastNumber(key)).toBeGreaterThanOrEqual(number);
        shown.push(number);
        if (entry.t === "completed") break;
      }
    })();
    await chat(puppets, 3);
    await watching;
    expect(shown).toEqual(upTo(lastNumber(world, key)));
  });

  it("what became durable is told even if the task had to be read again meanwhile", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    const watching = upToCompletion(world.runtime.follow(posted.key));
    (await puppets.next("boss")).answer(complete("done"));
    // The completion is written; the message that comes right behind it is not.
    world.store.refuse = ({ appends }) =>
      appends.some(({ data }) => data.includes('"more"')) ? new Error("disk full") : undefined;
    while (world.store.waiting === 0) await Promise.resolve();
    await expect(world.runtime.post(ULLA, { body: "more", taskId: "t" })).rejects.toThrow();
    world.store.refuse = () => undefined;
    expect(await watching).toEqual(upTo(4));
  });

  it("pieces of answers are published and never journaled", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    const deltas: unknown[] = [];
    world.bus.subscribe(`delta:${posted.key}`, (note) => deltas.push(note));
    const turn = await puppets.next("boss");
    turn.turn.emitDelta("thr");
    turn.turn.emitDelta("ee");
    turn.answer(complete("three"));
    await posted.outcome;
    expect(deltas).toMatchObject([{ agent: "boss", delta: "thr" }, { delta: "ee" }]);
    expect(JSON.stringify(world.store.entriesOf(posted.key))).not.toContain('"thr"');
  });

  it("pieces of an answer that comes when its turn is over are told to nobody", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    const deltas: unknown[] = [];
    world.bus.subscribe(`delta:${posted.key}`, (note) => deltas.push(note));
    const { turn } = await puppets.next("boss");
    await world.runtime.cancel(posted.key, "ulla");
    turn.emitDelta("late");
    await world.settle();
    expect(deltas).toEqual([]);
  });
});
