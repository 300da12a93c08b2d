/** Three swarms that work together, each with its own server and store. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Entry } from "../../src/engine/task/entries.js";
import { call } from "../http/harness.js";
import { Slow, testSwarm } from "./agents.js";
import { introduce, openTestServer, type TestServer } from "./servers.js";
import { until } from "./until.js";
import { deliver } from "./wire.js";

let alpha: TestServer;
let beta: TestServer;
let gamma: TestServer;
const slow = new Slow();

beforeAll(async () => {
  alpha = await openTestServer({ swarm: testSwarm("alpha", ["beta", "gamma", "nowhere"]) });
  beta = await openTestServer({ swarm: testSwarm("beta", ["alpha", "gamma"], slow) });
  gamma = await openTestServer({ swarm: testSwarm("gamma", ["alpha", "beta"]) });
  await introduce(alpha, beta, gamma);
});
afterAll(async () => {
  slow.release();
  await Promise.all([alpha.close(), beta.close(), gamma.close()]);
});

async function journalOf(
  server: TestServer,
  role: "user" | "swarm",
  id: string,
  taskId: string,
): Promise<Entry[]> {
  const task = await server.mailroom.instance({ role, id }).requireTask(taskId);
  const entries: Entry[] = [];
  for await (const { entry } of task.journal()) entries.push(entry);
  return entries;
}

function ended(server: TestServer, id: string, taskId: string): Promise<string> {
  return until(async () => {
    const task = await server.mailroom.instance({ role: "swarm", id }).task(taskId);
    const status = await task?.status();
    return status === "running" ? undefined : status;
  }, `the end of task ${taskId} at ${server.mailroom.swarm.name}`);
}

const turnsIn = (entries: readonly Entry[]) => entries.filter((entry) => entry.t === "turn").length;

describe("a task that needs another swarm", () => {
  it("[MAIL-ROUTE-04, MAIL-INTER-01, MAIL-INTER-04] gets its answer, and its end prompts no agent of the other swarm", async () => {
    const taskId = randomUUID();
    const answer = await alpha.mailroom.user("ann").ask("ask clerk@beta: Tokyo?", { taskId });
    expect(answer).toMatchObject({ status: "completed", response: "clerk@beta: beta says: Tokyo?" });
    expect(await ended(beta, "alpha", taskId)).toBe("completed");
    const there = await journalOf(beta, "swarm", "alpha", taskId);
    expect(turnsIn(there)).toBe(1);
    const clerk = await (
      await beta.mailroom.instance({ role: "swarm", id: "alpha" }).requireTask(taskId)
    ).history("clerk");
    expect(JSON.stringify(clerk.at(-1))).toContain("::task_complete::");
    const record = await (await alpha.mailroom.user("ann").requireTask(taskId)).record();
    expect(record).toMatchObject({
      task_owner: "user:ann@alpha",
      task_contributors: ["user:ann@alpha", "swarm:alpha@beta"],
      remote_swarms: ["beta"],
    });
    // No ping-pong: nothing from beta followed the end.
    const here = await journalOf(alpha, "user", "ann", taskId);
    const end = here.findIndex((entry) => entry.t === "completed");
    expect(here.slice(end + 1).filter((entry) => entry.t === "sent" && entry.remote === undefined)).toEqual(
      [],
    );
  });

  it("[MAIL-INTER-03] gets the finish message of a swarm that completes it", async () => {
    const answer = await alpha.mailroom.user("ann").ask("ask boss@beta: Osaka?");
    expect(answer).toMatchObject({ status: "completed", response: "boss@beta: echo: Osaka?" });
  });

  it("can ask several agents of several swarms and of its own at once; each gets the request once", async () => {
    const answer = await alpha.mailroom
      .user("ann")
      .ask("ask clerk@beta, boss@beta, clerk@gamma, clerk: all of you");
    expect(answer.status).toBe("completed");
    expect(answer.response.split(" | ")).toEqual([
      "boss@beta: echo: all of you",
      "clerk: alpha says: all of you",
      "clerk@beta: beta says: all of you",
      "clerk@gamma: gamma says: all of you",
    ]);
  });

  it("[MAIL-INTER-03, MAIL-INTER-04, MAIL-INST-06] through two other swarms: each answer returns to its asker, and all are notified of the end", async () => {
    const taskId = randomUUID();
    const wish = "ask boss@beta: ask clerk@gamma: how far?";
    const answer = await alpha.mailroom.user("ann").ask(wish, { taskId });
    expect(answer.response).toBe("boss@beta: clerk@gamma: gamma says: how far?");
    expect(await ended(beta, "alpha", taskId)).toBe("completed");
    expect(await ended(gamma, "beta", taskId)).toBe("completed");
    const record = await (
      await gamma.mailroom.instance({ role: "swarm", id: "beta" }).requireTask(taskId)
    ).record();
    expect(record.task_owner).toBe("user:ann@alpha");
    expect(record.task_contributors).toEqual(
      expect.arrayContaining(["user:ann@alpha", "swarm:alpha@beta", "swarm:beta@gamma"]),
    );
    const own = await (await alpha.mailroom.user("ann").requireTask(taskId)).record();
    expect(own.task_contributors).toEqual(
      expect.arrayContaining(["user:ann@alpha", "swarm:alpha@beta", "swarm:beta@gamma"]),
    );
  });

  it("resumes remotely when it resumes locally", async () => {
    const user = alpha.mailroom.user("ann");
    const taskId = randomUUID();
    await user.ask("ask clerk@beta: one", { taskId });
    await ended(beta, "alpha", taskId);
    const second = await user.ask("ask clerk@beta: two", { taskId });
    expect(second.response).toBe("clerk@beta: beta says: two");
    expect(await ended(beta, "alpha", taskId)).toBe("completed");
    expect(
      (await beta.mailroom.instance({ role: "swarm", id: "alpha" }).tasks()).tasks.filter(
        (task) => task.task_id === taskId,
      ),
    ).toHaveLength(1);
  });

  it("is separate from another user's task with the same id", async () => {
    const taskId = randomUUID();
    const [ann, bob] = await Promise.all([
      alpha.mailroom.user("ann").ask("ask clerk@beta: for ann", { taskId }),
      gamma.mailroom.user("bob").ask("ask clerk@beta: for bob", { taskId }),
    ]);
    expect(ann.response).toBe("clerk@beta: beta says: for ann");
    expect(bob.response).toBe("clerk@beta: beta says: for bob");
  });

  it("that is cancelled is also cancelled remotely", async () => {
    const taskId = randomUUID();
    const posted = await alpha.mailroom.user("ann").post("ask slow@beta: never mind", { taskId });
    await until(() => slow.begun > 0 || undefined, "the slow agent's turn");
    await posted.task.cancel();
    expect(await ended(beta, "alpha", taskId)).toBe("cancelled");
    slow.release();
  });
});

describe("the sender of a message is notified", () => {
  const told = async (target: string) => {
    const answer = await alpha.mailroom.user("ann").ask(`ask ${target}: hello`);
    expect(answer.status).toBe("completed");
    return answer.response;
  };

  it("[MAIL-ROUTE-05] when the swarm is not registered", async () => {
    expect(await told("clerk@nowhere")).toMatch(
      /^alpha: Your message 'Question' to swarm 'nowhere' was not delivered/,
    );
  });

  it("[MAIL-ROUTE-05] when the other swarm refuses it, with that swarm's reason", async () => {
    const narrow = await openTestServer({
      swarm: {
        ...testSwarm("narrow", ["alpha"]),
        agents: testSwarm("narrow", ["alpha"]).agents.slice(0, 1),
      },
    });
    const wide = await openTestServer({ swarm: testSwarm("wide", ["narrow"]) });
    await introduce(narrow, wide);
    const answer = await wide.mailroom.user("ann").ask("ask clerk@narrow: hello");
    expect(answer.response).toMatch(/404: unknown local agent: 'clerk'/);
    await Promise.all([narrow.close(), wide.close()]);
  });

  it("when no answer arrives in time, and a late answer is still delivered", async () => {
    const server = await openTestServer({
      swarm: testSwarm("patient", ["beta"]),
      limits: { replyTimeout: 50 },
    });
    await introduce(server, beta);
    const taskId = randomUUID();
    const answer = await server.mailroom.user("ann").ask("ask slow@beta: hurry", { taskId });
    expect(answer.response).toMatch(
      /^patient: Your request to 'slow@beta' was accepted .* no answer came within/,
    );
    await server.close();
    slow.release();
  });
});

describe("an inactive swarm", () => {
  it("is skipped with a notice, and used again after it recovers", async () => {
    const port = Number(new URL(gamma.url).port);
    const server = await openTestServer({ swarm: testSwarm("watcher", ["gamma"]) });
    await introduce(server, gamma);
    await gamma.close();
    await until(
      () => server.federation.registry.get("gamma")?.isActive === false || undefined,
      "gamma's absence",
    );
    const answer = await server.mailroom.user("ann").ask("ask clerk@gamma: there?");
    expect(answer.response).toMatch(/swarm 'gamma' is inactive \(last seen/);
    gamma = await openTestServer({ swarm: testSwarm("gamma", ["alpha", "beta"]), port });
    await introduce(gamma, alpha, beta, server);
    await until(() => server.federation.registry.get("gamma")?.isActive, "gamma's return");
    const again = await server.mailroom.user("ann").ask("ask clerk@gamma: there?");
    expect(again.response).toBe("clerk@gamma: gamma says: there?");
    await server.close();
  });
});

describe("[MAIL-REST-12] POST /interswarm/message", () => {
  const send = (json: unknown, token = "user:ann", headers = {}) =>
    call(alpha.url, "/interswarm/message", { token, json, headers });
  const TOKEN = { user_token: "user:ann" };

  it("sends to an agent of another swarm and returns its answer", async () => {
    const answer = await send({ ...TOKEN, body: "hello", targets: ["clerk@beta"], subject: "Hi" });
    expect([answer.status, answer.body]).toEqual([
      200,
      expect.objectContaining({
        status: "completed",
        events: null,
        response: expect.objectContaining({ message: expect.objectContaining({ body: "beta says: hello" }) }),
      }),
    ]);
  });

  it.each([
    ["a swarm that completes", { body: "hello", targets: ["boss@beta"] }, "echo: hello"],
    ["`message` and `target_agent`", { message: "hello", target_agent: "clerk@beta" }, "beta says: hello"],
    ["an agent of this swarm", { body: "hello", targets: ["boss"] }, "echo: hello"],
    ["the swarm's own name", { body: "hello", targets: ["boss@alpha"] }, "echo: hello"],
  ])("accepts %s", async (_, json, body) => {
    const answer = await send({ ...TOKEN, ...json });
    expect(answer.body).toMatchObject({ response: { message: { body } } });
  });

  it("waits for every target", async () => {
    const answer = await send({ ...TOKEN, body: "hello", targets: ["clerk@beta", "clerk@gamma"] });
    const { response } = answer.body as { response: { message: { body: string } } };
    expect(response.message.body.split("\n\n").sort()).toEqual([
      "clerk@beta: beta says: hello",
      "clerk@gamma: gamma says: hello",
    ]);
  });

  it("waits for the second swarm even if the first answers several times, and ends the task remotely", async () => {
    const taskId = randomUUID();
    const targets = ["slow@beta", "clerk@gamma"];
    const asked = send({ ...TOKEN, body: "[hold] hello", targets, task_id: taskId });
    const fromGamma = async () =>
      (await journalOf(alpha, "user", "ann", taskId)).flatMap((entry) =>
        entry.t === "sent" && entry.message.message.sender.address === "clerk@gamma" ? [entry.message] : [],
      );
    const [first] = await until(async () => {
      const task = await alpha.mailroom.user("ann").task(taskId);
      const found = task === undefined ? [] : await fromGamma();
      return found.length > 0 ? found : undefined;
    }, "gamma's answer");
    if (first?.msg_type !== "response") throw new Error("gamma answers with a response");
    const more = {
      taskId,
      owner: "user:ann@alpha",
      source: "gamma",
      from: "clerk@gamma",
      to: "ann@alpha",
      type: "response",
      requestId: first.message.request_id,
    } as const;
    for (const wish of [
      { body: "and another thing" },
      { subject: "::task_complete::", body: "gamma is done" },
    ]) {
      expect((await deliver(alpha.url, "back", { ...more, ...wish })).status).toBe(200);
    }
    expect((await fromGamma()).map(({ message }) => message.body)).toEqual([
      "gamma says: [hold] hello",
      "and another thing",
      "gamma is done",
    ]);
    await until(() => slow.begun > 0, "beta's turn");
    slow.release(true);
    const { response } = (await asked).body as { response: { message: { body: string } } };
    expect(response.message.body.split("\n\n").sort()).toEqual([
      "clerk@gamma: and another thing",
      "clerk@gamma: gamma says: [hold] hello",
      "slow@beta: late: [hold] hello",
    ]);
    expect(turnsIn(await journalOf(alpha, "user", "ann", taskId))).toBe(0);
  });

  it("with `stream` returns the events, and sends them live to an event stream", async () => {
    const answer = await send({ ...TOKEN, body: "hello", targets: ["clerk@beta"], stream: true });
    const { events } = answer.body as { events: { event: string }[] };
    expect(events.map(({ event }) => event)).toEqual(
      expect.arrayContaining(["interswarm_message_sent", "interswarm_message_received", "task_complete"]),
    );
    const stream = await send({ ...TOKEN, body: "hello", targets: ["clerk@beta"] }, "user:ann", {
      accept: "text/event-stream",
    });
    expect(stream.headers["content-type"]).toContain("text/event-stream");
    expect(stream.text).toContain("event: task_complete");
  });

  it("never stores or forwards the user's token", async () => {
    const taskId = randomUUID();
    await send({ user_token: "s3cr3t-token", body: "hello", targets: ["clerk@beta"], task_id: taskId });
    const here = JSON.stringify(await journalOf(alpha, "user", "ann", taskId));
    const there = JSON.stringify(await journalOf(beta, "swarm", "alpha", taskId));
    expect(here + there).not.toContain("s3cr3t-token");
  });

  it.each([
    ["no token of the user", { body: "x", targets: ["a@beta"] }, 401, "user token is required"],
    ["no targets", { ...TOKEN, body: "x" }, 400, "'targets' and 'body' are required"],
    ["no body", { ...TOKEN, targets: ["a@beta"] }, 400, "'targets' and 'body' are required"],
    [
      "a request to two",
      { ...TOKEN, body: "x", targets: ["a@beta", "b@beta"], msg_type: "request" },
      400,
      "'request' messages require exactly one target",
    ],
    [
      "an unsupported type",
      { ...TOKEN, body: "x", targets: ["a@beta"], msg_type: "interrupt" },
      400,
      "msg_type 'interrupt' is not supported for interswarm send",
    ],
    ["an unknown swarm", { ...TOKEN, body: "x", targets: ["a@zeta"] }, 404, "unknown swarm endpoint: 'zeta'"],
  ])("rejects %s", async (_, json, status, detail) => {
    const answer = await send(json);
    expect([answer.status, answer.body]).toEqual([status, expect.objectContaining({ detail })]);
  });

  it("is closed to agents in this form, and its old name works", async () => {
    expect((await send({ ...TOKEN, body: "x", targets: ["a@beta"] }, "agent:beta")).status).toBe(401);
    const json = { ...TOKEN, message: "hello", target_agent: "clerk@beta" };
    const old = await call(alpha.url, "/interswarm/send", { token: "user:ann", json });
    expect(old.body).toMatchObject({ response: { message: { body: "beta says: hello" } } });
  });

  it("fails when the target fails, with the reason", async () => {
    const answer = await send({ ...TOKEN, body: "x", targets: ["nobody@beta"] });
    expect([answer.status, answer.body]).toEqual([
      200,
      expect.objectContaining({
        status: "failed",
        error: expect.objectContaining({ code: "undeliverable" }),
      }),
    ]);
  });
});

describe("a stream of a task", () => {
  it("shows another swarm's events in order, marked with that swarm, and ends with the task", async () => {
    const events: { event: string; swarm: unknown; inner: unknown }[] = [];
    for await (const { event, data } of alpha.mailroom.user("ann").stream("ask slow@beta: watch me")) {
      events.push({ event, swarm: data.extra_data.swarm, inner: data.extra_data.event });
      // Beta's agent answers only after its turn was seen here.
      if (event === "interswarm_event" && data.extra_data.event === "new_message") slow.release();
    }
    expect(events.at(-1)?.event).toBe("task_complete");
    const copied = events.filter(({ event }) => event === "interswarm_event");
    expect(copied.length).toBeGreaterThan(0);
    for (const { swarm } of copied) expect(swarm).toBe("beta");
    expect(copied[0]?.inner).toBe("interswarm_message_received");
    const record = await alpha.mailroom.user("ann").tasks({ limit: 1 });
    const task = await alpha.mailroom.user("ann").requireTask(record.tasks[0]?.task_id ?? "");
    const ids: unknown[] = [];
    for await (const { entry } of task.journal()) if (entry.t === "remote_event") ids.push(entry.id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

it("a stream of a swarm's events ends when the swarm is unregistered", async () => {
  const server = await openTestServer({ swarm: testSwarm("watcher", ["beta"]) });
  await introduce(server, beta);
  await introduce(beta, server);
  const openStreams = async (): Promise<number> => {
    const headers = { authorization: "Bearer admin:root" };
    const text = await (await fetch(`${beta.url}/metrics`, { headers })).text();
    return Number(/^mailroom_streams (\d+)$/m.exec(text)?.[1]);
  };
  const ann = server.mailroom.user("ann");
  for await (const { event, data } of ann.stream("ask slow@beta: watch me")) {
    if (event !== "interswarm_event" || data.extra_data.event !== "new_message") continue;
    expect(await openStreams()).toBe(1);
    await server.federation.registry.unregister("beta");
    await until(async () => (await openStreams()) === 0 || undefined, "the end of the stream");
    slow.release();
    await (await ann.requireTask(data.task_id)).cancel();
  }
  await server.close();
});

it("[MAIL-ROUTER-01] one registry and one router serve all callers, also those connected before a swarm was registered", async () => {
  const server = await openTestServer({ swarm: testSwarm("late", ["beta"]) });
  const ann = server.mailroom.user("ann");
  expect((await ann.ask("ask clerk@beta: hi")).response).toMatch(/not delivered/);
  const json = { name: "beta", base_url: beta.url, auth_token: "agent:late" };
  const registered = await call(server.url, "/swarms", { token: "admin:root", json });
  expect(registered.body).toEqual({ status: "registered", swarm_name: "beta" });
  await introduce(server, beta);
  expect((await ann.ask("ask clerk@beta: hi")).response).toBe("clerk@beta: beta says: hi");
  const listed = await call(server.url, "/swarms", { token: "user:ann" });
  expect(JSON.stringify(listed.body)).not.toMatch(/agent:late|auth/);
  expect(listed.body).toMatchObject({
    swarms: [{ swarm_name: "late" }, { swarm_name: "beta", is_active: true }],
  });
  await server.close();
});
