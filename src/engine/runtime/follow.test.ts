import { describe, expect, it } from "vitest";
import { ask, complete, respond, wait } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { openWorld, ULLA, type World } from "../../../test/kit/simulated-world.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import type { NumberedEntry } from "./follow.js";

function officeOfFakes() {
  const fakeAgents = new FakeAgents();
  const definition = swarm([
    agent("boss", { targets: ["ann"], supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") }),
    agent("ann", { targets: ["boss"], run: fakeAgents.mind("ann") }),
  ]);
  return { fakeAgents, definition };
}

/** Asks back and forth, then completes. */
async function chat(fakeAgents: FakeAgents, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    (await fakeAgents.next("boss")).answer(ask("ann", `question ${round}`), wait());
    (await fakeAgents.next("ann")).answer(respond("boss", `answer ${round}`));
  }
  (await fakeAgents.next("boss")).answer(complete("done"));
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
  it("a follower receives every entry once and in order, stored and live", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const { key } = await world.runtime.post(ULLA, { body: "go" });
    const early = upToCompletion(world.runtime.follow(key));
    await chat(fakeAgents, 5);
    const seen = await early;
    expect(seen).toEqual(upTo(lastNumber(world, key)));
    expect(await upToCompletion(world.runtime.follow(key))).toEqual(seen);
  });

  it("a stream resumes after any number without loss or repetition", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const { key } = await world.runtime.post(ULLA, { body: "go" });
    await chat(fakeAgents, 2);
    await world.settle();
    const last = lastNumber(world, key);
    for (let after = 0; after < last; after++) {
      expect(await upToCompletion(world.runtime.follow(key, { after }))).toEqual(upTo(last, after + 1));
    }
  });

  it("a slow reader reads what it missed from the store and loses nothing", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { followerBacklog: 3 } });
    const { key } = await world.runtime.post(ULLA, { body: "go" });
    const stream = world.runtime.follow(key);
    const numbers = [(await stream.next()).value?.number];
    await chat(fakeAgents, 8);
    await world.settle();
    numbers.push(...(await upToCompletion(stream)));
    expect(numbers).toEqual(upTo(lastNumber(world, key)));
  });

  it("`once` stops at the current end, and an abort stops a waiting reader", async () => {
    const { definition } = officeOfFakes();
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

  it("a follower receives no entry before it is durable", async () => {
    const { fakeAgents, definition } = officeOfFakes();
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
    await chat(fakeAgents, 3);
    await watching;
    expect(shown).toEqual(upTo(lastNumber(world, key)));
  });

  it("a follower receives durable entries even if the task is reloaded meanwhile", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    const watching = upToCompletion(world.runtime.follow(posted.key));
    (await fakeAgents.next("boss")).answer(complete("done"));
    // The completion is written; the message right after it is not.
    world.store.refuse = ({ appends }) =>
      appends.some(({ data }) => data.includes('"more"')) ? new Error("disk full") : undefined;
    while (world.store.waiting === 0) await Promise.resolve();
    await expect(world.runtime.post(ULLA, { body: "more", taskId: "t" })).rejects.toThrow();
    world.store.refuse = () => undefined;
    expect(await watching).toEqual(upTo(4));
  });

  it("following a removed task ends immediately", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const { key } = await world.runtime.post(ULLA, { body: "go" });
    (await fakeAgents.next("boss")).answer(complete("done"));
    await world.settle();
    expect(await world.runtime.remove(key)).toBe(true);
    const seen: number[] = [];
    let ended = false;
    const follow = async () => {
      for await (const { number } of world.runtime.follow(key, { after: 2 })) seen.push(number);
      ended = true;
    };
    void follow();
    await world.settle();
    expect({ ended, seen }).toEqual({ ended: true, seen: [] });
  });

  it("streamed parts of answers are published and never journaled", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    const deltas: unknown[] = [];
    world.bus.subscribe(`delta:${posted.key}`, (note) => deltas.push(note));
    const turn = await fakeAgents.next("boss");
    turn.turn.emitDelta("thr");
    turn.turn.emitDelta("ee");
    turn.turn.resetDeltas();
    turn.turn.emitDelta("three");
    turn.answer(complete("three"));
    await posted.outcome;
    const pieces = [
      { agent: "boss", delta: "thr" },
      { delta: "ee" },
      { delta: "", reset: true },
      { delta: "three" },
    ];
    expect(deltas).toMatchObject(pieces);
    expect(JSON.stringify(world.store.entriesOf(posted.key))).not.toContain('"thr"');
  });

  it("parts of an answer that arrive after its turn has ended are not published", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    const deltas: unknown[] = [];
    world.bus.subscribe(`delta:${posted.key}`, (note) => deltas.push(note));
    const { turn } = await fakeAgents.next("boss");
    await world.runtime.cancel(posted.key, "ulla");
    turn.emitDelta("late");
    await world.settle();
    expect(deltas).toEqual([]);
  });
});
