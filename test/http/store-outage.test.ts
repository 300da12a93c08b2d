/** Every protocol's response while the store cannot be written, and recovery afterwards. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { until } from "../federation/until.js";
import { wrapperOf } from "../federation/wire.js";
import { type Served, served } from "../kit/served.js";

/** A server whose database another program can lock. */
async function lockable(): Promise<{ server: Served; lock(): Promise<void>; unlock(): void }> {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-outage-"));
  const server = await served(ASKING_SWARM, "", directory);
  const other = new Database(join(server.running.dataDirectory ?? "", "mailroom.db"));
  onTestFinished(async () => {
    other.close();
    await server[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });
  const client = new MailClient(server.url, { token: "user:nudge", retries: 0 });
  return {
    server,
    lock: async () => {
      other.exec("BEGIN IMMEDIATE");
      // A write makes the failure visible.
      client.postMessage("hello", { wait: false }).catch(() => {});
      await until(async () => (await client.getHealth()).status === "degraded");
    },
    unlock: () => other.exec("ROLLBACK"),
  };
}

function post(url: string, path: string, body: unknown, token = "user:ann"): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "a2a-version": "1.0",
    },
    body: JSON.stringify(body),
  });
}

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1]);
}

describe("while the store cannot be written", () => {
  it("messages get 503, and reads, streams and waiting callers continue", async () => {
    const { server, lock, unlock } = await lockable();
    const { url } = server;
    const ann = new MailClient(url, { token: "user:ann", retries: 0 });
    await ann.postMessage("hello", { taskId: "done", idempotencyKey: "before" });
    const waiting = ann.postMessage("wait", { taskId: "t" });
    const clerk = server.running.mailroom.remoteAgent("clerk");
    const lent = await clerk.next();
    if (lent === undefined) throw new Error("nothing was lent");
    const stream = ann.taskEvents("t");
    expect((await stream.next()).done).toBe(false);
    await lock();

    for (const [path, body, token] of [
      ["/message", { body: "more" }],
      ["/message", { body: "more", task_id: "t" }],
      ["/interswarm/forward", { message: wrapperOf({ target: "asking", to: "desk@asking" }) }, "agent:beta"],
    ] as const) {
      const refusal = await post(url, path, body, token);
      expect(refusal.status, path).toBe(503);
      expect(Number(refusal.headers.get("retry-after")), path).toBeGreaterThan(0);
      expect(await refusal.json(), path).toMatchObject({ code: "store_busy" });
    }
    const health = await ann.getHealth();
    expect(health).toMatchObject({ status: "degraded", store: { reason: expect.stringMatching(/lock/) } });
    expect(health.store?.waiting).toBeGreaterThan(0);
    expect(health.store?.retries).toBeGreaterThan(0);
    expect(health.timestamp).toBe(health.store?.since);
    expect(await metric(url, "mailroom_store_waiting_writes")).toBeGreaterThan(0);
    expect(await metric(url, "mailroom_store_waiting_characters")).toBeGreaterThan(0);
    expect(await metric(url, "mailroom_store_retries_total")).toBeGreaterThan(0);
    expect(await metric(url, "mailroom_store_degraded_seconds")).toBeGreaterThan(0);
    expect(await ann.getTask("t")).toMatchObject({ status: "running" });
    // Durable answers are replayed without a write.
    const again = await ann.postMessage("hello", { taskId: "done", idempotencyKey: "before" });
    expect(again.response).toBe("You said: hello");

    const answered = clerk.answer(lent, {
      calls: [{ id: "1", name: "send_response", args: { target: "desk", subject: "Re", body: "in time" } }],
    });
    unlock();
    await answered;
    expect((await waiting).response).toBe("You said: in time");
    const rest: string[] = [];
    for await (const { event } of stream) rest.push(event);
    expect(rest.at(-1)).toBe("task_complete");
    expect((await ann.postMessage("again")).response).toBe("You said: again");
    const well = await ann.getHealth();
    expect(well).toMatchObject({ status: "healthy" });
    expect(well).not.toHaveProperty("store");
    expect(await metric(url, "mailroom_store_degraded_seconds")).toBe(0);
    expect(await metric(url, "mailroom_store_waiting_writes")).toBe(0);
  });

  it("MCP and A2A report a temporary failure in their own form", async () => {
    const { server, lock, unlock } = await lockable();
    const { url } = server;
    const mcp = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
    await mcp.connect(
      new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
        requestInit: { headers: { authorization: "Bearer user:ann" } },
      }),
    );
    await lock();
    const call = { name: "post_task", arguments: { message: "hello" } };
    expect(await mcp.callTool(call)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/retry later \(store_busy\)/) }],
    });
    const message = { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "hello" }] };
    const send = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } };
    expect(await (await post(url, "/a2a", send)).json()).toMatchObject({
      error: { message: expect.stringMatching(/\): retry later$/) },
    });
    unlock();
    await until(async () => (await mcp.callTool(call)).isError !== true);
    expect(await (await post(url, "/a2a", send)).json()).toHaveProperty("result");
    await mcp.close();
  });
});
