/** A caller's tasks do not exist for other callers, on any route (law 6). */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemIds } from "../../src/base/node.js";
import type { TaskPut } from "../../src/engine/ports.js";
import type { OpenApiDocument } from "../../src/http/index.js";
import { fieldOf, gate, type Harness, startServer } from "./harness.js";
import { captureSwarm } from "./swarm.js";

const ANN = "user-token-ann";
const BOB = "user-token-bob";
const SECRET = "ann's secret";

let harness: Harness;
let held: ReturnType<typeof gate>;
let key: string;
beforeEach(async () => {
  held = gate();
  harness = await startServer({ room: { swarm: captureSwarm({ hold: () => held.opened }) } });
  const { call } = harness;
  await call("/message", { token: ANN, json: { body: `[direct] ${SECRET}`, task_id: "done" } });
  await call("/message", { token: ANN, json: { body: `[breakpoint] ${SECRET}`, task_id: "paused" } });
  await call("/message", { token: ANN, json: { body: `[hold] ${SECRET}`, task_id: "running", wait: false } });
  key = String(fieldOf((await call("/tasks/done", { token: ANN })).body, "key"));
});
afterEach(async () => {
  held.open();
  await harness.close();
});

const TASKS = ["done", "paused", "running"];
/** Valid bodies, so that nothing but the task is at fault. */
const BODIES: Readonly<Record<string, object>> = {
  nameApprovers: { approvers: ["user"] },
  adminNameApprovers: { approvers: ["user"] },
  adminPostMessage: { body: "hello" },
  setTaskBudget: { budget: { max_calls: 1 } },
  adminSetTaskBudget: { budget: { max_calls: 1 } },
};

async function statuses(token: string): Promise<unknown> {
  const { body } = await harness.call("/tasks?limit=10", { token });
  const tasks = fieldOf(body, "tasks");
  return Array.isArray(tasks) ? tasks.map((task) => [fieldOf(task, "task_id"), fieldOf(task, "status")]) : [];
}

describe("the status", () => {
  const statusFor = async (token: string) => (await harness.call("/status", { token })).body;

  it("counts the caller's own tasks only", async () => {
    const instance = { role: "user", id: "user-cyd" } as const;
    const rows = Array.from({ length: 2_500 }, (_, n): TaskPut => {
      const { ordered } = systemIds;
      const times = { createdAt: n, updatedAt: n };
      return {
        kind: "task.put",
        row: { key: ordered(), instance, taskId: `t${n}`, owner: "cyd", status: "running", ...times },
      };
    });
    await harness.mailroom.store.commit({ appends: [], rows });
    expect(await statusFor(ANN)).toMatchObject({ user_mail_ready: true, user_task_running: true });
    expect(await statusFor(BOB)).toMatchObject({ user_mail_ready: false, user_task_running: false });
    await harness.call("/tasks/running/cancel", { token: ANN, method: "POST" });
    expect(await statusFor(ANN)).toMatchObject({ user_mail_ready: true, user_task_running: false });
  });
});

describe("another user", () => {
  for (const token of [BOB, "admin-token-ann", "user-token-ANN"]) {
    it(`finds nothing on any route with a task id (${token})`, async () => {
      const document: OpenApiDocument = JSON.parse((await harness.call("/openapi.json")).text);
      const before = await statuses(ANN);
      const tried: string[] = [];
      for (const [template, methods] of Object.entries(document.paths)) {
        if (!/\{(?:task_id|key)\}/.test(template)) continue;
        for (const [method, operation] of Object.entries(methods)) {
          if (template.includes("{key}") && token.startsWith("admin")) continue;
          for (const task of TASKS) {
            const path = template.replace("{task_id}", task).replace("{key}", key);
            for (const accept of ["application/json", "text/event-stream"]) {
              const reply = await harness.call(path, {
                token,
                method: method.toUpperCase(),
                headers: { accept },
                ...(operation.requestBody !== undefined && {
                  json: BODIES[operation.operationId] ?? { results: "yes" },
                }),
              });
              expect([403, 404], `${method} ${path}`).toContain(reply.status);
              expect(reply.text).not.toContain(SECRET);
              tried.push(path);
            }
          }
        }
      }
      expect(tried.length).toBeGreaterThan(20);
      expect(await statuses(ANN)).toEqual(before);
    });

    it(`cannot list, read, resume or answer the tasks (${token})`, async () => {
      const { call } = harness;
      const before = await statuses(ANN);
      expect((await call("/tasks", { token })).body).toEqual({});
      expect(await statuses(token)).toEqual([]);
      for (const task of TASKS) {
        expect((await call(`/task?task_id=${task}`, { token })).status).toBe(404);
        expect((await call("/task", { token, method: "GET", json: { task_id: task } })).status).toBe(404);
        const resume = { body: "x", task_id: task, resume_from: "user_response" };
        expect((await call("/message", { token, json: resume })).status).toBe(404);
        const answer = {
          task_id: task,
          resume_from: "breakpoint_tool_call",
          kwargs: { breakpoint_tool_call_result: "yes" },
        };
        expect((await call("/message", { token, json: answer })).status).toBe(404);
      }
      expect(await statuses(ANN)).toEqual(before);
    });

    it(`[MAIL-AUTH-02] may use the same ids for their own tasks (${token})`, async () => {
      const { call } = harness;
      for (const task of TASKS) {
        const mine = await call("/message", {
          token,
          json: { body: "[direct] mine", task_id: task, show_events: true },
        });
        expect(mine).toMatchObject({ status: 200, body: { response: "direct: [direct] mine" } });
        expect(mine.text).not.toContain(SECRET);
        const stream = await call(`/tasks/${task}/events?until=round`, {
          token,
          headers: { accept: "text/event-stream" },
        });
        expect(stream.text).not.toContain(SECRET);
      }
      expect(await statuses(ANN)).toEqual([
        ["running", "running"],
        ["paused", "paused"],
        ["done", "completed"],
      ]);
    });
  }

  it("does not share idempotency keys", async () => {
    const headers = { "idempotency-key": "same" };
    const json = { body: `[direct] ${SECRET}` };
    await harness.call("/message", { token: ANN, json, headers });
    const other = await harness.call("/message", { token: BOB, json: { body: "[direct] b" }, headers });
    expect(other).toMatchObject({ status: 200, body: { response: "direct: [direct] b" } });
  });
});

describe("an admin", () => {
  it("sees any task by its key, may cancel it, and cannot write to it", async () => {
    const { call } = harness;
    const token = "admin-token";
    const list = await call("/admin/tasks", { token });
    const tasks = fieldOf(list.body, "tasks");
    expect(Array.isArray(tasks) && tasks.map((task) => fieldOf(task, "task_owner"))).toEqual(
      TASKS.map(() => "user:user-ann@alpha"),
    );
    expect((await call(`/admin/tasks/${key}`, { token })).text).toContain(SECRET);
    expect((await call(`/admin/tasks/${key}/events`, { token })).text).toContain(SECRET);
    const running = fieldOf(tasks, "0", "key");
    const cancel = await call(`/admin/tasks/${String(running)}/cancel`, { token, method: "POST" });
    expect(cancel).toMatchObject({ status: 200, body: { task_id: "running", status: "cancelled" } });
    expect(await statuses(ANN)).toContainEqual(["running", "cancelled"]);
    expect((await call(`/admin/tasks/${key}/cancel`, { token: ANN, method: "POST" })).status).toBe(403);
  });
});
