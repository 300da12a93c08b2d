/**
 * What another swarm may do here, over HTTP: forged senders, owners and contributors that the reference accepts
 * (REF-15), and the recorded exchanges.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call } from "../http/harness.js";
import { Slow, testSwarm } from "./agents.js";
import { openTestServer, type TestServer } from "./servers.js";
import { until } from "./until.js";
import { deliver, wrapperOf } from "./wire.js";

let alpha: TestServer;
const slow = new Slow();

beforeAll(async () => {
  alpha = await openTestServer({ swarm: testSwarm("alpha", ["beta", "gamma"], slow) });
});
afterAll(async () => {
  slow.release();
  await alpha.close();
});

const peer = (id: string) => alpha.mailroom.instance({ role: "swarm", id });

async function bodiesIn(instance: { role: "user" | "swarm"; id: string }, taskId: string): Promise<string[]> {
  const task = await alpha.mailroom.instance(instance).requireTask(taskId);
  const bodies: string[] = [];
  for await (const { entry } of task.journal())
    if (entry.t === "sent") bodies.push(entry.message.message.body);
  return bodies;
}

/** A task of alice's that waits for an agent of swarm beta, which never answered. */
async function taskOfAlice(wish: string): Promise<string> {
  const taskId = randomUUID();
  await alpha.mailroom.user("alice").post(wish, { taskId });
  return taskId;
}

describe("a forward", () => {
  it("[MAIL-G-16] with fields that are unknown here is accepted without them", async () => {
    const wrapper = wrapperOf();
    const payload = { ...wrapper.payload, mood: "good", broadcast_id: "x" };
    const message = { ...wrapper, payload, task_id: "their own idea", extra: { deep: 1 } };
    const answer = await call(alpha.url, "/interswarm/forward", { token: "agent:beta", json: { message } });
    expect(answer.status).toBe(200);
  });

  it("[MAIL-REST-11, MAIL-INTER-01, MAIL-INST-03, MAIL-INST-04] adopts the task under its id, in the instance of the sending swarm", async () => {
    const taskId = randomUUID();
    const answer = await deliver(alpha.url, "forward", { taskId });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      swarm: "alpha",
      task_id: taskId,
      status: "success",
      local_runner: "swarm:beta@alpha",
    });
    const record = await (await peer("beta").requireTask(taskId)).record();
    expect(record).toMatchObject({
      task_owner: "user:bob@beta",
      task_contributors: ["user:bob@beta", "swarm:beta@alpha"],
    });
    // Another agent of the same swarm reaches the same instance.
    const second = await deliver(alpha.url, "forward", { taskId, from: "other@beta", body: "Osaka?" });
    expect(second.status).toBe(200);
    expect((await peer("beta").tasks()).tasks.filter(({ task_id }) => task_id === taskId)).toHaveLength(1);
  });

  it("takes effect once, however often and however concurrently it arrives", async () => {
    const wish = { taskId: randomUUID(), messageId: randomUUID(), body: "only once" };
    const answers = await Promise.all([1, 2, 3].map(() => deliver(alpha.url, "forward", wish)));
    answers.push(await deliver(alpha.url, "back", wish));
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      expect(body).toMatchObject({ task_id: wish.taskId, local_runner: "swarm:beta@alpha" });
    }
    const bodies = await bodiesIn({ role: "swarm", id: "beta" }, wish.taskId);
    expect(bodies.filter((body) => body === "only once")).toHaveLength(1);
  });

  it("of another swarm with the same ids is another message in another task", async () => {
    const wish = { taskId: randomUUID(), messageId: randomUUID() };
    await deliver(alpha.url, "forward", wish);
    const other = await deliver(alpha.url, "forward", { ...wish, source: "gamma" });
    expect(other.body).toMatchObject({ local_runner: "swarm:gamma@alpha" });
    expect(await bodiesIn({ role: "swarm", id: "gamma" }, wish.taskId)).toContain("Tokyo?");
  });

  it("expands `all` to every local agent", async () => {
    const taskId = randomUUID();
    await deliver(alpha.url, "forward", { taskId, to: "all@alpha" });
    const task = await peer("beta").requireTask(taskId);
    for await (const { entry } of task.journal()) {
      if (entry.t === "sent") {
        expect(entry.to).toEqual(["boss", "clerk", "slow"]);
        break;
      }
    }
  });

  it("resumes a task of that id that has ended", async () => {
    const taskId = randomUUID();
    await deliver(alpha.url, "forward", { taskId, to: "boss@alpha", body: "first" });
    const task = await peer("beta").requireTask(taskId);
    await until(async () => (await task.status()) === "completed" || undefined, "the first round");
    await deliver(alpha.url, "back", {
      taskId,
      to: "boss@alpha",
      body: "second",
      contributors: ["user:bob@beta"],
    });
    await until(async () => {
      const events = (await task.record()).events.filter(({ data }) => data.status === "completed");
      return events.length === 2 || undefined;
    }, "the second round");
  });
});

describe("[MAIL-ERR-03, MAIL-SEC-02] an invalid message gets its own status and changes nothing", () => {
  const { task_owner: _, ...noOwner } = wrapperOf();
  it.each([
    ["no message", {}, 400],
    ["an invalid message", { message: 3 }, 400],
    ["a missing field", { message: noOwner }, 400],
    ["a field of a wrong type", { message: { ...wrapperOf(), source_swarm: 3 } }, 400],
    ["an empty payload", { message: { ...wrapperOf(), payload: {} } }, 400],
    [
      "a type that is not sent between swarms",
      { message: { ...wrapperOf(), msg_type: "broadcast_complete" } },
      400,
    ],
    ["another swarm's mail", { message: wrapperOf({ target: "gamma" }) }, 400],
    ["an invalid contributor", { message: wrapperOf({ contributors: ["alice"] }) }, 400],
    ["an unknown agent", { message: wrapperOf({ to: "nobody@alpha" }) }, 404],
    ["too many hops", { message: wrapperOf({ metadata: { hops: 99 } }) }, 400],
  ])("%s", async (_, json, status) => {
    const answer = await call(alpha.url, "/interswarm/forward", { token: "agent:beta", json });
    expect([answer.status, answer.body]).toEqual([
      status,
      expect.objectContaining({ code: expect.any(String) }),
    ]);
  });

  it("the wrong role, and no credentials", async () => {
    const wrongRole = await deliver(alpha.url, "forward", {}, "user:beta");
    expect([wrongRole.status, wrongRole.body]).toEqual([
      401,
      expect.objectContaining({ detail: "invalid role" }),
    ]);
    const other = await call(alpha.url, "/interswarm/back", { token: "nonsense", json: {} });
    expect(other.status).toBe(401);
  });

  it("the same task id with two owners from one peer", async () => {
    const taskId = randomUUID();
    await deliver(alpha.url, "forward", { taskId });
    const answer = await deliver(alpha.url, "forward", { taskId, owner: "user:eve@beta" });
    expect([answer.status, answer.body]).toEqual([409, expect.objectContaining({ code: "owner_mismatch" })]);
  });

  it("a back for an unknown task, from a swarm that does not contribute", async () => {
    const stranger = { owner: "user:bob@delta", contributors: ["user:bob@delta"] };
    expect((await deliver(alpha.url, "back", { ...stranger, taskId: randomUUID() })).status).toBe(404);
    // From a contributor, it is adopted (decision E2).
    const contributor = { ...stranger, contributors: ["user:bob@delta", "swarm:delta@beta"] };
    expect((await deliver(alpha.url, "back", { ...contributor, taskId: randomUUID() })).status).toBe(200);
  });
});

describe("an attack", () => {
  it("with another swarm's name is rejected by its token (REF-15)", async () => {
    const spoofed = await deliver(alpha.url, "forward", { source: "gamma" }, "agent:beta");
    expect([spoofed.status, spoofed.body]).toEqual([401, expect.objectContaining({ code: "peer_mismatch" })]);
    const sender = await deliver(alpha.url, "forward", { from: "boss@gamma" });
    expect(sender.status).toBe(401);
  });

  it("[MAIL-OURS-06] on a task that never left this swarm gets the answer for an unknown task (REF-15)", async () => {
    const taskId = await taskOfAlice("ask slow: wait");
    await until(() => slow.begun > 0 || undefined, "the slow agent's turn");
    const attempts = [
      { owner: "user:alice@alpha", contributors: ["user:alice@alpha"] },
      { owner: "user:alice@alpha", contributors: ["user:alice@alpha", "swarm:alpha@mallory"] },
    ];
    for (const attempt of attempts) {
      for (const way of ["back", "forward"] as const) {
        const wish = {
          source: "mallory",
          taskId,
          type: "response",
          to: "boss@alpha",
          body: "INJECTED",
        } as const;
        const answer = await deliver(alpha.url, way, { ...wish, ...attempt });
        const unknown = await deliver(alpha.url, way, { ...wish, ...attempt, taskId: randomUUID() });
        expect(answer.status).toBe(404);
        expect(answer.text.replaceAll(taskId, "ID")).toBe(
          unknown.text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID"),
        );
      }
    }
    const ending = { source: "mallory", taskId, type: "response", subject: "::task_complete::" } as const;
    await deliver(alpha.url, "back", { ...ending, ...attempts[0], to: "boss@alpha", body: "INJECTED" });
    slow.release();
    const task = await alpha.mailroom.user("alice").requireTask(taskId);
    await until(async () => (await task.status()) === "completed" || undefined, "the task's end");
    expect(JSON.stringify(await task.record())).not.toContain("INJECTED");
  });

  it("[MAIL-INST-05] cannot make a local user work on a foreign task", async () => {
    const taskId = randomUUID();
    await deliver(alpha.url, "back", {
      taskId,
      owner: "user:bob@beta",
      contributors: ["user:bob@beta", "user:alice@alpha"],
    });
    expect(await alpha.mailroom.user("alice").task(taskId)).toBeUndefined();
    const record = await (await peer("beta").requireTask(taskId)).record();
    expect(record.task_contributors).toEqual(["user:bob@beta", "swarm:beta@alpha"]);
  });

  it("as an owner that a local instance can never be", async () => {
    const taskId = randomUUID();
    await deliver(alpha.url, "forward", { taskId });
    const answer = await deliver(alpha.url, "back", { source: "gamma", taskId, owner: "swarm:beta@alpha" });
    expect(answer.status).toBe(404);
  });

  it("[MAIL-OURS-06] by reading: a task's events are visible only to swarms that own it or work on it", async () => {
    const taskId = randomUUID();
    await deliver(alpha.url, "forward", { taskId });
    const path = `/interswarm/tasks/${taskId}/events`;
    expect((await call(alpha.url, path, { token: "agent:beta" })).status).toBe(200);
    expect((await call(alpha.url, path, { token: "agent:mallory" })).status).toBe(404);
    expect((await call(alpha.url, path, { token: "user:alice" })).status).toBe(403);
    const own = await taskOfAlice("hello");
    expect((await call(alpha.url, `/interswarm/tasks/${own}/events`, { token: "agent:beta" })).status).toBe(
      404,
    );
  });

  it("by ending a foreign task: only the owner's swarm and the asker can", async () => {
    const taskId = randomUUID();
    await deliver(alpha.url, "forward", { taskId, to: "slow@alpha" });
    const task = await peer("beta").requireTask(taskId);
    const ending = { taskId, type: "response", subject: "::task_complete::", to: "all@alpha" } as const;
    await deliver(alpha.url, "back", { ...ending, source: "mallory", owner: "user:bob@beta" });
    await deliver(alpha.url, "back", { ...ending, source: "mallory", owner: "user:eve@mallory" });
    expect(await task.status()).toBe("running");
    const answer = await deliver(alpha.url, "back", { ...ending, body: "all done" });
    expect(answer.status).toBe(200);
    expect(await task.status()).toBe("completed");
    slow.release();
  });

  it("by exceeding the rate limit", async () => {
    const strict = await openTestServer({
      swarm: testSwarm("alpha", []),
      settings: { requestsPerMinute: 3 },
    });
    try {
      const statuses: number[] = [];
      for (let n = 0; n < 5; n++) statuses.push((await deliver(strict.url, "forward")).status);
      expect(statuses).toContain(429);
      expect((await deliver(strict.url, "forward", { source: "gamma" })).status).toBe(200);
      const huge = await deliver(strict.url, "forward", {
        source: "delta",
        body: "x".repeat(2 * 1024 * 1024),
      });
      expect(huge.status).toBe(413);
    } finally {
      await strict.close();
    }
  });
});

describe("older message forms", () => {
  it("a bare wrapper is accepted on both routes", async () => {
    const answer = await call(alpha.url, "/interswarm/forward", { token: "agent:beta", json: wrapperOf() });
    expect(answer.status).toBe(200);
  });

  it("a wrapper on /interswarm/message is answered with the finish message", async () => {
    const { task_owner: _, task_contributors: __, ...old } = wrapperOf({ to: "boss@alpha", body: "hello" });
    const answer = await call(alpha.url, "/interswarm/message", { token: "agent:beta", json: old });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      msg_type: "response",
      message: {
        task_id: old.payload.task_id,
        request_id: old.payload.request_id,
        body: "echo: hello",
        sender_swarm: "alpha",
        recipient_swarm: "beta",
      },
    });
  });

  it("a message on /interswarm/response finds its task by id, or is rejected", async () => {
    const taskId = randomUUID();
    await deliver(alpha.url, "forward", { taskId });
    const { payload, message_id, timestamp } = wrapperOf({ taskId, type: "response", body: "later" });
    const message = { id: message_id, timestamp, message: payload, msg_type: "response" };
    const answer = await call(alpha.url, "/interswarm/response", { token: "agent:beta", json: message });
    expect(answer.body).toEqual({ status: "response_processed", task_id: taskId });
    expect(await bodiesIn({ role: "swarm", id: "beta" }, taskId)).toContain("later");
    const json = { ...message, id: randomUUID(), message: { ...payload, task_id: randomUUID() } };
    const nobody = await call(alpha.url, "/interswarm/response", { token: "agent:beta", json });
    expect([nobody.status, nobody.body]).toEqual([
      200,
      expect.objectContaining({ status: "no_mail_instance" }),
    ]);
  });

  it("the end of an unknown task is acknowledged and dropped", async () => {
    const ending = { type: "response", subject: "::task_complete::", to: "supervisor@alpha" } as const;
    const answer = await deliver(alpha.url, "forward", { ...ending, taskId: randomUUID() });
    expect(answer.status).toBe(200);
  });
});
