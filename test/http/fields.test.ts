/** Unknown fields of bodies: users and admins get a suggestion; what the reference's client sends is known. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Harness, startServer } from "./harness.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startServer();
});
afterAll(() => harness.close());

const send = (path: string, json: object, token = "user-token") => harness.call(path, { token, json });

it.each([
  ["/message", { body: "[direct] x", subjct: "Hi" }, "subjct", "did you mean 'subject'?"],
  ["/message", { body: "[direct] x", taskId: "t" }, "taskId", "did you mean 'task_id'?"],
  ["/tasks/t/breakpoint", { result: "yes", results: "yes" }, "result", "did you mean 'results'?"],
  ["/tasks/t/approvers", { approvers: [], approver: "user" }, "approver", "did you mean 'approvers'?"],
  ["/tasks/digest", { tasks: ["t"], task: "t" }, "task", "did you mean 'tasks'?"],
])("%s with %j names the field that was meant", async (path, json, field, hint) => {
  const reply = await send(path, json);
  expect(reply).toMatchObject({ status: 400, body: { code: "bad_request", field } });
  expect(reply.text).toContain(hint);
});

it("admins get the same, and nothing is changed", async () => {
  const reply = await send("/health", { status: "sleepy", statsu: "x" }, "admin-token");
  expect(reply).toMatchObject({ status: 400, body: { field: "statsu" } });
  expect((await harness.call("/health")).text).not.toContain("sleepy");
});

it("every field of the reference's client is known, unset ones as null", async () => {
  const reply = await send("/message", {
    body: "[direct] x",
    subject: "New Message",
    msg_type: "request",
    task_id: null,
    entrypoint: null,
    show_events: false,
    stream: null,
    resume_from: null,
    kwargs: { anything: 1 },
  });
  expect(reply).toMatchObject({ status: 200, body: { status: "completed" } });
});

it("a large list of events is part of the answer, and sent while it is read", async () => {
  for (let round = 0; round < 30; round++) {
    await send("/message", { body: `[direct] ${"x".repeat(5_000)}`, task_id: "large" });
  }
  const reply = await send("/message", { body: "[direct] last", task_id: "large", show_events: true });
  expect(reply.status).toBe(200);
  expect(reply.headers["transfer-encoding"]).toBe("chunked");
  expect(reply.body).toMatchObject({ status: "completed", task_id: "large" });
  const { events } = reply.body as { events: { id: string }[] };
  const page = await harness.call("/tasks/large/events", { token: "user-token" });
  expect(events.slice(0, 50)).toEqual((page.body as { events: unknown[] }).events.slice(0, 50));
});
