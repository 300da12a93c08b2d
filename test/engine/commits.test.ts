import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { createLocalBus } from "../../src/bus/index.js";
import type { Carrier } from "../../src/engine/carrier.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { Store } from "../../src/engine/ports.js";
import type { PostedTask } from "../../src/library/instance.js";
import { openSqliteStore } from "../../src/store/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { ask, complete, interrupt, wait } from "../kit/answers.js";
import { FakeAgents } from "../kit/fake-agents.js";
import { type Fate, FaultyDisk, openSmallStore, openStoreOn } from "../kit/faulty-driver.js";
import { countingReads } from "../kit/replacing.js";
import { folder, openRoom, storedEntries, unknownResults } from "../kit/rooms.js";
import { action, agent, swarm } from "../kit/swarms.js";
import { type Gate, gate, loopTurns, until } from "../kit/waiting.js";

/** Every message causes a payment; the payments end when the test releases them. */
function payDesk(idempotent = false) {
  const paying = gate();
  let begun = 0;
  let paid = 0;
  let turns = 0;
  const pay = action(
    "pay",
    async () => {
      begun++;
      await paying.passed;
      paid++;
      return "receipt";
    },
    { idempotent },
  );
  const desk = agent("desk", {
    supervisor: true,
    entrypoint: true,
    actions: ["pay"],
    run: ({ results }) => {
      turns++;
      const receipt = results.find(({ name }) => name === "pay")?.content;
      return receipt === undefined
        ? { calls: [{ id: "1", name: "pay", args: {} }] }
        : { calls: [{ id: "2", name: "task_complete", args: { finish_message: receipt } }] };
    },
  });
  const definition = swarm([desk], { actions: [pay] });
  return { definition, paying, begun: () => begun, paid: () => paid, turns: () => turns };
}

/**
 * Sixteen payments are running when the writes begin to fail. They end during the outage, which then passes. Every user
 * must still receive the receipt.
 */
async function payThrough(
  store: Store,
  desk: ReturnType<typeof payDesk>,
  trouble: { begin(): void; lasts: () => Promise<unknown>; end(): void },
): Promise<void> {
  const { room, problems } = await openRoom({ swarm: desk.definition, store });
  const posted = [];
  for (let user = 0; user < 16; user++) posted.push(await room.user(`u${user}`).post("go"));
  await until(() => desk.begun() === 16);
  await loopTurns(4);
  trouble.begin();
  desk.paying.open();
  await trouble.lasts();
  trouble.end();
  const told = await Promise.all(posted.map(({ outcome }) => outcome));
  expect(told.map(({ message }) => message.message.body)).toEqual(posted.map(() => "receipt"));
  expect({ paid: desk.paid(), turns: desk.turns() }).toEqual({ paid: 16, turns: 32 });
  for (const { key } of posted) {
    const entries = await storedEntries(store, key);
    expect(unknownResults(entries)).toEqual([]);
    expect(JSON.stringify(entries)).not.toContain("the process ended");
  }
  expect(problems.filter(({ code }) => code !== "store_degraded")).toEqual([]);
  await room.close();
}

describe("a write that fails for a while", () => {
  for (const fate of ["transient", "not written, not told", "written, not told"] satisfies Fate[]) {
    for (const idempotent of [false, true]) {
      const kind = idempotent ? "may be repeated" : "may not be repeated";
      it(`[ENGINE-A-3, ENGINE-D-6] (${fate}) a temporary write failure loses no result of an action that ${kind}, and rejects no message`, async () => {
        const disk = new FaultyDisk();
        const store = await openStoreOn(disk);
        let writes = 0;
        await payThrough(store, payDesk(idempotent), {
          begin: () => {
            // The next five writes fail, then writes succeed again.
            disk.fate = () => (++writes <= 5 ? fate : undefined);
          },
          lasts: () => until(() => writes > 0),
          end: () => {},
        });
        expect(writes).toBeGreaterThan(0);
      });
    }
  }

  it("[ENGINE-A-3] (another connection holds the lock) a temporary write failure loses no result, and rejects no message", async () => {
    const directory = folder();
    const store = await openSqliteStore({ directory });
    const other = new Database(join(directory, "mailroom.db"));
    const desk = payDesk();
    await payThrough(store, desk, {
      begin: () => other.exec("BEGIN IMMEDIATE"),
      lasts: async () => {
        await until(() => desk.paid() === 16);
        // Longer than the driver waits, so that the write fails.
        await new Promise((resolve) => setTimeout(resolve, 1_500));
      },
      end: () => other.exec("ROLLBACK"),
    });
    other.close();
    await store.close();
  });

  it("[ENGINE-A-3] a result and a message from before a write failure are both acknowledged after it", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const fakeAgents = new FakeAgents();
    const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
    const { room } = await openRoom({ swarm: swarm([boss]), store });
    const ann = room.user("ann");
    const first = await ann.post("one", { taskId: "t" });
    const turn = await fakeAgents.next("boss");
    await loopTurns(4);
    let failures = 0;
    disk.fate = () => (failures++ < 3 ? "transient" : undefined);
    const second = ann.post("two", { taskId: "t" });
    turn.answer(complete("1"));
    expect((await first.outcome).message.message.body).toBe("1");
    const { outcome } = await second;
    (await fakeAgents.next("boss")).answer(complete("2"));
    expect((await outcome).message.message.body).toBe("2");
    expect(fakeAgents.began).toEqual(["boss", "boss"]);
  });

  it("an interrupted turn does not run again before the store can be written", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const fakeAgents = new FakeAgents();
    const office = swarm([
      agent("boss", { supervisor: true, entrypoint: true, targets: ["cem"], run: fakeAgents.mind("boss") }),
      agent("cem", { targets: ["boss"], run: fakeAgents.mind("cem") }),
    ]);
    const { room } = await openRoom({ swarm: office, store });
    const ann = room.user("ann");
    await ann.post("one", { taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("cem", "how many?"), wait());
    const asked = await fakeAgents.next("cem");
    await ann.post("two", { taskId: "t" });
    const turn = await fakeAgents.next("boss");
    disk.fate = () => "transient";
    const late = room.user("ben").post("three");
    await until(() => store.writer.degraded);
    turn.answer(interrupt("cem", "stop"), wait());
    await until(() => asked.turn.signal.aborted);
    await loopTurns(10);
    expect(fakeAgents.begunTurns("cem")).toBe(0);
    disk.fate = () => undefined;
    const again = await fakeAgents.next("cem");
    expect(again.turn.messages.map(({ msg_type }) => msg_type)).toContain("interrupt");
    await late;
  });
});

describe("a message that the store refuses for good", () => {
  it("[ENGINE-A-3, ENGINE-D-6] a message that the store refuses does not affect the running turn and action of its task", async () => {
    const desk = payDesk();
    const { room } = await openRoom({ swarm: desk.definition });
    const ann = room.user("ann");
    const other = await ann.post("other", { taskId: "other" });
    const posted = await ann.post("go", { taskId: "t" });
    await until(() => desk.begun() === 2);
    const taken = await room.store.tasks.byKey(other.key);
    if (taken === undefined) throw new Error("there is no such task");
    // A second task with an id that is in use.
    const rows = [{ kind: "task.put", row: { ...taken, key: posted.key.replace(/.$/, "x") } }];
    await expect(room.runtime.post(ann.id, { body: "never", taskId: "t", rows })).rejects.toThrow();
    desk.paying.open();
    expect((await posted.outcome).message.message.body).toBe("receipt");
    expect((await other.outcome).message.message.body).toBe("receipt");
    const entries = await storedEntries(room.store, posted.key);
    expect(unknownResults(entries)).toEqual([]);
    expect(JSON.stringify(entries)).not.toContain("never");
    expect(JSON.stringify(entries)).not.toContain("the process ended");
    expect(desk.paid()).toBe(2);
  });
});

describe("a swarm that is replaced", () => {
  it("[ENGINE-A-4] a new definition reaches more running tasks than the write queue can hold, and disturbs none", async () => {
    const desk = payDesk();
    const store = await openSmallStore(32);
    const { room, problems } = await openRoom({ swarm: desk.definition, store });
    const posted: PostedTask[] = [];
    for (let user = 0; user < 150; user++) posted.push(await room.user(`u${user}`).post("go"));
    await until(() => desk.begun() === 150);
    await loopTurns(4);
    const changed: SwarmDefinition = { ...desk.definition, hash: "two" };
    room.runtime.redefine(changed);
    const redefined = async () => {
      for (const { key } of posted) {
        if (!(await storedEntries(store, key)).some(({ t }) => t === "redefined")) return false;
      }
      return true;
    };
    await until(redefined);
    desk.paying.open();
    for (const { outcome } of posted) expect((await outcome).message.message.body).toBe("receipt");
    expect({ paid: desk.paid(), turns: desk.turns(), problems }).toEqual({
      paid: 150,
      turns: 300,
      problems: [],
    });
  });
});

describe("more messages than the write queue can hold", () => {
  it("[ENGINE-B-5] excess messages are rejected, and running tasks lose neither a turn nor an answer", async () => {
    const thinking = new Map<string, Gate>();
    let turns = 0;
    const worker = agent("worker", {
      supervisor: true,
      entrypoint: true,
      run: async ({ instance, messages: [{ message }] }) => {
        turns++;
        if (message.body === "work") {
          const begun = gate();
          thinking.set(instance.id, begun);
          await begun.passed;
        }
        return { calls: [{ id: "1", name: "task_complete", args: { finish_message: "done" } }] };
      },
    });
    const store = await openSmallStore(64);
    const { room, problems } = await openRoom({ swarm: swarm([worker]), store });
    const posted = [];
    for (let user = 0; user < 40; user++) posted.push(await room.user(`u${user}`).post("work"));
    await until(() => thinking.size === 40);
    await loopTurns(4);
    // All at once: first the excess messages, then all answers.
    const flood = Array.from({ length: 400 }, (_, index) =>
      room
        .user(`f${index}`)
        .post("flood")
        .then(
          () => "taken",
          ({ code }: { code: string }) => code,
        ),
    );
    for (const { open } of thinking.values()) open();
    for (const { outcome } of posted) expect((await outcome).status).toBe("completed");
    const fates = await Promise.all(flood);
    const taken = fates.filter((fate) => fate === "taken").length;
    const refused = fates.filter((fate) => fate === "store_busy" || fate === "overloaded").length;
    expect({ taken: taken > 0, refused: refused > 0, sum: taken + refused }).toEqual({
      taken: true,
      refused: true,
      sum: 400,
    });
    await until(() => turns === 40 + taken);
    expect(problems).toEqual([]);
  });
});

describe("a store that has failed for good", () => {
  it("[ENGINE-C-4] a permanent store failure is reported once, and nothing is written or read afterwards", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { store: watched, reads } = countingReads(store);
    const clock = new VirtualClock();
    const fakeAgents = new FakeAgents();
    const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
    const { room, problems } = await openRoom({ swarm: swarm([boss]), store: watched, clock });
    const posted = [];
    for (let user = 0; user < 50; user++) posted.push(await room.user(`u${user}`).post("go"));
    const turns = [];
    for (const _ of posted) turns.push(await fakeAgents.next("boss"));
    await loopTurns(4);
    disk.fate = () => "final";
    for (const turn of turns) turn.answer(complete("done"));
    const told = await Promise.allSettled(posted.map(({ outcome }) => outcome));
    await loopTurns(10);
    const before = { attempts: disk.attempts, reads: reads() };
    for (let second = 0; second < 60; second++) {
      clock.advance(1_000);
      await loopTurns(4);
    }
    expect({ attempts: disk.attempts, reads: reads() }).toEqual(before);
    for (const outcome of told) expect(outcome).toMatchObject({ reason: { code: "store_failed" } });
    expect(problems.map(({ code }) => code)).toEqual(["store_failed"]);
    await expect(room.user("ann").post("more")).rejects.toMatchObject({
      code: expect.stringMatching(/^(store_failed|closed)$/),
    });
    expect(fakeAgents.began).toHaveLength(50);
  });
});

describe("a reactor that throws", () => {
  it("[ENGINE-C-1] a failure after a commit is reported with its task, and the user still gets the answer", async () => {
    const fakeAgents = new FakeAgents();
    const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
    const inner = createLocalBus();
    let broken = false;
    const bus = {
      ...inner,
      publish: (channel: string, note: unknown) => {
        if (broken) throw new Error("the bus is broken");
        inner.publish(channel, note);
      },
    };
    const { room, problems } = await openRoom({ swarm: swarm([boss]), bus });
    const posted = await room.user("ann").post("go", { taskId: "t" });
    const turn = await fakeAgents.next("boss");
    await loopTurns(4);
    broken = true;
    turn.answer(complete("done"));
    expect((await posted.outcome).message.message.body).toBe("done");
    expect(problems).not.toEqual([]);
    expect(problems.every(({ task }) => task === posted.key)).toBe(true);
    broken = false;
    const again = await room.user("ann").post("again", { taskId: "t" });
    (await fakeAgents.next("boss")).answer(complete("once more"));
    expect((await again.outcome).message.message.body).toBe("once more");
  });
});

describe("a carrier", () => {
  it("[ENGINE-C-1] a carrier that throws when it receives mail is reported, and the user still gets the answer", async () => {
    const boss = agent("boss", {
      targets: ["them@there"],
      interswarm: true,
      supervisor: true,
      entrypoint: true,
      run: () => ({
        calls: [
          {
            id: "1",
            name: "send_request",
            args: { target: "them@there", subject: "news", body: "big news" },
          },
          { id: "2", name: "task_complete", args: { finish_message: "told them" } },
        ],
      }),
    });
    const carrier: Carrier = {
      owns: (name) => name === "there",
      rows: () => [],
      wake: () => {
        throw new Error("not connected");
      },
    };
    const { room, problems } = await openRoom({ swarm: swarm([boss]), carriers: [carrier] });
    const posted = await room.user("ann").post("tell them");
    expect((await posted.outcome).message.message.body).toBe("told them");
    expect(problems).not.toEqual([]);
    expect(problems.every(({ task }) => task === posted.key)).toBe(true);
  });
});

describe("a listener for problems", () => {
  it("[ENGINE-C-9] a throwing problem listener does not prevent an answer", async () => {
    const fakeAgents = new FakeAgents();
    const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
    const inner = createLocalBus();
    const bus = {
      ...inner,
      publish: () => {
        throw new Error("the bus is broken");
      },
    };
    let told = 0;
    const { room } = await openRoom({
      swarm: swarm([boss]),
      bus,
      onProblem: () => {
        told++;
        throw new Error("the listener is broken");
      },
    });
    const posted = await room.user("ann").post("go", { taskId: "t" });
    (await fakeAgents.next("boss")).answer(complete("done"));
    expect((await posted.outcome).message.message.body).toBe("done");
    expect(told).toBeGreaterThan(0);
  });

  it("[ENGINE-C-9] a throwing problem listener does not stop a task whose message the store refused", async () => {
    const fakeAgents = new FakeAgents();
    const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { room } = await openRoom({
      swarm: swarm([boss]),
      store,
      onProblem: () => {
        throw new Error("the listener is broken");
      },
    });
    const ann = room.user("ann");
    const posted = await ann.post("go", { taskId: "t" });
    const turn = await fakeAgents.next("boss");
    await loopTurns(4);
    const refused = new Error("not this one");
    disk.refuse = ({ appends }) => (appends.some(({ data }) => data.includes("never")) ? refused : undefined);
    await expect(ann.post("never", { taskId: "t" })).rejects.toThrow();
    // The running turn was kept or starts again: in both cases the user gets the answer.
    turn.answer(complete("done"));
    void (async () => {
      for (;;) (await fakeAgents.next("boss")).answer(complete("done"));
    })();
    await until(async () => (await store.tasks.byKey(posted.key))?.status === "completed");
  });
});
