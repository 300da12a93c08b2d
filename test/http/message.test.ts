/** `POST /message` and its consequences. */
import { afterEach, describe, expect, it } from "vitest";
import type { MailroomOptions } from "../../src/library/mailroom.js";
import type { TestListenerOptions } from "../kit/listener.js";
import { type CallOptions, fieldOf, gate, type Harness, type Reply, startServer } from "./harness.js";
import { captureSwarm } from "./swarm.js";

let harness: Harness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

async function start(options: Partial<TestListenerOptions> & { room?: Partial<MailroomOptions> } = {}) {
  harness = await startServer(options);
  const { call } = harness;
  const send = (json: unknown, more: CallOptions = {}): Promise<Reply> =>
    call("/message", { token: "user-token", json, ...more });
  return { harness, call, send };
}

describe("a message", () => {
  it("[MAIL-REST-06] may use its older name, with every unset field null", async () => {
    const { send } = await start();
    const unset = { entrypoint: null, task_id: null, resume_from: null, kwargs: null, stream: null };
    expect((await send({ message: "[direct] old", ...unset })).body).toMatchObject({
      response: "direct: [direct] old",
      events: null,
      status: "completed",
    });
    expect((await send({ message: "[direct] old", body: "[direct] new" })).body).toMatchObject({
      response: "direct: [direct] new",
    });
    expect((await send({ body: "[direct] x", entrypoint: "  supervisor " })).status).toBe(200);
  });

  it("[MAIL-G-17] resumes a task of any status, and is a further message to a running one", async () => {
    const held = gate();
    const { send } = await start({ room: { swarm: captureSwarm({ hold: () => held.opened }) } });
    await send({ body: "[direct] 1", task_id: "t" });
    expect((await send({ body: "[direct] 2", task_id: "t" })).body).toMatchObject({ status: "completed" });
    await send({ body: "[hold] 3", task_id: "t", wait: false });
    const resume = { body: "[direct] 4", task_id: "t", resume_from: "user_response", wait: false };
    expect(await send(resume)).toMatchObject({ status: 202, body: { status: "running" } });
    expect(await send({ body: "x", resume_from: "user_response" })).toMatchObject({
      status: 400,
      body: { field: "task_id" },
    });
    held.open();
  });

  it("that fails is answered with the failure, not with an error", async () => {
    const { send } = await start();
    expect(await send({ body: "[raise]" })).toMatchObject({
      status: 200,
      body: {
        status: "failed",
        error: { code: "agent_error", message: expect.stringContaining("scripted") },
      },
    });
  });

  it("has the requested number of steps, as a number, as text, or without limit", async () => {
    const { send } = await start({ room: { limits: { maxSteps: 2, repetition: 0 } } });
    const steps = async (max_steps: unknown) => {
      const { body } = await send({ body: "Tokyo", kwargs: { max_steps } });
      return String(fieldOf(body, "response"));
    };
    expect(await steps(2)).toContain("::maximum_steps_reached::");
    expect(await steps("3")).toBe("Answer: sunny, 21C");
    expect(await steps(null)).toBe("Answer: sunny, 21C");
  });

  it("is rejected with a task id that is not a UUID where ids are strict", async () => {
    const { send } = await start({ strictIds: true });
    expect(await send({ body: "[direct] x", task_id: "mine" })).toMatchObject({
      status: 400,
      body: { field: "task_id" },
    });
    expect((await send({ body: "[direct] x", task_id: "b8ff1c23-445f-44b3-b2bc-58b3443e16d8" })).status).toBe(
      200,
    );
  });

  it("passes the caller's credential to the agents without storing it", async () => {
    const seen: unknown[] = [];
    const { send, harness: at } = await start({
      room: {
        swarm: captureSwarm({
          hold: async (turn) => {
            seen.push(turn.params.user_token);
          },
        }),
      },
    });
    await send({ body: "[hold] x", task_id: "t" }, { token: "user-token-s3cret" });
    expect(seen).toEqual(["user-token-s3cret"]);
    const rows = await at.mailroom.store.readAll(0, 1000);
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain("token-s3cret");
  });
});

describe("a wait", () => {
  it("ends with a cancellation, for all waiting callers", async () => {
    const held = gate();
    const thinking = gate();
    const { call, send } = await start({
      room: {
        swarm: captureSwarm({
          hold: async () => {
            thinking.open();
            await held.opened;
          },
        }),
      },
    });
    const waiting = send({ body: "[hold] x", task_id: "t" });
    await thinking.opened;
    const cancelled = await call("/tasks/t/cancel", { method: "POST", token: "user-token" });
    expect(cancelled).toMatchObject({ status: 200, body: { task_id: "t", status: "cancelled" } });
    expect(await waiting).toMatchObject({ status: 200, body: { task_id: "t", status: "cancelled" } });
    const again = await call("/tasks/t/cancel", { method: "POST", token: "user-token" });
    expect(again).toMatchObject({ status: 409, body: { code: "already_ended" } });
    expect((await send({ body: "[direct] on", task_id: "t" })).body).toMatchObject({ status: "completed" });
    held.open();
  });

  it("ends when the server closes, and its task continues", async () => {
    const held = gate();
    const thinking = gate();
    const { send, harness: at } = await start({
      room: {
        swarm: captureSwarm({
          hold: async () => {
            thinking.open();
            await held.opened;
          },
        }),
      },
    });
    const waiting = send({ body: "[hold] x", task_id: "t" });
    await thinking.opened;
    await at.server.close();
    expect(await waiting).toMatchObject({ status: 202, body: { task_id: "t", status: "running" } });
    held.open();
    const task = await at.mailroom.user("alice").requireTask("t");
    for await (const event of task.events({ live: "round" })) {
      if (event.event === "task_complete") expect(event.data.response).toBe("Answer: sunny, 21C");
    }
    expect(await task.status()).toBe("completed");
  });
});

describe("a breakpoint", () => {
  it("with several calls needs a result for each of them, by id", async () => {
    const { call, send } = await start();
    const paused = await send({ body: "[two] Tokyo", task_id: "t" });
    const calls = fieldOf(paused.body, "breakpoint");
    const ids = Array.isArray(calls) ? calls.map((open) => String(fieldOf(open, "call_id"))) : [];
    expect(ids).toHaveLength(2);
    expect(JSON.parse(String(fieldOf(paused.body, "response")))).toEqual(calls);
    const answer = (results: unknown) =>
      call("/tasks/t/breakpoint", { token: "user-token", json: { results } });
    expect(await answer("yes")).toMatchObject({
      status: 400,
      body: { code: "missing_results", missing: ids },
    });
    expect(await answer([{ call_id: ids[0], content: "yes" }])).toMatchObject({
      status: 400,
      body: { code: "missing_results", missing: [ids[1]] },
    });
    expect(await answer([{ call_id: "nobody", content: "yes" }])).toMatchObject({
      status: 400,
      body: { code: "unknown_calls" },
    });
    expect(await answer(ids.map((call_id) => ({ call_id, content: "yes" })))).toMatchObject({
      status: 200,
      body: { status: "completed" },
    });
    expect(await answer("yes")).toMatchObject({ status: 409, body: { code: "not_paused" } });
  });

  it("can be answered through POST /message in every form, also as a stream", async () => {
    const { send } = await start();
    const resume = (result: unknown, more = {}) =>
      send({
        body: null,
        task_id: "t",
        resume_from: "breakpoint_tool_call",
        kwargs: { breakpoint_tool_call_result: result },
        ...more,
      });
    for (const result of ["yes", { content: "yes" }, '{"content": "yes"}']) {
      await send({ body: "[breakpoint] x", task_id: "t" });
      expect((await resume(result)).body).toMatchObject({ response: "Answer: human said: yes" });
    }
    await send({ body: "[breakpoint] x", task_id: "t" });
    const stream = await resume("yes", { stream: true });
    expect(stream.text).toContain("event: breakpoint_action_complete");
    expect(stream.text).toContain("Answer: human said: yes");
    expect(await resume(undefined)).toMatchObject({
      status: 400,
      body: { field: "kwargs.breakpoint_tool_call_result" },
    });
  });
});
