/** Mail from other swarms, and the time limit for their answers: the runtime's part of federation. */
import { describe, expect, it } from "vitest";
import { ask, complete, respond } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { openWorld, ULLA, type World } from "../../../test/kit/simulated-world.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import { createAgentAddress } from "../../mail/address.js";
import { buildRequest } from "../../mail/build.js";
import type { Carrier } from "../carrier.js";
import type { InstanceId } from "../ports.js";
import type { ReceiveInput } from "./receipts.js";

const NORTH: InstanceId = { role: "swarm", id: "north" };
const OWNER = "user:nils@north";

function office() {
  const fakeAgents = new FakeAgents();
  const boss = agent("boss", {
    targets: ["x@north"],
    supervisor: true,
    entrypoint: true,
    interswarm: true,
    run: fakeAgents.mind("boss"),
  });
  return { fakeAgents, definition: swarm([boss]) };
}

/** A request of `x@north` to the boss. */
function mail(world: World, taskId: string, more: Partial<ReceiveInput> = {}): ReceiveInput {
  const message = buildRequest({
    id: world.ids.uuid(),
    timestamp: new Date(world.clock.now()).toISOString(),
    taskId,
    sender: createAgentAddress("x@north"),
    recipient: createAgentAddress("boss"),
    subject: "question",
    // Different each time, because three equal messages count as a loop.
    body: `how warm is it at ${world.ids.uuid()}?`,
    senderSwarm: "north",
    recipientSwarm: "desk",
  });
  return {
    instance: NORTH,
    taskId,
    owner: OWNER,
    contributors: [OWNER, "swarm:north@desk"],
    message,
    to: ["boss"],
    adopts: true,
    resumes: true,
    ...more,
  };
}

describe("mail from another swarm", () => {
  it("[MAIL-INST-04, MAIL-INST-06] adopts its task with the original owner, and is durable when it is acknowledged", async () => {
    const { fakeAgents, definition } = office();
    const world = await openWorld(definition);
    const taken = await world.runtime.receive(mail(world, "t"));
    expect(taken).toMatchObject({ taskId: "t", opened: true, number: 2 });
    expect(await world.store.lastNumber(taken.key)).toBe(2);
    const facts = await world.runtime.read(taken.key, ({ owner, contributors, instance }) => ({
      owner,
      contributors: [...contributors],
      instance,
    }));
    expect(facts).toEqual({
      owner: OWNER,
      contributors: [OWNER, "swarm:north@desk"],
      instance: NORTH,
    });
    expect(await world.runtime.find(ULLA, "t")).toBeUndefined();
    (await fakeAgents.next("boss")).answer(respond("x@north", "warm"));
  });

  it("enters the task that an earlier message adopted, even if both arrive at the same time", async () => {
    const { fakeAgents, definition } = office();
    const world = await openWorld(definition);
    const [first, second] = await Promise.all([
      world.runtime.receive(mail(world, "t")),
      world.runtime.receive(mail(world, "t")),
    ]);
    expect([first.opened, second.opened]).toEqual([true, false]);
    expect(second.key).toBe(first.key);
    (await fakeAgents.next("boss")).answer(respond("x@north", "warm"));
    (await fakeAgents.next("boss")).answer(respond("x@north", "still warm"));
  });

  it("for an unknown task is refused if it may not be adopted, and leaves nothing behind", async () => {
    const { definition } = office();
    const world = await openWorld(definition);
    const input = mail(world, "t", { adopts: false });
    await expect(world.runtime.receive(input)).rejects.toMatchObject({ code: "unknown_task" });
    expect((await world.store.tasks.list({ limit: 10 })).tasks).toEqual([]);
    expect(await world.runtime.receive(mail(world, "t"))).toMatchObject({ opened: true });
  });

  it("cannot change the owner of a task", async () => {
    const { definition } = office();
    const world = await openWorld(definition);
    const { key } = await world.runtime.receive(mail(world, "t"));
    const input = mail(world, "t", { owner: "user:somebody@else" });
    await expect(world.runtime.receive(input)).rejects.toMatchObject({ code: "owner_mismatch" });
    expect(await world.runtime.read(key, ({ owner }) => owner)).toBe(OWNER);
  });

  it("resumes an ended task only if that is allowed; otherwise it is stored without a turn", async () => {
    const { fakeAgents, definition } = office();
    const world = await openWorld(definition);
    const { key } = await world.runtime.receive(mail(world, "t"));
    (await fakeAgents.next("boss")).answer(complete("warm"));
    await world.settle();
    expect(await world.status(key)).toBe("completed");
    await world.runtime.receive(mail(world, "t", { resumes: false }));
    await world.settle();
    expect([await world.status(key), fakeAgents.begunTurns("boss")]).toEqual(["completed", 0]);
    expect(world.kinds(key).at(-1)).toBe("sent");
    await world.runtime.receive(mail(world, "t"));
    expect(await world.status(key)).toBe("running");
    await fakeAgents.next("boss");
  });
});

describe("the answer of another swarm", () => {
  const accepts: Carrier = { owns: () => true, rows: () => ({ ok: true }) };
  const limits = { replyTimeout: 60_000 };

  it("is awaited until its time limit; then the sender is notified, even after a restart", async () => {
    const { fakeAgents, definition } = office();
    const world = await openWorld(definition, { carriers: [accepts], limits });
    const posted = await world.runtime.post(ULLA, { body: "ask north" });
    (await fakeAgents.next("boss")).answer(ask("x@north", "how cold?"));
    await world.pass(59_999);
    expect(fakeAgents.begunTurns("boss")).toBe(0);
    await world.crash();
    await world.pass(1);
    const told = await fakeAgents.next("boss");
    expect(told.turn.messages[0].message.body).toContain("no answer came within 60 s");
    told.answer(complete("never mind"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("completed");
  });
});
