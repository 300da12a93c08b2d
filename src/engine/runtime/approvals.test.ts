import { describe, expect, it } from "vitest";
import { act, complete, withId } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { openWorld, ULLA } from "../../../test/kit/simulated-world.js";
import { type ActionOptions, action, agent, swarm } from "../../../test/kit/swarms.js";

/** A boss that pays, and the arguments with which payments really ran. */
function shop(options: ActionOptions) {
  const fakeAgents = new FakeAgents();
  const paid: unknown[] = [];
  const pay = action(
    "pay",
    (args) => {
      paid.push(args);
      return "paid";
    },
    options,
  );
  const boss = agent("boss", {
    supervisor: true,
    entrypoint: true,
    actions: ["pay"],
    run: fakeAgents.mind("boss"),
  });
  return { fakeAgents, paid, definition: swarm([boss], { actions: [pay] }) };
}

const eurosOf = (args: unknown): number => Number(Object(args).euros);

const options: ActionOptions = {
  check: (args) =>
    Number.isInteger(eurosOf(args)) ? { ok: true, value: args } : { ok: false, message: "euros is missing" },
  approval: async (args) => {
    if (eurosOf(args) === 13) throw new Error("no idea");
    return eurosOf(args) > 10;
  },
};

async function waiting(given: ActionOptions = { approval: true }, limits = {}) {
  const parts = shop(given);
  const world = await openWorld(parts.definition, { limits });
  const posted = await world.runtime.post(ULLA, { body: "pay", taskId: "t" });
  (await parts.fakeAgents.next("boss")).answer(withId("p", act("pay", { euros: 50 })));
  await world.settle();
  expect(await world.status(posted.key)).toBe("paused");
  return { ...parts, world, posted, at: { key: posted.key, taskId: "t" } };
}

describe("approvals", () => {
  it("[AGT-APPR-01] a predicate chooses by the checked arguments; one that fails asks, and invalid arguments are never put to a person", async () => {
    const { fakeAgents, paid, definition } = shop(options);
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "pay", taskId: "t" });
    const calls = [{ euros: 5 }, { euros: 50 }, {}, { euros: 13 }].map((args, index) =>
      withId(`c${index}`, act("pay", args)),
    );
    (await fakeAgents.next("boss")).answer(...calls);
    const outcome = await posted.outcome;
    expect(outcome.approvals?.map(({ id }) => id)).toEqual(["c1", "c3"]);
    await world.settle();
    expect(paid).toEqual([{ euros: 5 }]);
    const decisions = ["c1", "c3"].map((callId) => ({ callId, decision: "approve" }) as const);
    await world.runtime.answerApprovals({ key: posted.key, taskId: "t" }, { decisions });
    const next = await fakeAgents.next("boss");
    expect(next.turn.results.map(({ content }) => content)).toEqual([
      "paid",
      "paid",
      "invalid arguments: euros is missing",
      "paid",
    ]);
    next.answer(complete("done"));
    await world.settle();
  });

  it("[AGT-APPR-02] changed arguments are checked before anything changes", async () => {
    const { world, at, paid, posted, fakeAgents } = await waiting(options);
    const approve = (args: Record<string, unknown>) =>
      world.runtime.answerApprovals(at, { decisions: [{ callId: "p", decision: "approve", args }] });
    await expect(approve({ euros: "many" })).rejects.toMatchObject({
      code: "bad_arguments",
      message: expect.stringContaining("euros is missing"),
    });
    expect(world.kinds(posted.key)).not.toContain("approval_answered");
    await approve({ euros: 20 });
    const next = await fakeAgents.next("boss");
    expect(paid).toEqual([{ euros: 20 }]);
    expect(next.turn.results[0]?.content).toContain('{"euros":20}');
    next.answer(complete("done"));
    await world.settle();
  });

  it("[AGT-APPR-03] a crash while a call waits, or after it was approved, neither loses nor repeats it", async () => {
    const { world, at, paid, posted, fakeAgents } = await waiting();
    await world.crash();
    await world.settle();
    expect(paid).toEqual([]);
    expect(await world.status(posted.key)).toBe("paused");
    await world.runtime.answerApprovals(at, { decisions: [{ callId: "p", decision: "approve" }] });
    await world.settle();
    fakeAgents.dropTurns();
    await world.crash();
    const next = await fakeAgents.next("boss");
    expect(next.turn.results[0]?.content).toBe("paid");
    expect(paid).toEqual([{ euros: 50 }]);
    next.answer(complete("done"));
    await world.settle();
  });

  it.each([
    ["", false],
    [" also after a restart", true],
  ])("[AGT-APPR-04] an approval expires, also if its task has left memory%s", async (_, restart) => {
    const { world, posted, paid, fakeAgents } = await waiting(
      { approval: true, approvalTimeout: 60_000 },
      { cachedTasks: 1 },
    );
    for (const taskId of ["a", "b"]) {
      await world.runtime.post(ULLA, { body: "something else", taskId });
      (await fakeAgents.next("boss")).answer(complete("done"));
      await world.settle();
    }
    await world.pass(30_000);
    if (restart) await world.crash();
    await world.pass(30_000);
    const next = await fakeAgents.next("boss");
    expect(next.turn.results[0]?.content).toBe("not approved in time");
    expect(paid).toEqual([]);
    expect(world.kinds(posted.key)).toContain("approval_answered");
    next.answer(complete("done"));
    await world.settle();
  });

  it("[AGT-APPR-08] tasks that wait for approval hold neither a turn's slot nor memory", async () => {
    const { fakeAgents, paid, definition } = shop({ approval: true });
    const world = await openWorld(definition, { limits: { turns: 1, cachedTasks: 1 } });
    const people = Array.from({ length: 4 }, (_, n) => ({ role: "user", id: `u${n}` }) as const);
    const keys: string[] = [];
    for (const [n, person] of people.entries()) {
      keys.push((await world.runtime.post(person, { body: "pay", taskId: "t" })).key);
      (await fakeAgents.next("boss")).answer(withId("p", act("pay", { euros: n })));
      await world.settle();
    }
    expect(world.runtime.stats).toMatchObject({ turns: 0, liveTasks: 1 });
    for (const key of keys) {
      const decisions = [{ callId: "p", decision: "approve" }] as const;
      await world.runtime.answerApprovals({ key, taskId: "t" }, { decisions });
      (await fakeAgents.next("boss")).answer(complete("done"));
      await world.settle();
      expect(await world.status(key)).toBe("completed");
    }
    expect(paid).toEqual([{ euros: 0 }, { euros: 1 }, { euros: 2 }, { euros: 3 }]);
    expect(world.runtime.stats.turns).toBe(0);
  });
});
