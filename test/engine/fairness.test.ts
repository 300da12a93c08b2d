import { describe, expect, it } from "vitest";
import { TurnHeldError } from "../../src/engine/agent.js";
import { complete } from "../kit/answers.js";
import { Puppets } from "../kit/puppets.js";
import { openRoom } from "../kit/rooms.js";
import { action, agent, swarm } from "../kit/swarms.js";
import { loopTurns, until } from "../kit/waiting.js";

/** An agent that never answers those who say `hang`. */
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
  it("[ENGINE-B-6] of callers whose agents hang keep nobody from a first turn, whatever they fill", async () => {
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

  it("[ENGINE-B-6] as many as there are by default may hang of four callers, and a fifth is served", async () => {
    const { begun, definition } = patient();
    const { room } = await openRoom({ swarm: definition });
    const limit = room.runtime.limits.turns;
    for (let post = 0; post < limit; post++) await room.user(`noisy ${post % 4}`).post("hang");
    await until(() => begun.length >= limit);
    await loopTurns(10);
    expect((await room.user("ann").ask("hello")).status).toBe("completed");
  });

  it("[ENGINE-B-6] are all for a caller who is alone, and a quarter while others wait", async () => {
    const puppets = new Puppets();
    const clerk = agent("clerk", { supervisor: true, entrypoint: true, run: puppets.mind("clerk") });
    const { room } = await openRoom({ swarm: swarm([clerk]), limits: { turns: 8 } });
    const begun: string[] = [];
    const next = async () => {
      const turn = await puppets.next("clerk");
      begun.push(turn.turn.instance.id);
      return turn;
    };
    for (let task = 0; task < 20; task++) await room.user("noisy").post("go");
    const noisy = [];
    for (let turn = 0; turn < 8; turn++) noisy.push(await next());
    await loopTurns(10);
    expect(puppets.begunTurns("clerk")).toBe(0);
    for (let task = 0; task < 8; task++) await room.user("ann").post("go");
    await loopTurns(10);
    // Ann's first turn waits for nobody; the others are hers as noisy's end, down to a quarter.
    begun.length = 0;
    const anns = [];
    while (puppets.begunTurns("clerk") > 0) anns.push(await next());
    expect(begun).toEqual(["ann"]);
    for (const turn of noisy.splice(0, 7)) {
      turn.answer(complete("done"));
      await loopTurns(10);
      while (puppets.begunTurns("clerk") > 0) anns.push(await next());
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

  it("[ENGINE-B-7] holds when paused tasks are answered, and an answer that finds no room changes nothing", async () => {
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
    expect(room.runtime.figures.runningTasks).toBe(2);
    const third = await ann.requireTask("3");
    expect(await third.status()).toBe("paused");
    await (await ann.requireTask("1")).cancel();
    await third.answerLater("yes");
    expect(await third.status()).toBe("running");
  });

  it("[ENGINE-B-7] holds when held tasks are tried again", async () => {
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
    await until(() => room.runtime.figures.runningTasks >= 2);
    await loopTurns(20);
    expect(room.runtime.figures.runningTasks).toBe(2);
  });

  it("[ENGINE-B-7] holds for messages to tasks that had ended or paused", async () => {
    const { room } = await openRoom({ swarm: signing(), limits: { runningTasks: 1 } });
    const ann = room.user("ann");
    for (const taskId of ["1", "2"]) expect((await ann.ask("sign?", { taskId })).status).toBe("paused");
    await (await ann.requireTask("1")).answerLater("yes");
    await expect(ann.post("well?", { taskId: "2" })).rejects.toMatchObject({ code: "overloaded" });
    await expect(ann.post("another")).rejects.toMatchObject({ code: "overloaded" });
  });
});

describe("many messages to one task", () => {
  it("[ENGINE-C-2] are all answered in time that grows with their number", { timeout: 50_000 }, async () => {
    const { definition } = patient();
    const { room } = await openRoom({ swarm: definition });
    const ann = room.user("ann");
    await ann.ask("first", { taskId: "chat" });
    // With the square of their number this would take minutes.
    const posted = await Promise.all(
      Array.from({ length: 5_000 }, (_, index) => ann.post(`${index}`, { taskId: "chat" })),
    );
    const told = await Promise.all(posted.map(({ outcome }) => outcome));
    expect(told.map(({ message }) => message.message.body)).toEqual(posted.map((_, index) => `${index}`));
  });
});
