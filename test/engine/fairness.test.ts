import { describe, expect, it } from "vitest";
import { TurnHeldError } from "../../src/engine/agent.js";
import { complete } from "../kit/answers.js";
import { FakeAgents } from "../kit/fake-agents.js";
import { openRoom } from "../kit/rooms.js";
import { action, agent, swarm } from "../kit/swarms.js";
import { loopTurns, until } from "../kit/waiting.js";

/** An agent that never answers the message `hang`. */
function patient() {
  const begun: string[] = [];
  const definition = swarm([
    agent("clerk", {
      supervisor: true,
      entrypoint: true,
      run: async ({ instance, messages: [{ id, message }] }) => {
        begun.push(instance.id);
        if (message.body === "hang") await new Promise(() => {});
        return { calls: [{ id, name: "task_complete", args: { finish_message: message.body } }] };
      },
    }),
  ]);
  return { begun, definition };
}

describe("turns", () => {
  it("[ENGINE-B-6] hanging turns of other callers never block a caller's first turn", async () => {
    const { begun, definition } = patient();
    const { room } = await openRoom({ swarm: definition, limits: { turns: 16 } });
    for (let round = 0; round < 12; round++) {
      for (let user = 0; user < 4; user++) await room.user(`noisy ${user}`).post("hang");
    }
    await until(() => begun.length >= 16);
    await loopTurns(10);
    expect((await room.user("ann").ask("hello")).status).toBe("completed");
    expect((await room.user("bob").ask("hello")).status).toBe("completed");
  });

  it("[ENGINE-B-6] a fifth caller is served while four callers hang with the default number of turns", async () => {
    const { begun, definition } = patient();
    const { room } = await openRoom({ swarm: definition });
    const limit = room.runtime.limits.turns;
    for (let post = 0; post < limit; post++) await room.user(`noisy ${post % 4}`).post("hang");
    await until(() => begun.length >= limit);
    await loopTurns(10);
    expect((await room.user("ann").ask("hello")).status).toBe("completed");
  });

  it("[ENGINE-B-6] a single caller gets all turns, and a quarter of them while others wait", async () => {
    const fakeAgents = new FakeAgents();
    const clerk = agent("clerk", { supervisor: true, entrypoint: true, run: fakeAgents.mind("clerk") });
    const { room } = await openRoom({ swarm: swarm([clerk]), limits: { turns: 8 } });
    const begun: string[] = [];
    const next = async () => {
      const turn = await fakeAgents.next("clerk");
      begun.push(turn.turn.instance.id);
      return turn;
    };
    for (let task = 0; task < 20; task++) await room.user("noisy").post("go");
    const noisy = [];
    for (let turn = 0; turn < 8; turn++) noisy.push(await next());
    await loopTurns(10);
    expect(fakeAgents.begunTurns("clerk")).toBe(0);
    for (let task = 0; task < 8; task++) await room.user("ann").post("go");
    await loopTurns(10);
    // Ann's first turn starts immediately; she gets more as noisy's turns end, down to noisy's quarter.
    begun.length = 0;
    const anns = [];
    while (fakeAgents.begunTurns("clerk") > 0) anns.push(await next());
    expect(begun).toEqual(["ann"]);
    for (const turn of noisy.splice(0, 7)) {
      turn.answer(complete("done"));
      await loopTurns(10);
      while (fakeAgents.begunTurns("clerk") > 0) anns.push(await next());
    }
    const count = (id: string) => begun.filter((other) => other === id).length;
    expect(count("ann")).toBeGreaterThan(count("noisy"));
  });
});

describe("the limit on running tasks", () => {
  const sign = action("sign");
  const signing = () =>
    swarm(
      [
        agent("clerk", {
          supervisor: true,
          entrypoint: true,
          actions: ["sign"],
          run: ({ results, messages: [{ id }] }) =>
            results.length > 0 ? new Promise(() => {}) : { calls: [{ id, name: "sign", args: {} }] },
        }),
      ],
      { actions: [sign], breakpoints: ["sign"] },
    );

  it("[ENGINE-B-7] the limit on running tasks applies to breakpoint answers, and a refused answer changes nothing", async () => {
    const { room } = await openRoom({ swarm: signing(), limits: { runningTasks: 2 } });
    const ann = room.user("ann");
    for (const taskId of ["1", "2", "3", "4"]) {
      expect((await ann.ask("sign?", { taskId })).status).toBe("paused");
    }
    const fates = [];
    for (const taskId of ["1", "2", "3", "4"]) {
      const task = await ann.requireTask(taskId);
      fates.push(
        await task.answerLater("yes").then(
          () => "taken",
          ({ code }: { code: string }) => code,
        ),
      );
    }
    expect(fates).toEqual(["taken", "taken", "overloaded", "overloaded"]);
    expect(room.runtime.stats.runningTasks).toBe(2);
    const third = await ann.requireTask("3");
    expect(await third.status()).toBe("paused");
    await (await ann.requireTask("1")).cancel();
    await third.answerLater("yes");
    expect(await third.status()).toBe("running");
  });

  it("[ENGINE-B-7] the limit on running tasks applies when held tasks are retried", async () => {
    const definition = swarm([
      agent("clerk", {
        supervisor: true,
        entrypoint: true,
        run: ({ params }) => {
          if (params.key === undefined) throw new TurnHeldError("credentials", "there is no key");
          return new Promise(() => {});
        },
      }),
    ]);
    const { room } = await openRoom({ swarm: definition, limits: { runningTasks: 2 } });
    for (const taskId of ["1", "2", "3", "4"]) {
      expect((await room.user("ann").ask("go", { taskId })).status).toBe("paused");
    }
    room.user("ann", { params: { key: "secret" } });
    await until(() => room.runtime.stats.runningTasks >= 2);
    await loopTurns(20);
    expect(room.runtime.stats.runningTasks).toBe(2);
  });

  it("[ENGINE-B-7] the limit on running tasks applies to messages to ended and paused tasks", async () => {
    const { room } = await openRoom({ swarm: signing(), limits: { runningTasks: 1 } });
    const ann = room.user("ann");
    for (const taskId of ["1", "2"]) expect((await ann.ask("sign?", { taskId })).status).toBe("paused");
    await (await ann.requireTask("1")).answerLater("yes");
    await expect(ann.post("well?", { taskId: "2" })).rejects.toMatchObject({ code: "overloaded" });
    await expect(ann.post("another")).rejects.toMatchObject({ code: "overloaded" });
  });
});

describe("many messages to one task", () => {
  it("[ENGINE-C-2] many messages to one task are answered in linear time", { timeout: 50_000 }, async () => {
    const { definition } = patient();
    const { room } = await openRoom({ swarm: definition });
    const ann = room.user("ann");
    await ann.ask("first", { taskId: "chat" });
    // In quadratic time this would take minutes.
    const posted = await Promise.all(
      Array.from({ length: 5_000 }, (_, index) => ann.post(`${index}`, { taskId: "chat" })),
    );
    const told = await Promise.all(posted.map(({ outcome }) => outcome));
    expect(told.map(({ message }) => message.message.body)).toEqual(posted.map((_, index) => `${index}`));
  });
});
