/** Journals, counts and filters of tasks over HTTP. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemIds } from "../../src/base/node.js";
import type { TaskPut } from "../../src/engine/ports.js";
import { fieldOf, type Harness, startServer } from "./harness.js";

const ANN = "user-token-ann";
const ADMIN = "admin-token-root";

let harness: Harness;
beforeEach(async () => {
  harness = await startServer();
});
afterEach(() => harness.close());

async function post(taskId: string, body: string): Promise<void> {
  const reply = await harness.call("/message", { token: ANN, json: { body, task_id: taskId } });
  expect(reply.status).toBe(200);
}

function numbersIn(body: unknown): unknown[] {
  const entries = fieldOf(body, "entries");
  return Array.isArray(entries) ? entries.map((entry) => fieldOf(entry, "n")) : [];
}

describe("a journal", () => {
  it("has every entry as it is stored, for its owner and for admins", async () => {
    await post("t", "[action] Tokyo");
    const { status, body } = await harness.call("/tasks/t/journal", { token: ANN });
    expect(status).toBe(200);
    const key = String(fieldOf(body, "key"));
    const stored: unknown[] = [];
    const task = await harness.mailroom.user("user-ann").requireTask("t");
    for await (const { number, entry } of task.journal()) stored.push({ n: number, ...entry });
    expect(fieldOf(body, "entries")).toEqual(stored);
    expect(body).toMatchObject({
      task_id: "t",
      status: "completed",
      number: stored.length,
      more: false,
      task_owner: expect.stringContaining("user-ann"),
    });
    const admin = await harness.call(`/admin/tasks/${key}/journal`, { token: ADMIN });
    expect(fieldOf(admin.body, "entries")).toEqual(stored);
  });

  it("is read in pages, forward and backward", async () => {
    await post("t", "[action] Tokyo");
    const whole = numbersIn((await harness.call("/tasks/t/journal", { token: ANN })).body);
    const forward: unknown[] = [];
    for (let after = 0, more = true; more; ) {
      const { body } = await harness.call(`/tasks/t/journal?after=${after}&limit=3`, { token: ANN });
      forward.push(...numbersIn(body));
      more = fieldOf(body, "more") === true;
      after = Number(forward.at(-1));
    }
    expect(forward).toEqual(whole);
    const backward: unknown[] = [];
    for (let before = 1_000_000, more = true; more; ) {
      const { body } = await harness.call(`/tasks/t/journal?before=${before}&limit=3`, { token: ANN });
      backward.unshift(...numbersIn(body));
      more = fieldOf(body, "more") === true;
      before = Number(backward[0]);
    }
    expect(backward).toEqual(whole);
    expect((await harness.call("/tasks/t/journal?before=5&after=1", { token: ANN })).status).toBe(400);
  });

  it("ends a page that becomes too long, in both directions", async () => {
    await post("t", `[direct] ${"x".repeat(900_000)}`);
    for (let n = 0; n < 4; n++) await post("t", `[direct] ${"x".repeat(900_000)}`);
    const whole = Number(fieldOf((await harness.call("/tasks/t/journal", { token: ANN })).body, "number"));
    for (const query of ["after=0", "before=100000"]) {
      const { body, text } = await harness.call(`/tasks/t/journal?${query}`, { token: ANN });
      expect(text.length).toBeLessThan(6_500_000);
      expect(fieldOf(body, "more")).toBe(true);
      expect(numbersIn(body)).toContain(query === "after=0" ? 1 : whole);
    }
  });

  it("does not tell users the store's position", async () => {
    await post("t", "[direct] one");
    const { body } = await harness.call("/tasks/t/journal", { token: ANN });
    expect(fieldOf(body, "cursor")).toMatch(/^[\w-]{22}$/);
    const key = String(fieldOf(body, "key"));
    const admin = await harness.call(`/admin/tasks/${key}/journal`, { token: ADMIN });
    expect(fieldOf(admin.body, "cursor")).toBe(String(await harness.mailroom.store.position()));
  });

  it("is exported as lines", async () => {
    await post("t", "[action] Tokyo");
    const { headers, text } = await harness.call("/tasks/t/export", { token: ANN });
    expect(headers["content-type"]).toContain("application/jsonl");
    const page = await harness.call("/tasks/t/journal", { token: ANN });
    const lines = text.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual(fieldOf(page.body, "entries"));
  });
});

describe("task lists", () => {
  const ids = (body: unknown): unknown[] => {
    const tasks = fieldOf(body, "tasks");
    return Array.isArray(tasks) ? tasks.map((task) => fieldOf(task, "task_id")) : [];
  };
  const list = async (query: string, token = ANN) =>
    (await harness.call(`${token === ADMIN ? "/admin" : ""}/tasks?${query}`, { token })).body;

  it("are filtered by several statuses, text, time and owner, and counted", async () => {
    await post("done", "[direct] one");
    await post("Held up", "[breakpoint] umbrella");
    await post("failed-1", "[raise]");
    const last = Date.now();
    const between = new Date(last + 1).toISOString();
    while (Date.now() <= last) await nextTurn();
    await post("later", "[direct] two");
    expect(ids(await list("status=completed&status=paused"))).toEqual(
      expect.arrayContaining(["later", "done", "Held up"]),
    );
    expect(ids(await list("status=paused"))).toEqual(["Held up"]);
    expect(await list("q=HELD")).toMatchObject({ tasks: [{ task_id: "Held up" }], scanned: 4 });
    expect(ids(await list(`since=${between}`))).toEqual(["later"]);
    expect(ids(await list(`until=${between}`))).toHaveLength(3);
    expect(ids(await list("owner=user:user-ann&limit=2", ADMIN))).toHaveLength(2);
    expect(ids(await list("owner=user:bob", ADMIN))).toEqual([]);
    const { body } = await harness.call("/tasks/counts", { token: ANN });
    expect(body).toMatchObject({ paused: 1, running: 0 });
    expect((await harness.call("/tasks/counts", { token: "user-token-bob" })).body).toMatchObject({
      paused: 0,
    });
    expect((await harness.call("/admin/tasks/counts", { token: ADMIN })).body).toEqual(body);
  });

  it("are filtered by an agent that took part, also by one that only received mail", async () => {
    await post("alone", "[direct] one");
    await post("both", "[action] Tokyo");
    const both = { tasks: [{ task_id: "both" }], next_cursor: null, scanned: 2 };
    expect(await list("agent=weather")).toMatchObject(both);
    expect(await list("agent=weather", ADMIN)).toMatchObject(both);
    expect(ids(await list("agent=supervisor"))).toEqual(["both", "alone"]);
    expect(ids(await list("agent=weather&status=failed"))).toEqual([]);
    expect(ids(await list("agent=__proto__"))).toEqual([]);
    expect(ids(await list("agent=weather", "user-token-bob"))).toEqual([]);
    expect((await harness.call("/tasks?agent=", { token: ANN })).status).toBe(400);
  });

  it("by agent end after 500 journals, and continue from there", async () => {
    await post("needle", "[action] Tokyo");
    const instance = { role: "user", id: "user-ann" } as const;
    const rows = Array.from({ length: 501 }, (_, n): TaskPut => {
      const times = { createdAt: n, updatedAt: n };
      const row = { instance, owner: "ann", status: "completed", title: "hay", ...times } as const;
      return { kind: "task.put", row: { key: systemIds.ordered(), taskId: `t${n}`, ...row } };
    });
    await harness.mailroom.store.commit({ appends: [], rows });
    const first = await list("agent=weather");
    expect(first).toMatchObject({ tasks: [], scanned: 500 });
    const next = await list(`agent=weather&cursor=${String(fieldOf(first, "next_cursor"))}`);
    expect(next).toMatchObject({ tasks: [{ task_id: "needle" }], next_cursor: null, scanned: 2 });
  });

  it("report how far they searched, and continue from there", async () => {
    const instance = { role: "user", id: "user-cyd" } as const;
    const rows = Array.from({ length: 11_000 }, (_, n): TaskPut => {
      const title = n === 3 ? "needle" : "hay";
      const times = { createdAt: n, updatedAt: n };
      return {
        kind: "task.put",
        row: {
          key: systemIds.ordered(),
          instance,
          taskId: `t${n}`,
          owner: "cyd",
          status: "completed",
          title,
          ...times,
        },
      };
    });
    await harness.mailroom.store.commit({ appends: [], rows });
    const token = "user-token-cyd";
    const first = await list("q=needle", token);
    expect(first).toMatchObject({ tasks: [], scanned: 10_000 });
    const next = await list(`q=needle&cursor=${String(fieldOf(first, "next_cursor"))}`, token);
    expect(next).toMatchObject({ tasks: [{ task_id: "t3" }], next_cursor: null });
    const seen = new Set<unknown>();
    let pages = 0;
    for (let cursor: unknown = ""; cursor !== null; pages++) {
      const page = await list(
        `status=completed&status=failed&limit=1000${cursor === "" ? "" : `&cursor=${String(cursor)}`}`,
        token,
      );
      for (const id of ids(page)) seen.add(id);
      cursor = fieldOf(page, "next_cursor");
    }
    expect(seen.size).toBe(11_000);
    expect(pages).toBe(11);
  });
});
