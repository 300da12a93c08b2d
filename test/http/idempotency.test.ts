/** A write with an idempotency key happens once, over real sockets and across restarts (decision D4). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/index.js";
import { KEY_LIFE } from "../../src/http/index.js";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import { createListener } from "../kit/listener.js";
import { replacing } from "../kit/replacing.js";
import { loopTurns } from "../kit/waiting.js";
import {
  call,
  fieldOf,
  gate,
  type Harness,
  parseStream,
  type Reply,
  startServer,
  testAuthenticator,
} from "./harness.js";
import { captureSwarm } from "./swarm.js";

let data: string;
let harness: Harness | undefined;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "mailroom-keys-"));
});
afterEach(async () => {
  await harness?.close();
  harness = undefined;
  rmSync(data, { recursive: true, force: true });
});

const key = (name: string) => ({ "idempotency-key": name });
const post = (json: unknown, name = "k", token = "user-token") => ({ token, json, headers: key(name) });

async function tasks(at: Harness): Promise<number> {
  return (await at.mailroom.store.tasks.list({ limit: 100 })).tasks.length;
}

describe("Idempotency-Key", () => {
  it("posts a message once and returns the same answer, also after a restart", async () => {
    harness = await startServer({ room: { data } });
    const first = await harness.call("/message", post({ body: "Tokyo?", show_events: true }));
    const again = await harness.call("/message", post({ body: "Tokyo?", show_events: true }));
    expect(again.body).toEqual(first.body);
    expect(again.headers["idempotency-replayed"]).toBe("true");
    await harness.close();
    harness = await startServer({ room: { data } });
    const later = await harness.call("/message", post({ body: "Tokyo?", show_events: true }));
    expect(later.body).toEqual(first.body);
    expect(later.status).toBe(200);
    expect(await tasks(harness)).toBe(1);
  });

  it("returns the answer of its own round, not of a later one", async () => {
    harness = await startServer({ room: { data } });
    const first = await harness.call("/message", post({ body: "[direct] one", task_id: "t" }));
    await harness.call("/message", post({ body: "[raise]", task_id: "t" }, "other"));
    const again = await harness.call("/message", post({ body: "[direct] one", task_id: "t" }));
    expect(again.body).toEqual(first.body);
  });

  it("joins the first call's wait while it is running, in this process and in the next", async () => {
    const held = gate();
    const swarm = captureSwarm({ hold: () => held.opened });
    harness = await startServer({ room: { data, swarm } });
    const started = await harness.call(
      "/message",
      post({ body: "[hold] x", task_id: "t", kwargs: { timeout: 0 } }),
    );
    expect(started).toMatchObject({ status: 202, body: { status: "running", response: null } });
    const [one, two] = [1, 2].map(() =>
      harness?.call("/message", post({ body: "[hold] y", task_id: "t" }, "y")),
    );
    const { call } = harness;
    const waiting = async () => (await call("/metrics", { token: "admin-token" })).text;
    await expect.poll(waiting).toContain("mailroom_waiting_requests 2");
    await harness.close();
    expect(await one).toMatchObject({ status: 202 });
    expect(await two).toMatchObject({ status: 202 });
    harness = await startServer({ room: { data, swarm } });
    const joined = harness.call("/message", post({ body: "[hold] y", task_id: "t" }, "y"));
    held.open();
    expect(await joined).toMatchObject({ status: 200, body: { status: "completed", task_id: "t" } });
    const { body } = await harness.call("/tasks/t", { token: "user-token" });
    const posted = parseMessages(body).filter((text) => text === "[hold] y");
    expect(posted).toHaveLength(1);
  });

  it("treats concurrent calls as one", async () => {
    harness = await startServer({ room: { data } });
    const calls = Array.from({ length: 20 }, () => harness?.call("/message", post({ body: "Tokyo?" })));
    const answers = await Promise.all(calls);
    expect(new Set(answers.map((answer) => answer?.text)).size).toBe(1);
    expect(await tasks(harness)).toBe(1);
  });

  it("replays a stream from its beginning", async () => {
    harness = await startServer({ room: { data } });
    const first = await harness.call("/message", post({ body: "Tokyo?", stream: true }));
    const again = await harness.call("/message", post({ body: "Tokyo?", stream: true }));
    expect(parseStream(again.text)).toEqual(parseStream(first.text));
    expect(await tasks(harness)).toBe(1);
  });

  it("rejects another request with the same key, and separates callers and routes", async () => {
    harness = await startServer({ room: { data } });
    await harness.call("/message", post({ body: "[direct] 1", task_id: "t" }));
    expect(await harness.call("/message", post({ body: "[direct] 2", task_id: "t" }))).toMatchObject({
      status: 422,
      body: { code: "idempotency_key_reused" },
    });
    const other = await harness.call("/message", post({ body: "[direct] 2" }, "k", "user-token-bob"));
    expect(other.status).toBe(200);
    const cancel = await harness.call("/tasks/t/cancel", { ...post(undefined), method: "POST" });
    expect(cancel).toMatchObject({ status: 409, body: { code: "already_ended" } });
  });

  it("stores nothing of a rejected request", async () => {
    harness = await startServer({ room: { data } });
    const refused = await harness.call("/message", post({ body: "x", entrypoint: "weather" }));
    expect(refused.status).toBe(400);
    expect((await harness.call("/message", post({ body: "[direct] x" }))).status).toBe(200);
  });

  it("works for every other write", async () => {
    const held = gate();
    harness = await startServer({ room: { data, swarm: captureSwarm({ hold: () => held.opened }) } });
    const { call } = harness;
    await call("/message", { token: "user-token", json: { body: "[hold] x", task_id: "t", wait: false } });
    const cancel = () => call("/tasks/t/cancel", { method: "POST", token: "user-token", headers: key("c") });
    const first = await cancel();
    expect(first).toMatchObject({ status: 200, body: { task_id: "t", status: "cancelled" } });
    expect((await cancel()).body).toEqual(first.body);
    const health = (status: string) => call("/health", post({ status }, "h", "admin-token"));
    const degraded = await health("degraded");
    await call("/health", { token: "admin-token", json: { status: "healthy" } });
    expect((await health("degraded")).body).toEqual(degraded.body);
    expect((await call("/health")).body).toMatchObject({ status: "healthy" });
    await call("/message", { token: "user-token", json: { body: "[breakpoint] x", task_id: "b" } });
    const answer = () => call("/tasks/b/breakpoint", post({ results: "yes" }, "b"));
    const answered = await answer();
    expect(answered).toMatchObject({ status: 200, body: { response: "Answer: human said: yes" } });
    expect((await answer()).body).toEqual(answered.body);
    held.open();
  });

  it("expires after a day", async () => {
    let offset = 0;
    const clock = { ...systemClock, now: () => Date.now() + offset };
    harness = await startServer({ clock, room: { data } });
    await harness.call("/message", post({ body: "[direct] x" }));
    offset = KEY_LIFE - 60_000;
    await harness.call("/message", post({ body: "[direct] x" }));
    expect(await tasks(harness)).toBe(1);
    offset = KEY_LIFE + 60_000;
    expect((await harness.call("/message", post({ body: "[direct] y" }))).status).toBe(200);
    expect(await tasks(harness)).toBe(2);
  });

  it("must be a valid key", async () => {
    harness = await startServer({ room: { data: false } });
    for (const name of ["", "with space", "x".repeat(256)]) {
      const reply = await harness.call("/message", post({ body: "[direct] x" }, name));
      expect(reply, name).toMatchObject({ status: 400, body: { field: "Idempotency-Key" } });
    }
  });
});

function parseMessages(body: unknown): unknown[] {
  const events = fieldOf(body, "events");
  if (!Array.isArray(events)) throw new Error("a task has events");
  return events
    .filter(
      (event) =>
        fieldOf(event, "data", "extra_data", "full_message", "message", "sender", "address_type") === "user",
    )
    .map((event) => fieldOf(event, "data", "extra_data", "full_message", "message", "body"));
}

describe("Idempotency-Key on two listeners of one mailroom", () => {
  /** Both listeners look up the key before the other's write is durable. */
  async function atBoth(request: (door: Harness) => Promise<Reply>): Promise<readonly Reply[]> {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    let looked = 0;
    const http = replacing(store.http, {
      storedWrite: async (...args) => {
        const kept = await store.http.storedWrite(...args);
        looked++;
        return kept;
      },
    });
    const first = await startServer({ room: { store: replacing(store, { http }) } });
    const { mailroom } = first;
    const server = await createListener({ mailroom, authenticator: testAuthenticator, version: "0.0.0" });
    const url = await server.listen();
    const second: Harness = { ...first, url, server, call: (at, options) => call(url, at, options) };
    harness = { ...first, close: () => server.close().then(() => first.close()) };
    const paused = { token: "user-token", json: { body: "[breakpoint] x", task_id: "paused" } };
    expect(await first.call("/message", paused)).toMatchObject({ body: { status: "paused" } });
    disk.hold();
    const replies = [request(first), request(second)];
    await expect.poll(() => looked).toBe(2);
    await loopTurns(20);
    disk.release();
    return Promise.all(replies);
  }

  it.each([
    ["/message", { body: "Tokyo?" }],
    ["/message", { body: "[direct] one", task_id: "new" }],
    ["/tasks/paused/breakpoint", { results: "yes" }],
    ["/tasks/paused/cancel", {}],
  ])("%s %o happens once, and both callers get its answer", async (path, json) => {
    const [first, second] = await atBoth((door) => door.call(path, post(json)));
    expect(first?.status).toBe(200);
    expect(second?.text).toBe(first?.text);
    const replays = [first, second].map((reply) => reply?.headers["idempotency-replayed"]);
    expect(replays.filter((replayed) => replayed === "true")).toHaveLength(1);
    if (harness === undefined) throw new Error("there is no server");
    expect(await tasks(harness)).toBe(path === "/message" ? 2 : 1);
  });
});
