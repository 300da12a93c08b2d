import { describe, expect, it } from "vitest";
import { answerOf, ask, complete, wait } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { openWorld, ULLA, type World } from "../../../test/kit/simulated-world.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import type { LentMessage } from "./remote.js";

function servedOffice() {
  const fakeAgents = new FakeAgents();
  const definition = swarm([
    agent("boss", { targets: ["far"], supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") }),
    agent("far", { targets: ["boss"], remote: true }),
  ]);
  return { fakeAgents, definition };
}

const text = (words: string) => ({ text: words, calls: [] });
const body = (lending: LentMessage | undefined) => lending?.message.message.body;

function required(lending: LentMessage | undefined): LentMessage {
  if (lending === undefined) throw new Error("nothing was lent");
  return lending;
}

const answer = (world: World, lending: LentMessage, words: string) =>
  world.runtime.remote.answer(lending, lending.message.id, text(words));

describe("remote agents", () => {
  it("mail is lent to the next taker, and the answer takes effect like that of a local agent", async () => {
    const { fakeAgents, definition } = servedOffice();
    const world = await openWorld(definition);
    const asked = world.runtime.remote.next("far");
    const posted = await world.runtime.post(ULLA, { body: "go" });
    (await fakeAgents.next("boss")).answer(ask("far", "how many?"), wait());
    const lending = required(await asked);
    expect(lending).toMatchObject({ agent: "far", key: posted.key, attempt: 1 });
    expect(body(lending)).toBe("how many?");
    expect(lending.tools.map(({ name }) => name)).toContain("send_response");
    await answer(world, lending, "three");
    const boss = await fakeAgents.next("boss");
    expect(boss.turn.messages[0].message.body).toBe("three");
    boss.answer(complete("three"));
    expect((await posted.outcome).status).toBe("completed");
  });

  it("one message of a task is lent at a time, and two takers never get the same one", async () => {
    const { fakeAgents, definition } = servedOffice();
    const world = await openWorld(definition);
    const takers = [world.runtime.remote.next("far"), world.runtime.remote.next("far")];
    await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    // Two commits of the task in one group; each offers its mail.
    const boss = await fakeAgents.next("boss");
    boss.answer(ask("far", "1"), ask("far", "2"), wait());
    await Promise.resolve();
    await world.runtime.post(ULLA, { body: "more", taskId: "t" });
    const first = required(await Promise.race(takers));
    await world.settle();
    expect(world.kinds(first.key).filter((kind) => kind === "lent")).toHaveLength(1);
    await answer(world, first, "1");
    const lent = await Promise.all(takers);
    expect(lent.map((lending) => body(lending))).toEqual(["1", "2"]);
    expect(lent.map((lending) => lending?.attempt)).toEqual([1, 2]);
  });

  it("messages of several tasks are lent concurrently, the longest waiting one first", async () => {
    const { fakeAgents, definition } = servedOffice();
    const world = await openWorld(definition);
    for (const words of ["first", "second"]) {
      await world.runtime.post(ULLA, { body: words });
      (await fakeAgents.next("boss")).answer(ask("far", words), wait());
      await world.settle();
    }
    expect(body(await world.runtime.remote.next("far"))).toBe("first");
    expect(body(await world.runtime.remote.next("far"))).toBe("second");
  });

  it("a released message is lent again with a new attempt number, and an answer to the old attempt is refused", async () => {
    const { fakeAgents, definition } = servedOffice();
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "go" });
    (await fakeAgents.next("boss")).answer(ask("far", "how many?"), wait());
    const first = required(await world.runtime.remote.next("far"));
    await world.runtime.remote.release(first, first.message.id);
    const second = required(await world.runtime.remote.next("far"));
    expect(second.attempt).toBe(2);
    expect(second.message.id).toBe(first.message.id);
    await expect(answer(world, first, "late")).rejects.toMatchObject({ code: "stale_attempt" });
    await expect(world.runtime.remote.release(first, first.message.id)).rejects.toMatchObject({
      code: "stale_attempt",
    });
    await answer(world, second, "three");
    await expect(answer(world, second, "three")).rejects.toMatchObject({ code: "stale_attempt" });
  });

  it("a failure ends the turn once, and the agent that asked is notified", async () => {
    const { fakeAgents, definition } = servedOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go" });
    (await fakeAgents.next("boss")).answer(ask("far", "how many?"), wait());
    const lent = required(await world.runtime.remote.next("far"));
    const old = { ...lent, attempt: lent.attempt - 1 };
    const { id } = lent.message;
    await expect(world.runtime.remote.fail(old, id, "late")).rejects.toMatchObject({ code: "stale_attempt" });
    await world.runtime.remote.fail(lent, id, `out of ink ${"x".repeat(10_000)}`);
    await expect(world.runtime.remote.fail(lent, id, "twice")).rejects.toMatchObject({
      code: "stale_attempt",
    });
    await expect(answer(world, lent, "late")).rejects.toMatchObject({ code: "stale_attempt" });
    const boss = await fakeAgents.next("boss");
    expect(boss.turn.messages[0].message.body).toContain("out of ink");
    expect(boss.turn.messages[0].message.body.length).toBeLessThan(4_000);
    boss.answer(complete("no answer"));
    expect((await posted.outcome).status).toBe("completed");
  });

  it("a message that was lent when the process died is lent again, and an answer to the old attempt is refused", async () => {
    const { fakeAgents, definition } = servedOffice();
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "go" });
    (await fakeAgents.next("boss")).answer(ask("far", "1"), ask("far", "2"), wait());
    const before = required(await world.runtime.remote.next("far"));
    await world.crash();
    const after = required(await world.runtime.remote.next("far"));
    expect(after.message.id).toBe(before.message.id);
    expect(after.attempt).toBe(2);
    await expect(answer(world, before, "late")).rejects.toMatchObject({ code: "stale_attempt" });
    await answer(world, after, "1");
    expect(body(await world.runtime.remote.next("far"))).toBe("2");
  });

  it("after a cancellation the agent's next message is lent normally", async () => {
    const { fakeAgents, definition } = servedOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("far", "1"), wait());
    const withdrawn = required(await world.runtime.remote.next("far"));
    await world.runtime.cancel(posted.key, "user:ulla@desk");
    await expect(answer(world, withdrawn, "late")).rejects.toMatchObject({ code: "stale_attempt" });
    await world.runtime.post(ULLA, { body: "again", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("far", "2"), wait());
    expect(body(await world.runtime.remote.next("far"))).toBe("2");
  });

  it("a taker that aborts gets nothing, and the next taker gets the message", async () => {
    const { fakeAgents, definition } = servedOffice();
    const world = await openWorld(definition);
    const stop = new AbortController();
    const waiting = world.runtime.remote.next("far", { signal: stop.signal });
    stop.abort();
    expect(await waiting).toBeUndefined();
    await world.runtime.post(ULLA, { body: "go" });
    (await fakeAgents.next("boss")).answer(ask("far", "1"), wait());
    expect(body(await world.runtime.remote.next("far"))).toBe("1");
  });

  it("only the mailbox of a remote agent can be taken from", async () => {
    const { definition } = servedOffice();
    const world = await openWorld(definition);
    await expect(world.runtime.remote.next("boss")).rejects.toMatchObject({ code: "unknown_agent" });
  });

  it("waiting takers are released when the runtime closes", async () => {
    const { definition } = servedOffice();
    const world = await openWorld(definition);
    const waiting = world.runtime.remote.next("far");
    await world.runtime.close();
    expect(await waiting).toBeUndefined();
  });

  it("a lent message ends with its round, and the next round lends its own mail", async () => {
    const fakeAgents = new FakeAgents();
    const definition = swarm([
      agent("far", { targets: ["ann"], supervisor: true, entrypoint: true, remote: true }),
      agent("ann", { targets: ["far"], run: fakeAgents.mind("ann") }),
    ]);
    const world = await openWorld(definition, { limits: { taskTimeout: 1_000 } });
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t", maxSteps: 1 });
    const first = required(await world.runtime.remote.next("far"));
    await world.runtime.remote.answer(
      first,
      first.message.id,
      answerOf([ask("ann", "1")], () => "c"),
    );
    const notice = required(await world.runtime.remote.next("far"));
    expect(notice.message.message.subject).toBe("::maximum_steps_reached::");
    await world.pass(1_000);
    expect((await posted.outcome).status).toBe("failed");

    const again = await world.runtime.post(ULLA, { body: "once more", taskId: "t" });
    const second = required(await world.runtime.remote.next("far"));
    expect(body(second)).toBe("once more");
    await expect(answer(world, notice, "late")).rejects.toMatchObject({ code: "stale_attempt" });
    await world.runtime.remote.answer(
      second,
      second.message.id,
      answerOf([complete("done")], () => "d"),
    );
    expect((await again.outcome).status).toBe("completed");
  });
});
