import { describe, expect, it } from "vitest";
import { answerOf, ask, complete, wait } from "../../../test/kit/answers.js";
import { Puppets } from "../../../test/kit/puppets.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import { openWorld, ULLA, type World } from "../../../test/kit/world.js";
import type { Lending } from "./remote.js";

function servedOffice() {
  const puppets = new Puppets();
  const definition = swarm([
    agent("boss", { targets: ["far"], supervisor: true, entrypoint: true, run: puppets.mind("boss") }),
    agent("far", { targets: ["boss"], remote: true }),
  ]);
  return { puppets, definition };
}

const text = (words: string) => ({ text: words, calls: [] });
const body = (lending: Lending | undefined) => lending?.message.message.body;

function required(lending: Lending | undefined): Lending {
  if (lending === undefined) throw new Error("nothing was lent");
  return lending;
}

const answer = (world: World, lending: Lending, words: string) =>
  world.runtime.remote.answer(lending, lending.message.id, text(words));

describe("remote agents", () => {
  it("mail is lent to whoever asks next, and the answer goes on like any other agent's", async () => {
    const { puppets, definition } = servedOffice();
    const world = await openWorld(definition);
    const asked = world.runtime.remote.next("far");
    const posted = await world.runtime.post(ULLA, { body: "go" });
    (await puppets.next("boss")).answer(ask("far", "how many?"), wait());
    const lending = required(await asked);
    expect(lending).toMatchObject({ agent: "far", key: posted.key, attempt: 1 });
    expect(body(lending)).toBe("how many?");
    expect(lending.tools.map(({ name }) => name)).toContain("send_response");
    await answer(world, lending, "three");
    const boss = await puppets.next("boss");
    expect(boss.turn.messages[0].message.body).toBe("three");
    boss.answer(complete("three"));
    expect((await posted.outcome).status).toBe("completed");
  });

  it("one message of a task is lent at a time; two takers never get the same one", async () => {
    const { puppets, definition } = servedOffice();
    const world = await openWorld(definition);
    const takers = [world.runtime.remote.next("far"), world.runtime.remote.next("far")];
    await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    // Two commits of the task in one group: each offers its mail.
    const boss = await puppets.next("boss");
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

  it("messages of several tasks are lent side by side, the one that has waited longest first", async () => {
    const { puppets, definition } = servedOffice();
    const world = await openWorld(definition);
    for (const words of ["first", "second"]) {
      await world.runtime.post(ULLA, { body: words });
      (await puppets.next("boss")).answer(ask("far", words), wait());
      await world.settle();
    }
    expect(body(await world.runtime.remote.next("far"))).toBe("first");
    expect(body(await world.runtime.remote.next("far"))).toBe("second");
  });

  it("a released message is lent again with a new attempt, and the old one is refused", async () => {
    const { puppets, definition } = servedOffice();
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "go" });
    (await puppets.next("boss")).answer(ask("far", "how many?"), wait());
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

  it("what was lent when the process died is lent again, and the old answer is refused", async () => {
    const { puppets, definition } = servedOffice();
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "go" });
    (await puppets.next("boss")).answer(ask("far", "1"), ask("far", "2"), wait());
    const before = required(await world.runtime.remote.next("far"));
    await world.crash();
    const after = required(await world.runtime.remote.next("far"));
    expect(after.message.id).toBe(before.message.id);
    expect(after.attempt).toBe(2);
    await expect(answer(world, before, "late")).rejects.toMatchObject({ code: "stale_attempt" });
    await answer(world, after, "1");
    expect(body(await world.runtime.remote.next("far"))).toBe("2");
  });

  it("after a cancellation the agent's next mail is lent as if nothing had been", async () => {
    const { puppets, definition } = servedOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    (await puppets.next("boss")).answer(ask("far", "1"), wait());
    const withdrawn = required(await world.runtime.remote.next("far"));
    await world.runtime.cancel(posted.key, "user:ulla@desk");
    await expect(answer(world, withdrawn, "late")).rejects.toMatchObject({ code: "stale_attempt" });
    await world.runtime.post(ULLA, { body: "again", taskId: "t" });
    (await puppets.next("boss")).answer(ask("far", "2"), wait());
    expect(body(await world.runtime.remote.next("far"))).toBe("2");
  });

  it("a taker that gives up gets nothing, and takes nothing away from the next one", async () => {
    const { puppets, definition } = servedOffice();
    const world = await openWorld(definition);
    const stop = new AbortController();
    const waiting = world.runtime.remote.next("far", { signal: stop.signal });
    stop.abort();
    expect(await waiting).toBeUndefined();
    await world.runtime.post(ULLA, { body: "go" });
    (await puppets.next("boss")).answer(ask("far", "1"), wait());
    expect(body(await world.runtime.remote.next("far"))).toBe("1");
  });

  it("only remote agents have a mailbox to ask for", async () => {
    const { definition } = servedOffice();
    const world = await openWorld(definition);
    await expect(world.runtime.remote.next("boss")).rejects.toMatchObject({ code: "unknown_agent" });
  });

  it("takers that wait are sent home when the runtime closes", async () => {
    const { definition } = servedOffice();
    const world = await openWorld(definition);
    const waiting = world.runtime.remote.next("far");
    await world.runtime.close();
    expect(await waiting).toBeUndefined();
  });

  it("what is lent is let go with the round that it was about: the next round has mail of its own", async () => {
    const puppets = new Puppets();
    const definition = swarm([
      agent("far", { targets: ["ann"], supervisor: true, entrypoint: true, remote: true }),
      agent("ann", { targets: ["far"], run: puppets.mind("ann") }),
    ]);
    const world = await openWorld(definition, { limits: { taskTime: 1_000 } });
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
