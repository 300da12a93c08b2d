/** Decisions H1: tasks that stand still until an agent has what it needs. */
import { describe, expect, it } from "vitest";
import { ask, complete, wait } from "../../../test/kit/answers.js";
import { Puppets } from "../../../test/kit/puppets.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import { openWorld, ULLA } from "../../../test/kit/world.js";
import { TurnHeldError } from "../agent.js";

const NO_KEY = () => new TurnHeldError("credentials", "there is no key");

function puppetOffice() {
  const puppets = new Puppets();
  const definition = swarm([
    agent("boss", {
      targets: ["ann", "bob"],
      supervisor: true,
      entrypoint: true,
      run: puppets.mind("boss"),
    }),
    agent("ann", { targets: ["boss"], run: puppets.mind("ann") }),
    agent("bob", { targets: ["boss"], run: puppets.mind("bob") }),
  ]);
  return { puppets, definition };
}

describe("held tasks", () => {
  it("take no slot and leave memory, also when several agents want something at once", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition, { limits: { restingTasks: 0 } });
    const posted = await world.runtime.post(ULLA, { body: "go" });
    (await puppets.next("boss")).answer(ask("ann", "1"), ask("bob", "2"), wait());
    const [ann, bob] = [await puppets.next("ann"), await puppets.next("bob")];
    ann.fail(NO_KEY());
    expect((await posted.outcome).reason).toBe("credentials");
    bob.fail(NO_KEY());
    await world.settle();
    expect(world.runtime.figures).toEqual({ liveTasks: 0, runningTasks: 0, turns: 0 });
    world.runtime.setParams(ULLA, { key: "k" });
    (await puppets.next("ann")).answer(wait());
    (await puppets.next("bob")).answer(wait());
  });

  it("go on when what they need came while the agent was still finding out that it is missing", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    const first = await puppets.next("boss");
    world.runtime.setParams(ULLA, { key: "k" });
    first.fail(NO_KEY());
    await world.settle();
    const second = await puppets.next("boss");
    expect(second.turn.params).toEqual({ key: "k" });
    second.answer(complete("done"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("go on when what they need came before it was durable that they are held", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    const first = await puppets.next("boss");
    first.fail(NO_KEY());
    while (world.store.waiting === 0) await Promise.resolve();
    world.runtime.setParams(ULLA, { key: "k" });
    await world.settle();
    (await puppets.next("boss")).answer(complete("done"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("go on also if the next commit failed before anybody was told that they are held", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    (await puppets.next("boss")).answer(ask("ann", "1"), ask("bob", "2"), wait());
    const [ann, bob] = [await puppets.next("ann"), await puppets.next("bob")];
    await world.settle();
    world.store.refuse = ({ appends }) =>
      appends.some(({ data }) => data.includes('"t":"turn"')) ? new Error("no") : undefined;
    ann.fail(NO_KEY());
    bob.answer(wait());
    await world.settle();
    expect(world.kinds(posted.key).at(-1)).toBe("paused");
    world.store.refuse = () => undefined;
    // The task is read again.
    await world.pass(1_000);
    world.runtime.setParams(ULLA, { key: "k" });
    await world.settle();
    expect(world.kinds(posted.key)).toContain("resumed");
    expect([puppets.begunTurns("ann"), puppets.begunTurns("bob")]).toEqual([1, 1]);
  });

  describe("one that cannot go on keeps no other from it", () => {
    async function twoHeld() {
      const { puppets, definition } = puppetOffice();
      const world = await openWorld(definition, { limits: { speculation: false } });
      const hold = async (body: string) => {
        const posted = await world.runtime.post(ULLA, { body });
        (await puppets.next("boss")).fail(NO_KEY());
        await posted.outcome;
        return posted.key;
      };
      return { world, puppets, broken: await hold("broken"), sound: await hold("sound") };
    }

    it("when the owner calls", async () => {
      const { world, puppets, broken, sound } = await twoHeld();
      world.store.refuse = ({ appends }) =>
        appends.some(({ journal }) => journal === broken) ? new Error("no") : undefined;
      world.runtime.setParams(ULLA, { key: "k" });
      await world.settle();
      expect(puppets.begunTurns("boss")).toBe(1);
      expect(world.kinds(sound).at(-1)).toBe("resumed");
    });

    it("when the process starts", async () => {
      const { world, puppets, broken, sound } = await twoHeld();
      world.store.tear(broken);
      await world.crash();
      await world.settle();
      expect(puppets.begunTurns("boss")).toBe(1);
      expect(world.kinds(sound).at(-1)).toBe("resumed");
    });
  });
});
