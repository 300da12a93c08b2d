import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { act, ask, complete, wait } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { OTTO, openWorld, ULLA } from "../../../test/kit/simulated-world.js";
import { action, agent, swarm } from "../../../test/kit/swarms.js";
import { systemLoop } from "../../journal/index.js";
import type { Turn } from "../agent.js";
import { type Schedulable, Scheduler } from "./scheduler.js";

const WORKERS = ["ann", "bob", "cem", "dee"];

function officeOfFakes() {
  const fakeAgents = new FakeAgents();
  const names = ["boss", ...WORKERS];
  const others = (name: string) => names.filter((other) => other !== name);
  const definition = swarm([
    agent("boss", {
      targets: others("boss"),
      supervisor: true,
      entrypoint: true,
      run: fakeAgents.mind("boss"),
    }),
    ...WORKERS.map((name) => agent(name, { targets: others(name), run: fakeAgents.mind(name) })),
  ]);
  return { fakeAgents, definition };
}

describe("scheduling", () => {
  it("[MAIL-OURS-03] an agent runs one turn at a time in a task, and different agents run concurrently", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("ann", "1"), ask("ann", "2"), ask("bob", "3"), wait());
    await world.settle();
    expect(fakeAgents.began).toEqual(["boss", "ann", "bob"]);
    (await fakeAgents.next("ann")).answer(ask("boss", "hm"));
    await world.settle();
    expect(fakeAgents.began).toEqual(["boss", "ann", "bob", "ann", "boss"]);
    (await fakeAgents.next("boss")).answer(complete("done"));
    await posted.outcome;
  });

  it("the same agent works in several tasks at once", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "1" });
    await world.runtime.post(ULLA, { body: "2" });
    await world.settle();
    expect(fakeAgents.begunTurns("boss")).toBe(2);
  });

  it("turns per process and per task are limited, a caller without running turns goes first, and waiting turns run when slots are free", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { turns: 3, turnsPerTask: 1 } });
    for (let task = 0; task < 4; task++) await world.runtime.post(ULLA, { body: `u${task}` });
    await world.settle();
    expect(fakeAgents.begunTurns("boss")).toBe(3);
    for (let task = 0; task < 4; task++) await world.runtime.post(OTTO, { body: `o${task}` });
    await world.settle();
    // One more than the limit: otherwise callers whose turns hang would block all others.
    expect(world.runtime.stats.turns).toBe(4);
    for (let left = 8; left > 0; left--) {
      (await fakeAgents.next("boss")).answer(complete("done"));
      await world.settle();
      expect(world.runtime.stats.turns).toBeLessThanOrEqual(4);
    }
    expect(world.runtime.stats).toMatchObject({ turns: 0, runningTasks: 0 });
  });

  it("a task with many agents runs no more turns than the limit per task", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { turnsPerTask: 2 } });
    await world.runtime.post(ULLA, { body: "go" });
    (await fakeAgents.next("boss")).answer(...WORKERS.map((name) => ask(name, name)), wait());
    await world.settle();
    expect(fakeAgents.began).toEqual(["boss", "ann", "bob"]);
    (await fakeAgents.next("bob")).answer(ask("ann", "you?"), wait());
    await world.settle();
    expect(fakeAgents.began).toEqual(["boss", "ann", "bob", "cem"]);
  });

  it("within a task the lowest tier goes first, then the lowest number", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { turnsPerTask: 1 } });
    await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    const boss = await fakeAgents.next("boss");
    boss.answer(ask("dee", "1"), ask("ann", "2"), wait());
    await world.runtime.post(ULLA, { body: "more", taskId: "t" });
    const order: string[] = [];
    for (const name of ["boss", "dee", "ann"]) {
      const { turn, answer } = await fakeAgents.next(name);
      order.push(turn.agent);
      answer(ask(name === "boss" ? "bob" : "boss", `from ${name}`), wait());
      await world.settle();
    }
    // Boss was first by tier, dee before ann by number; ann's question and bob's came later.
    expect(fakeAgents.began.slice(0, 4)).toEqual(["boss", "boss", "dee", "ann"]);
    expect(order).toEqual(["boss", "dee", "ann"]);
  });

  it("one busy instance does not starve another", async () => {
    const served: string[] = [];
    const run = (turn: Turn) => {
      served.push(turn.instance.id);
      const calls = [{ id: "1", name: "task_complete", args: { finish_message: "done" } }];
      return Promise.resolve({ calls });
    };
    const definition = swarm([agent("boss", { supervisor: true, entrypoint: true, run })]);
    const world = await openWorld(definition, { limits: { turns: 1 } });
    const noisy = Array.from({ length: 50 }, (_, index) => world.runtime.post(ULLA, { body: `${index}` }));
    const quiet = world.runtime.post(OTTO, { body: "just one" });
    await (await quiet).outcome;
    expect(served.indexOf("otto")).toBeLessThanOrEqual(2);
    await Promise.all((await Promise.all(noisy)).map(({ outcome }) => outcome));
    expect(served).toHaveLength(51);
  });

  it("a slot is held until the last result of the turn, including actions", async () => {
    let finish: (value: string) => void = () => {};
    const dig = action("dig", () => new Promise<string>((resolve) => (finish = resolve)));
    const fakeAgents = new FakeAgents();
    const definition = swarm(
      [agent("boss", { supervisor: true, entrypoint: true, actions: ["dig"], run: fakeAgents.mind("boss") })],
      { actions: [dig] },
    );
    const world = await openWorld(definition, { limits: { turns: 1 } });
    await world.runtime.post(ULLA, { body: "1" });
    (await fakeAgents.next("boss")).answer(act("dig"));
    await world.runtime.post(ULLA, { body: "2" });
    await world.settle();
    expect(fakeAgents.begunTurns("boss")).toBe(0);
    finish("done");
    for (let turn = 0; turn < 2; turn++) (await fakeAgents.next("boss")).answer(complete("done"));
    await world.settle();
    expect(world.runtime.stats.turns).toBe(0);
  });

  it("an ended turn frees its slot before it is durable, so that the next turn shares its commit", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { turns: 1, speculation: false } });
    await world.runtime.post(ULLA, { body: "1" });
    await world.runtime.post(ULLA, { body: "2" });
    await world.settle();
    expect(fakeAgents.began).toHaveLength(1);
    const begunWithin = async (commit: Promise<unknown>): Promise<number> => {
      await commit;
      return fakeAgents.began.length;
    };
    (await fakeAgents.next("boss")).answer(ask("ann", "1"), wait());
    // Batches are written in the order of the calls, so the answer is written after this one.
    const counted = begunWithin(world.store.commit({ appends: [] }));
    expect(await counted).toBe(2);
    await world.settle();
    // Ann's mail waits for the one slot, which the second task's boss has.
    expect(fakeAgents.began).toEqual(["boss", "boss"]);
  });

  it("many turns that waited for one slot do not block the event loop", async () => {
    const done = { calls: [{ id: "1", name: "task_complete", args: { finish_message: "done" } }] };
    const letGo: (() => void)[] = [];
    let sinceLoop = 0;
    let most = 0;
    const run = (turn: Turn) => {
      most = Math.max(most, ++sinceLoop);
      if (!turn.messages[0].message.body.startsWith("slow")) return done;
      return new Promise<typeof done>((resolve) => letGo.push(() => resolve(done)));
    };
    const definition = swarm([agent("boss", { supervisor: true, entrypoint: true, run })]);
    const world = await openWorld(definition, { limits: { turns: 1 } });
    await world.runtime.post(OTTO, { body: "slow" });
    // An instance without running turns may have one turn beyond the limit.
    await world.runtime.post(ULLA, { body: "slow" });
    const posts = Array.from({ length: 1_000 }, (_, n) => world.runtime.post(ULLA, { body: `${n}` }));
    const posted = await Promise.all(posts);
    expect(most).toBe(2);
    let watching = true;
    const watch = (): void => {
      sinceLoop = 0;
      if (watching) setImmediate(watch);
    };
    watch();
    for (const resolve of letGo) resolve();
    await Promise.all(posted.map(({ outcome }) => outcome));
    watching = false;
    expect(most).toBeLessThanOrEqual(512);
  });
});

interface PlannedTask extends Schedulable {
  readonly doing: Set<string>;
  /** Its turns, in order: whether each answers immediately. */
  readonly turns: boolean[];
}

const steps = fc.array(
  fc.oneof(
    fc.record({
      step: fc.constant("open"),
      instance: fc.constantFrom("ann", "ben", "cem"),
      turns: fc.array(fc.boolean(), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ step: fc.constantFrom("answer", "yield") }),
  ),
  { maxLength: 60 },
);

it("for any sequence of tasks and answers, every turn runs once and within the limits", async () => {
  const limits = fc.record({ turns: fc.integer({ min: 1, max: 8 }), turnsPerTask: fc.constant(8) });
  await fc.assert(
    fc.asyncProperty(limits, steps, async (given, plan) => {
      const running: PlannedTask[] = [];
      let started = 0;
      const scheduler: Scheduler<PlannedTask> = new Scheduler({
        limits: given,
        loop: systemLoop,
        start: (task) => {
          const atOnce = task.doing.size > 0 ? undefined : task.turns.shift();
          if (atOnce === undefined) return false;
          started++;
          if (atOnce) return true;
          const others = running.some(({ instanceKey }) => instanceKey === task.instanceKey);
          expect(running.length).toBeLessThan(others ? given.turns : Math.ceil(given.turns * 1.25));
          scheduler.occupy(task);
          task.doing.add("boss");
          running.push(task);
          return true;
        },
        idle: () => {},
      });
      const answer = () => {
        const task = running.shift();
        if (task === undefined) return;
        task.doing.delete("boss");
        scheduler.release(task);
        scheduler.offer(task);
      };
      let planned = 0;
      for (const one of plan) {
        if ("turns" in one) {
          planned += one.turns.length;
          const turns = [...one.turns];
          scheduler.offer({ instanceKey: one.instance, turns, doing: new Set(), queued: false });
        } else if (one.step === "answer") answer();
        else await Promise.resolve();
      }
      for (let rest = 0; rest < 2 * planned + 2; rest++) {
        await Promise.resolve();
        answer();
      }
      expect(started).toBe(planned);
      expect(scheduler.running).toBe(0);
    }),
    { numRuns: 500 },
  );
});

it("an answer that cannot be stored fails its turn and blocks no other", async () => {
  const answer = { calls: [{ id: "1", name: "task_complete", args: { finish_message: "x", n: 1n } }] };
  for (const run of [() => answer, () => Promise.resolve(answer)]) {
    const world = await openWorld(swarm([agent("boss", { supervisor: true, entrypoint: true, run })]));
    const posted = await world.runtime.post(ULLA, { body: "go" });
    const { status, error } = await posted.outcome;
    expect([status, error?.message]).toEqual(["failed", expect.stringContaining("bigint is not JSON")]);
    expect(world.runtime.stats.turns).toBe(0);
  }
});
