import { createServer } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { httpActions } from "../../src/actions/index.js";
import type { ActionContext, AgentAnswer, Turn } from "../../src/engine/agent.js";
import { act, ask, complete, respond, wait, withId } from "../kit/answers.js";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import { Puppets } from "../kit/puppets.js";
import { folder, leftByKill, openRoom, storedEntries, unknownResults } from "../kit/rooms.js";
import { type ActionOptions, action, agent, swarm } from "../kit/swarms.js";
import { VirtualClock } from "../kit/virtual-clock.js";
import { gate, loopTurns, until } from "../kit/waiting.js";

/** A boss who may call `pay`, and what became of the payments. */
function payingOffice(run: (args: unknown, context: ActionContext) => unknown, options: ActionOptions = {}) {
  const puppets = new Puppets();
  const pay = action("pay", run, options);
  const boss = agent("boss", {
    supervisor: true,
    entrypoint: true,
    actions: ["pay"],
    run: puppets.mind("boss"),
  });
  return { puppets, definition: swarm([boss], { actions: [pay] }) };
}

describe("an action's idempotency key", () => {
  it("[ENGINE-A-2] is its own in every task, turn and call, however the agent numbers its calls", async () => {
    const keys: string[] = [];
    const { puppets, definition } = payingOffice((_, { idempotencyKey }) => keys.push(idempotencyKey));
    const { room } = await openRoom({ swarm: definition });
    for (const user of ["ann", "bob"]) {
      const posted = await room.user(user).post("go", { taskId: "t" });
      for (let turn = 0; turn < 2; turn++) {
        (await puppets.next("boss")).answer(withId("1", act("pay")), withId("2", act("pay")));
      }
      (await puppets.next("boss")).answer(withId("1", complete("paid")));
      await posted.outcome;
    }
    expect(keys).toHaveLength(8);
    expect(keys.every((key) => typeof key === "string")).toBe(true);
    expect(new Set(keys).size).toBe(8);
  });

  it("[ENGINE-A-2] is the same when the action is run again by the next process", async () => {
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
    (await first.puppets.next("boss")).answer(withId("1", act("pay")));
    await until(() => runs.length === 1);
    await openRoom({ swarm: never().definition, data: leftByKill(data) });
    await until(() => runs.length === 2);
    const [, key] = runs[0]?.split(" ") ?? [];
    expect(key).toMatch(/./);
    expect(key).not.toBe("undefined");
    expect(runs).toEqual([`1 ${key}`, `2 ${key}`]);
  });

  it("[ENGINE-A-2] is what http_post sends, so that a server books the orders of two users", async () => {
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
    const run = ({ results, messages }: Turn): AgentAnswer => {
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

describe("a task whose time is up", () => {
  it("[ENGINE-A-8] starts none of the calls that its turn still had", async () => {
    const clock = new VirtualClock();
    const begun: unknown[] = [];
    const running = gate();
    const { puppets, definition } = payingOffice(async (args) => {
      begun.push(args);
      await running.passed;
    });
    const { room } = await openRoom({ swarm: definition, clock, limits: { taskTime: 1_000 } });
    const posted = await room.user("ann").post("go", { taskId: "t" });
    (await puppets.next("boss")).answer(act("pay", { n: 1 }), act("pay", { n: 2 }), act("pay", { n: 3 }));
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
  it("[ENGINE-B-9] does not begin after it, and its call is answered", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    let payments = 0;
    const { puppets, definition } = payingOffice(() => {
      payments++;
    });
    const { room } = await openRoom({ swarm: definition, store });
    const posted = await room.user("ann").post("go", { taskId: "t" });
    const turn = await puppets.next("boss");
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

  it("[ENGINE-B-9] does not begin either when the task goes on with another message at once", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const payments: unknown[] = [];
    const thinking = gate();
    let asked = 0;
    const run = async ({ messages, results }: Turn): Promise<AgentAnswer> => {
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

describe("what is no JSON", () => {
  /** A boss with two workers: one pays, the other answers with something that cannot be written. */
  function threeDesks(bad: () => unknown) {
    const puppets = new Puppets();
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
          run: puppets.mind("boss"),
        }),
        agent("worker", { targets: ["boss"], actions: ["pay"], run: puppets.mind("worker") }),
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
    return { puppets, paying, definition, payments: () => payments };
  }

  const circle: Record<string, unknown> = {};
  circle.self = circle;

  for (const [name, value] of [
    ["a BigInt", 10n],
    ["a circle", circle],
  ] as const) {
    it(`[ENGINE-A-7, ENGINE-D-6] (${name}) fails the turn that answers with it, and neither the turns nor the actions beside it`, async () => {
      const { puppets, paying, definition, payments } = threeDesks(() => value);
      const { room } = await openRoom({ swarm: definition });
      const posted = await room.user("ann").post("go", { taskId: "t" });
      (await puppets.next("boss")).answer(ask("worker", "pay"), wait());
      (await puppets.next("worker")).answer(act("pay"));
      const second = await room.user("ann").post("and count", { taskId: "t" });
      (await puppets.next("boss")).answer(ask("odd", "count"), wait());
      const told = await puppets.next("boss");
      expect(told.turn.messages[0].message.sender).toMatchObject({ address_type: "system" });
      paying.open();
      told.answer(wait());
      const worker = await puppets.next("worker");
      expect(worker.turn.results).toMatchObject([{ ok: true, content: "receipt 42" }]);
      worker.answer(respond("boss", "receipt 42"));
      (await puppets.next("boss")).answer(complete("receipt 42"));
      expect((await posted.outcome).message.message.body).toBe("receipt 42");
      expect((await second.outcome).status).toBe("completed");
      const entries = await storedEntries(room.store, posted.key);
      expect(unknownResults(entries)).toEqual([]);
      expect(entries.filter(({ t }) => t === "turn_failed")).toHaveLength(1);
      expect(JSON.stringify(entries)).not.toContain("the process ended");
      expect(payments()).toBe(1);
      expect(puppets.began).toEqual(["boss", "worker", "boss", "boss", "worker", "boss"]);
    });
  }

  it("[ENGINE-A-7] is refused when it is posted, and the task goes on as if nothing had been said", async () => {
    const { puppets, paying, definition, payments } = threeDesks(() => 1);
    const { room } = await openRoom({ swarm: definition });
    const ann = room.user("ann");
    const posted = await ann.post("go", { taskId: "t" });
    (await puppets.next("boss")).answer(ask("worker", "pay"), wait());
    (await puppets.next("worker")).answer(act("pay"));
    await loopTurns(10);
    const before = await storedEntries(room.store, posted.key);
    await expect(ann.post("more", { taskId: "t", routingInfo: { count: 10n } })).rejects.toMatchObject({
      code: "bad_input",
    });
    expect(await storedEntries(room.store, posted.key)).toEqual(before);
    paying.open();
    (await puppets.next("worker")).answer(respond("boss", "paid"));
    (await puppets.next("boss")).answer(complete("paid"));
    expect((await posted.outcome).status).toBe("completed");
    expect(payments()).toBe(1);
    expect(puppets.began).toEqual(["boss", "worker", "worker", "boss"]);
  });
});
