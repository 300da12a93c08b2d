/** Tests the client against the real server. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MailClient, MailClientError, type TaskEvent } from "../../src/client/index.js";
import { cuttingProxy } from "./cutting-proxy.js";
import { type RealServer, realServer } from "./real-server.js";

let server: RealServer;
beforeAll(async () => {
  server = await realServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const as = (token: string) => new MailClient(server.url, { token });

async function collect(events: AsyncIterable<TaskEvent>): Promise<TaskEvent[]> {
  const all: TaskEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** The expected events, from the journal. */
async function journal(user: string, taskId: string): Promise<unknown[]> {
  const task = await server.mailroom.user(user).requireTask(taskId);
  const events: unknown[] = [];
  for await (const event of task.events()) events.push(event);
  return events;
}

describe("every endpoint", () => {
  it("reports the server's info and the caller", async () => {
    const client = as("user:ann");
    expect(await client.ping()).toMatchObject({ swarm: { name: "talkative" }, status: "running" });
    expect(await client.getHealth()).toMatchObject({ status: "healthy" });
    expect(await client.whoami()).toEqual({ role: "user", id: "ann" });
    expect(await client.getStatus()).toMatchObject({ swarm: { name: "talkative" } });
    expect((await client.getSwarms()).map(({ swarm_name }) => swarm_name)).toContain("talkative");
    expect(await new MailClient(server.url).login("admin:root")).toEqual({ role: "admin", id: "root" });
  });

  it("gives admins access that users lack", async () => {
    const admin = as("admin:root");
    expect(await admin.updateHealth("tired")).toMatchObject({ status: "tired" });
    expect(await admin.updateHealth("healthy")).toMatchObject({ status: "healthy" });
    expect(await admin.dumpSwarm()).toMatchObject({ status: "dumped", swarm_name: "talkative" });
    await expect(as("user:ann").updateHealth("x")).rejects.toMatchObject({ status: 401 });
    await expect(as("user:ann").dumpSwarm()).rejects.toBeInstanceOf(MailClientError);
    await expect(as("user:ann").admin.getTaskPage()).rejects.toMatchObject({ status: 403 });
    await expect(admin.loadSwarm("{}")).rejects.toMatchObject({ status: 400 });
  });

  it("posts, waits, and continues a task", async () => {
    const client = as("user:talk");
    const first = await client.postMessage("one", { taskId: "talk", subject: "Hello", showEvents: true });
    expect(first).toMatchObject({ response: "echo: one", status: "completed", task_id: "talk" });
    expect(first.events).toEqual(await journal("talk", "talk"));
    expect(await client.postMessage("two", { taskId: "talk" })).toMatchObject({ response: "echo: two" });
    const posted = await client.postMessage("three", { wait: false });
    expect(posted.status).toBe("running");
    await expect(client.postMessage("x", { entrypoint: "nobody" })).rejects.toMatchObject({
      status: 400,
      code: "not_entrypoint",
    });
  });

  it("executes a repeated write once", async () => {
    const client = as("user:twice");
    const options = { taskId: "once", idempotencyKey: "key-1" };
    const answers = [await client.postMessage("hello", options), await client.postMessage("hello", options)];
    expect(answers[0]).toEqual(answers[1]);
    const events = await journal("twice", "once");
    expect(events.filter((event) => JSON.stringify(event).includes("echo: hello"))).not.toHaveLength(0);
    expect(
      (await client.getTask("once")).events.filter(({ event }) => event === "task_complete"),
    ).toHaveLength(1);
    await expect(client.postMessage("other", options)).rejects.toMatchObject({ status: 422 });
  });

  it("lists, reads and pages the caller's own tasks", async () => {
    const client = as("user:pages");
    for (let number = 0; number < 7; number += 1) await client.postMessage("x", { taskId: `t${number}` });
    const ids: string[] = [];
    for await (const task of client.listTasks({ limit: 3 })) ids.push(task.task_id);
    expect(ids).toEqual(["t6", "t5", "t4", "t3", "t2", "t1", "t0"]);
    expect(Object.keys(await client.getTasks()).sort()).toEqual(ids.toReversed());
    expect((await client.getTaskPage({ status: "running" })).tasks).toEqual([]);
    expect(await client.getTask("t3")).toMatchObject({ task_id: "t3", status: "completed" });
    await expect(as("user:other").getTask("t3")).rejects.toMatchObject({ status: 404, code: "unknown_task" });
    const key = (await client.getTask("t3")).key ?? "";
    expect(await as("admin:root").admin.getTask(key)).toMatchObject({ task_owner: "user:pages@talkative" });
    expect(await collect(as("admin:root").admin.taskEvents(key))).toEqual(await journal("pages", "t3"));
  });

  it("answers a breakpoint, and cancels", async () => {
    const client = as("user:break");
    const paused = await client.postMessage("ask", { taskId: "b" });
    expect(paused).toMatchObject({ status: "paused", breakpoint: [{ name: "ask_human" }] });
    expect(await client.answerBreakpoint("b", "fine")).toMatchObject({
      status: "completed",
      response: "a person said: fine",
    });
    await expect(client.answerBreakpoint("b", "again")).rejects.toMatchObject({ status: 409 });
    await client.postMessage("ask", { taskId: "c" });
    await client.cancelTask("c");
    expect((await client.getTask("c")).status).toBe("cancelled");
    await expect(client.cancelTask("c")).rejects.toMatchObject({ status: 409 });
  });
});

describe("events", () => {
  it("of an idle task are read to the end, from the start or after any event", async () => {
    const client = as("user:events");
    await client.postMessage("count 3", { taskId: "e" });
    const truth = await journal("events", "e");
    const all = await collect(client.taskEvents("e"));
    expect(all).toEqual(truth);
    for (const [index, { id }] of all.entries()) {
      const rest = await collect(client.taskEvents("e", { after: id ?? "" }));
      expect(rest).toEqual(truth.slice(index + 1));
    }
  });

  it("of a running task continue until it is idle", async () => {
    const client = as("user:live");
    const { task_id = "" } = await client.postMessage("count 40", { wait: false });
    expect(await collect(client.taskEvents(task_id))).toEqual(await journal("live", task_id));
  });

  it("can be followed without end, through later rounds", async () => {
    const client = as("user:ever");
    await client.postMessage("one", { taskId: "t" });
    const control = new AbortController();
    const seen: TaskEvent[] = [];
    for await (const event of client.taskEvents("t", { live: true, signal: control.signal })) {
      seen.push(event);
      if (event.event !== "task_complete") continue;
      if (event.data.response === "echo: two") break;
      await client.postMessage("two", { taskId: "t", wait: false });
    }
    expect(seen).toEqual(await journal("ever", "t"));
  });

  it("of a posted message arrive exactly once, wherever and however often the connection breaks", async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 6_000 }), { minLength: 1, maxLength: 12 }),
        async (cuts) => {
          run += 1;
          const taskId = `cut-${run}`;
          const left = [...cuts];
          await using proxy = await cuttingProxy(server.url, () => left.shift());
          const client = new MailClient(proxy.url, {
            token: "user:cut",
            reconnects: 20,
            retries: 20,
            retryPause: 1,
          });
          const events = await collect(client.postMessageStream("count 12", { taskId }));
          expect(events).toEqual(await journal("cut", taskId));
        },
      ),
      { numRuns: 25 },
    );
  });

  it("of a message that waits behind another one end with its own round, wherever the connection breaks", async () => {
    for (let cut = 1_000; cut < 14_000; cut += 1_300) {
      const taskId = `behind-${cut}`;
      const owner = `behind${cut}`;
      const first = await as(`user:${owner}`).postMessage("count 9", { taskId, wait: false });
      expect(first.status).toBe("running");
      const left = [cut, 1_500, 800];
      await using proxy = await cuttingProxy(server.url, () => left.shift());
      const client = new MailClient(proxy.url, {
        token: `user:${owner}`,
        reconnects: 20,
        retries: 20,
        retryPause: 1,
      });
      const events = await collect(client.postMessageStream("hello", { taskId }));
      expect(events.at(-1)?.data.response, `cut after ${cut} bytes`).toBe("echo: hello");
      const all = await journal(owner, taskId);
      expect(all.slice(-events.length)).toEqual(events);
    }
  });

  it("of a later round arrive exactly once, without earlier rounds", async () => {
    const direct = as("user:rounds");
    await direct.postMessage("count 5", { taskId: "r" });
    const before = (await journal("rounds", "r")).length;
    const left = [900, 2_500, 400, 3_000, 1];
    await using proxy = await cuttingProxy(server.url, () => left.shift());
    const client = new MailClient(proxy.url, {
      token: "user:rounds",
      reconnects: 20,
      retries: 20,
      retryPause: 1,
    });
    const events = await collect(client.postMessageStream("count 8", { taskId: "r" }));
    expect(proxy.cuts()).toBeGreaterThan(0);
    expect(events).toEqual((await journal("rounds", "r")).slice(before));
  });
});
