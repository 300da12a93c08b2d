/** Responses with complete tasks: complete at any size, and never buffered beyond the reader's speed. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { fieldOf, type Harness, startServer } from "./harness.js";

let harness: Harness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

/** Four bytes in UTF-8 and two UTF-16 units, so that chunks split characters. */
const LONG = `[direct] ${"😀".repeat(60_000)}`;
const ANN = { role: "user", id: "alice" } as const;
const asAnn = { token: "user-token" } as const;

/** More than the buffers of a connection hold. */
async function fill({ mailroom }: Harness, rounds: number): Promise<void> {
  for (let n = 0; n < rounds; n++) await mailroom.instance(ANN).ask(LONG, { taskId: "long" });
}

/** A response that has begun and is not read. */
async function begin(url: string): Promise<IncomingMessage> {
  const request = get(url, { headers: { authorization: "Bearer user-token" }, agent: false });
  const [response] = await once(request, "response");
  return response;
}

describe("complete tasks", () => {
  it("are the same as in the library, short and long, alone and in a list", async () => {
    harness = await startServer();
    const { call, mailroom } = harness;
    const instance = mailroom.instance(ANN);
    await fill(harness, 2);
    await instance.ask("[direct] short", { taskId: "__proto__" });
    const records = new Map<string, unknown>();
    for (const id of ["__proto__", "long"]) {
      const record = JSON.parse(JSON.stringify(await (await instance.requireTask(id)).record()));
      records.set(id, record);
      const answer = await call(`/tasks/${id}`, asAnn);
      expect(answer).toMatchObject({ status: 200, headers: { "content-type": JSON_TYPE } });
      expect(answer.body).toEqual(record);
      expect((await call(`/task?task_id=${id}`, asAnn)).text).toBe(answer.text);
    }
    const list = await call("/tasks", asAnn);
    expect(list).toMatchObject({ status: 200, headers: { "content-type": JSON_TYPE } });
    const byId = typeof list.body === "object" && list.body !== null ? Object.entries(list.body) : [];
    expect(byId).toEqual([...records]);
    expect((await call("/tasks", { token: "user-token-b" })).text).toBe("{}");
  });

  it("are dropped when their reader takes nothing, and others are served in the meantime", async () => {
    harness = await startServer({ limits: { streamStallTimeout: 200 } });
    const { call, url } = harness;
    await fill(harness, 20);
    const response = await begin(`${url}/tasks`);
    const dropped = once(response, "error");
    expect((await call("/whoami", asAnn)).status).toBe(200);
    const metrics = async () => (await call("/metrics", { token: "admin-token" })).text;
    await expect.poll(metrics, { timeout: 10_000 }).toContain("mailroom_dropped_listeners_total 1");
    response.resume();
    await dropped;
  });

  it("leave no state behind when their readers disconnect", async () => {
    harness = await startServer();
    const { call, url } = harness;
    await fill(harness, 20);
    for (let n = 0; n < 6; n++) (await begin(`${url}/tasks/long`)).destroy();
    const whole = await call("/tasks/long", asAnn);
    expect(fieldOf(whole.body, "status")).toBe("completed");
  });
});

const LARGE = [
  "/tasks/long",
  "/tasks/long/events",
  "/tasks/long/journal",
  "/tasks/long/journal?before=1000",
  "/tasks/long/export",
];

describe("large answers of one caller", () => {
  it("wait for a place while the reader of others takes nothing, and other callers do not", async () => {
    harness = await startServer({ limits: { streamStallTimeout: 600_000 } });
    const { call, url } = harness;
    await fill(harness, 40);
    const unread = await Promise.all(Array.from({ length: 4 }, () => begin(`${url}/tasks/long/export`)));
    const waiting = LARGE.map((path) => call(path, asAnn));
    const first = Promise.race(waiting).then(() => "answered");
    for (let n = 0; n < 5; n++) expect((await call("/whoami", asAnn)).status).toBe(200);
    expect((await call("/tasks", { token: "user-token-b" })).status).toBe(200);
    expect(await Promise.race([first, "waiting"])).toBe("waiting");
    for (const response of unread) response.destroy();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(LARGE.map(() => 200));
  });

  it.each(LARGE)(
    "%s: requests behind others on a connection leave their places with the client",
    async (path) => {
      harness = await startServer();
      const { call, url } = harness;
      await fill(harness, 20);
      const socket = connect(Number(new URL(url).port), "127.0.0.1");
      socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer user-token\r\n\r\n`.repeat(8));
      await once(socket, "readable");
      socket.destroy();
      expect((await call(path, asAnn)).status).toBe(200);
    },
  );
});

const JSON_TYPE = "application/json; charset=utf-8";

it("a page of long events ends before it is too large, and the next one continues", async () => {
  harness = await startServer();
  const { call } = harness;
  await fill(harness, 20);
  const seen: unknown[] = [];
  let pages = 0;
  let after = "";
  for (let more = true; more; pages++) {
    const page = await call(`/tasks/long/events${after}`, asAnn);
    expect(page.text.length).toBeLessThan(6 * 1024 * 1024);
    seen.push(fieldOf(page.body, "events"));
    after = `?after=${String(fieldOf(page.body, "next_after"))}`;
    more = fieldOf(page.body, "more") === true;
  }
  expect(pages).toBeGreaterThan(1);
  const whole = await call("/tasks/long", asAnn);
  expect(seen.flat()).toEqual(fieldOf(whole.body, "events"));
});
