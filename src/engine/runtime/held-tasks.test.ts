/** Tasks that pause until an agent has the credentials it needs (decision H1). */
import { describe, expect, it } from "vitest";
import { ask, complete, wait } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { openWorld, ULLA } from "../../../test/kit/simulated-world.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import { TurnHeldError } from "../agent.js";

const NO_KEY = () => new TurnHeldError("credentials", "there is no key");

function officeOfFakes() {
  const fakeAgents = new FakeAgents();
  const definition = swarm([
    agent("boss", {
      targets: ["ann", "bob"],
      supervisor: true,
      entrypoint: true,
      run: fakeAgents.mind("boss"),
    }),
    agent("ann", { targets: ["boss"], run: fakeAgents.mind("ann") }),
    agent("bob", { targets: ["boss"], run: fakeAgents.mind("bob") }),
  ]);
  return { fakeAgents, definition };
}

describe("held tasks", () => {
  it("take no slot and leave memory, even if several agents lack something at once", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { cachedTasks: 0 } });
    const posted = await world.runtime.post(ULLA, { body: "go" });
    (await fakeAgents.next("boss")).answer(ask("ann", "1"), ask("bob", "2"), wait());
    const [ann, bob] = [await fakeAgents.next("ann"), await fakeAgents.next("bob")];
    ann.fail(NO_KEY());
    expect((await posted.outcome).reason).toBe("credentials");
    bob.fail(NO_KEY());
    await world.settle();
    expect(world.runtime.stats).toEqual({ liveTasks: 0, runningTasks: 0, turns: 0 });
    world.runtime.setParams(ULLA, { key: "k" });
    (await fakeAgents.next("ann")).answer(wait());
    (await fakeAgents.next("bob")).answer(wait());
  });

  it("continue if the missing value arrives during the turn that reports it", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    const first = await fakeAgents.next("boss");
    world.runtime.setParams(ULLA, { key: "k" });
    first.fail(NO_KEY());
    await world.settle();
    const second = await fakeAgents.next("boss");
    expect(second.turn.params).toEqual({ key: "k" });
    second.answer(complete("done"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("continue if the missing value arrives before the pause is durable", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    const first = await fakeAgents.next("boss");
    first.fail(NO_KEY());
    while (world.store.waiting === 0) await Promise.resolve();
    world.runtime.setParams(ULLA, { key: "k" });
    await world.settle();
    (await fakeAgents.next("boss")).answer(complete("done"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("continue if the next commit fails before the pause is announced", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    (await fakeAgents.next("boss")).answer(ask("ann", "1"), ask("bob", "2"), wait());
    const [ann, bob] = [await fakeAgents.next("ann"), await fakeAgents.next("bob")];
    await world.settle();
    world.store.refuse = ({ appends }) =>
      appends.some(({ data }) => data.includes('"t":"turn"')) ? new Error("no") : undefined;
    ann.fail(NO_KEY());
    bob.answer(wait());
    await world.settle();
    expect(world.kinds(posted.key).at(-1)).toBe("paused");
    world.store.refuse = () => undefined;
    // The task is reloaded.
    await world.pass(1_000);
    world.runtime.setParams(ULLA, { key: "k" });
    await world.settle();
    expect(world.kinds(posted.key)).toContain("resumed");
    expect([fakeAgents.begunTurns("ann"), fakeAgents.begunTurns("bob")]).toEqual([1, 1]);
  });

  describe("one that cannot be retried does not block the others", () => {
    async function twoHeld() {
      const { fakeAgents, definition } = officeOfFakes();
      const world = await openWorld(definition, { limits: { speculation: false } });
      const hold = async (body: string) => {
        const posted = await world.runtime.post(ULLA, { body });
        (await fakeAgents.next("boss")).fail(NO_KEY());
        await posted.outcome;
        return posted.key;
      };
      return { world, fakeAgents, broken: await hold("broken"), sound: await hold("sound") };
    }

    it("when the owner supplies a value", async () => {
      const { world, fakeAgents, broken, sound } = await twoHeld();
      world.store.refuse = ({ appends }) =>
        appends.some(({ journal }) => journal === broken) ? new Error("no") : undefined;
      world.runtime.setParams(ULLA, { key: "k" });
      await world.settle();
      expect(fakeAgents.begunTurns("boss")).toBe(1);
      expect(world.kinds(sound).at(-1)).toBe("resumed");
    });

    it("when the process starts", async () => {
      const { world, fakeAgents, broken, sound } = await twoHeld();
      world.store.damage(broken);
      await world.crash();
      await world.settle();
      expect(fakeAgents.begunTurns("boss")).toBe(1);
      expect(world.kinds(sound).at(-1)).toBe("resumed");
    });
  });
});
