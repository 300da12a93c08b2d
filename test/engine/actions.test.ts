import { createServer } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { httpActions } from "../../src/actions/index.js";
import type { ActionContext, Turn, TurnResult } from "../../src/engine/agent.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { act, ask, complete, respond, wait, withId } from "../kit/answers.js";
import { FakeAgents } from "../kit/fake-agents.js";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import { folder, leftByKill, openRoom, storedEntries, unknownResults } from "../kit/rooms.js";
import { type ActionOptions, action, agent, swarm } from "../kit/swarms.js";
import { gate, loopTurns, until } from "../kit/waiting.js";

/** A boss that may call `pay`, and the recorded payments. */
function payingOffice(run: (args: unknown, context: ActionContext) => unknown, options: ActionOptions = {}) {
  const fakeAgents = new FakeAgents();
  const pay = action("pay", run, options);
  const boss = agent("boss", {
    supervisor: true,
    entrypoint: true,
    actions: ["pay"],
    run: fakeAgents.mind("boss"),
  });
  return { fakeAgents, definition: swarm([boss], { actions: [pay] }) };
}

describe("an action's idempotency key", () => {
  it("[ENGINE-A-2] an idempotency key is unique per task, turn and call, even if the agent repeats call ids", async () => {
    const keys: string[] = [];
    const { fakeAgents, definition } = payingOffice((_, { idempotencyKey }) => keys.push(idempotencyKey));
    const { room } = await openRoom({ swarm: definition });
    for (const user of ["ann", "bob"]) {
      const posted = await room.user(user).post("go", { taskId: "t" });
      for (let turn = 0; turn < 2; turn++) {
        (await fakeAgents.next("boss")).answer(withId("1", act("pay")), withId("2", act("pay")));
      }
      (await fakeAgents.next("boss")).answer(withId("1", complete("paid")));
      await posted.outcome;
    }
    expect(keys).toHaveLength(8);
    expect(keys.every((key) => typeof key === "string")).toBe(true);
    expect(new Set(keys).size).toBe(8);
  });

  it("[ENGINE-A-2] the idempotency key stays the same when the next process runs the action again", async () => {
    const runs: string[] = [];
    const never = () =>
      payingOffice(
        (_, { idempotencyKey, attempt }) => {
          runs.push(`${attempt} ${idempotencyKey}`);
          return new Promise(() => {});
        },
        { idempotent: true },
      );
    const data = folder();
    const first = never();
    const { room } = await openRoom({ swarm: first.definition, data });
    await room.user("ann").post("go", { taskId: "t" });
    (await first.fakeAgents.next("boss")).answer(withId("1", act("pay")));
    await until(() => runs.length === 1);
    await openRoom({ swarm: never().definition, data: leftByKill(data) });
    await until(() => runs.length === 2);
    const [, key] = runs[0]?.split(" ") ?? [];
    expect(key).toMatch(/./);
    expect(key).not.toBe("undefined");
    expect(runs).toEqual([`1 ${key}`, `2 ${key}`]);
  });

  it("[ENGINE-A-2] http_post sends the idempotency key, so that a server accepts the orders of two users", async () => {
    const booked = new Map<string, string>();
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (text) => {
        body += text;
      });
      request.on("end", () => {
        const key = String(request.headers["idempotency-key"]);
        if (!booked.has(key)) booked.set(key, `booked ${body}`);
        response.setHeader("content-type", "text/plain");
        response.end(booked.get(key));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const url = `http://127.0.0.1:${port}/orders`;
    const post = httpActions({ allow: ["loopback"] }).http_post;
    const run = ({ results, messages }: Turn): TurnResult => {
      const answer = results.at(-1)?.content.split("\n").at(-1);
      const call =
        answer === undefined
          ? { name: "http_post", args: { url, body: messages[0].message.body } }
          : { name: "task_complete", args: { finish_message: answer } };
      return { calls: [{ id: "1", ...call }] };
    };
    const clerk = agent("clerk", { supervisor: true, entrypoint: true, actions: ["http_post"], run });
    const { room } = await openRoom({ swarm: swarm([clerk], { actions: [post] }) });
    expect(await room.user("ann").ask("shoes")).toMatchObject({ response: "booked shoes" });
    expect(await room.user("bob").ask("a hat")).toMatchObject({ response: "booked a hat" });
  });
});

describe("a task that exceeded its time limit", () => {
  it("[ENGINE-A-8] a task that exceeded its time limit starts no further calls of its turn", async () => {
    const clock = new VirtualClock();
    const begun: unknown[] = [];
    const running = gate();
    const { fakeAgents, definition } = payingOffice(async (args) => {
      begun.push(args);
      await running.passed;
    });
    const { room } = await openRoom({
      swarm: definition,
      clock,
      limits: { taskTimeout: 1_000, actionsPerTask: 1 },
    });
    const posted = await room.user("ann").post("go", { taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("pay", { n: 1 }), act("pay", { n: 2 }), act("pay", { n: 3 }));
    await until(() => begun.length === 1);
    clock.advance(1_000);
    expect(await posted.outcome).toMatchObject({ status: "failed", error: { code: "task_timeout" } });
    running.open();
    await until(async () =>
      (await storedEntries(room.store, posted.key)).some(({ t }) => t === "action_finished"),
    );
    await loopTurns(10);
    expect(begun).toEqual([{ n: 1 }]);
  });
});

describe("an action that was decided before its task was cancelled", () => {
  it("[ENGINE-B-9] an action that was decided before its task was cancelled does not start, and its call is answered", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    let payments = 0;
    const { fakeAgents, definition } = payingOffice(() => {
      payments++;
    });
    const { room } = await openRoom({ swarm: definition, store });
    const posted = await room.user("ann").post("go", { taskId: "t" });
    const turn = await fakeAgents.next("boss");
    await loopTurns(4);
    disk.hold();
    turn.answer(act("pay"));
    await loopTurns(4);
    const cancelled = posted.task.cancel();
    await loopTurns(4);
    disk.release();
    await cancelled;
    await until(async () =>
      (await storedEntries(store, posted.key)).some(({ t }) => t === "action_finished"),
    );
    expect(payments).toBe(0);
    expect(
      (await storedEntries(store, posted.key)).findLast(({ t }) => t === "action_finished"),
    ).toMatchObject({ ok: false, content: expect.stringContaining("not started") });
  });

  it("[ENGINE-B-9] a cancelled action does not start when another message resumes the task immediately", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const payments: unknown[] = [];
    const thinking = gate();
    let asked = 0;
    const run = async ({ messages, results }: Turn): Promise<TurnResult> => {
      asked++;
      await thinking.passed;
      const [{ message }] = messages;
      const call =
        message.sender.address_type === "user"
          ? act("pay", { for: message.body })
          : results.some(({ name, ok }) => name === "pay" && ok)
            ? complete("paid")
            : wait();
      return { calls: [{ id: `${asked}`, ...call }] };
    };
    const boss = agent("boss", { supervisor: true, entrypoint: true, actions: ["pay"], run });
    const pay = action("pay", (args) => payments.push(args));
    const { room } = await openRoom({ swarm: swarm([boss], { actions: [pay] }), store });
    const ann = room.user("ann");
    const posted = await ann.post("shoes", { taskId: "t" });
    await until(() => asked === 1);
    await loopTurns(4);
    disk.hold();
    thinking.open();
    await loopTurns(4);
    const cancelled = posted.task.cancel();
    const again = ann.post("a hat", { taskId: "t" });
    await loopTurns(4);
    disk.release();
    await cancelled;
    expect((await (await again).outcome).status).toBe("completed");
    expect(payments).toEqual([{ for: "a hat" }]);
  });
});

describe("values that are not JSON", () => {
  /** A boss with two workers: one pays, the other answers with a value that cannot be stored. */
  function threeDesks(bad: () => unknown) {
    const fakeAgents = new FakeAgents();
    const paying = gate();
    let payments = 0;
    const pay = action("pay", async () => {
      await paying.passed;
      payments++;
      return "receipt 42";
    });
    const definition = swarm(
      [
        agent("boss", {
          targets: ["worker", "odd"],
          supervisor: true,
          entrypoint: true,
          run: fakeAgents.mind("boss"),
        }),
        agent("worker", { targets: ["boss"], actions: ["pay"], run: fakeAgents.mind("worker") }),
        agent("odd", {
          targets: ["boss"],
          run: () => {
            const args = { target: "boss", subject: "a number", body: "3", count: bad() };
            return { calls: [{ id: "1", name: "send_response", args }] };
          },
        }),
      ],
      { actions: [pay] },
    );
    return { fakeAgents, paying, definition, payments: () => payments };
  }

  const circle: Record<string, unknown> = {};
  circle.self = circle;

  for (const [name, value] of [
    ["a BigInt", 10n],
    ["a circle", circle],
  ] as const) {
    it(`[ENGINE-A-7, ENGINE-D-6] (${name}) an answer that is not JSON fails its turn, but no other turn or action`, async () => {
      const { fakeAgents, paying, definition, payments } = threeDesks(() => value);
      const { room } = await openRoom({ swarm: definition });
      const posted = await room.user("ann").post("go", { taskId: "t" });
      (await fakeAgents.next("boss")).answer(ask("worker", "pay"), wait());
      (await fakeAgents.next("worker")).answer(act("pay"));
      const second = await room.user("ann").post("and count", { taskId: "t" });
      (await fakeAgents.next("boss")).answer(ask("odd", "count"), wait());
      const told = await fakeAgents.next("boss");
      expect(told.turn.messages[0].message.sender).toMatchObject({ address_type: "system" });
      paying.open();
      told.answer(wait());
      const worker = await fakeAgents.next("worker");
      expect(worker.turn.results).toMatchObject([{ ok: true, content: "receipt 42" }]);
      worker.answer(respond("boss", "receipt 42"));
      (await fakeAgents.next("boss")).answer(complete("receipt 42"));
      expect((await posted.outcome).message.message.body).toBe("receipt 42");
      expect((await second.outcome).status).toBe("completed");
      const entries = await storedEntries(room.store, posted.key);
      expect(unknownResults(entries)).toEqual([]);
      expect(entries.filter(({ t }) => t === "turn_failed")).toHaveLength(1);
      expect(JSON.stringify(entries)).not.toContain("the process ended");
      expect(payments()).toBe(1);
      expect(fakeAgents.began).toEqual(["boss", "worker", "boss", "boss", "worker", "boss"]);
    });
  }

  it("[ENGINE-A-7] a posted value that is not JSON is refused, and the task continues unchanged", async () => {
    const { fakeAgents, paying, definition, payments } = threeDesks(() => 1);
    const { room } = await openRoom({ swarm: definition });
    const ann = room.user("ann");
    const posted = await ann.post("go", { taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("worker", "pay"), wait());
    (await fakeAgents.next("worker")).answer(act("pay"));
    await loopTurns(10);
    const before = await storedEntries(room.store, posted.key);
    await expect(ann.post("more", { taskId: "t", routingInfo: { count: 10n } })).rejects.toMatchObject({
      code: "bad_input",
    });
    expect(await storedEntries(room.store, posted.key)).toEqual(before);
    paying.open();
    (await fakeAgents.next("worker")).answer(respond("boss", "paid"));
    (await fakeAgents.next("boss")).answer(complete("paid"));
    expect((await posted.outcome).status).toBe("completed");
    expect(payments()).toBe(1);
    expect(fakeAgents.began).toEqual(["boss", "worker", "worker", "boss"]);
  });
});
