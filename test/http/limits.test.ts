/** Limits, rejections, and the setup of a server. */

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { defaultsOf } from "../../src/base/index.js";
import { httpSettings } from "../../src/http/settings.js";
import { makeCertificate } from "./certificate.js";
import { gate, type Harness, startServer, testAuthenticator } from "./harness.js";
import { captureSwarm } from "./swarm.js";

let harness: Harness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

describe("requests", () => {
  it("of one caller are limited without affecting other callers", async () => {
    harness = await startServer({ limits: { requestsPerCaller: 2 } });
    const { call } = harness;
    for (let n = 0; n < 2; n++) expect((await call("/whoami", { token: "user-token" })).status).toBe(200);
    const limited = await call("/whoami", { token: "user-token" });
    expect(limited).toMatchObject({ status: 429, body: { code: "too_many_requests" } });
    expect(Number(limited.headers["retry-after"])).toBeGreaterThan(0);
    expect((await call("/whoami", { token: "admin-token" })).status).toBe(200);
  });

  it("of one address are also limited on public routes", async () => {
    harness = await startServer({ limits: { requestsPerAddress: 2 }, trustProxy: true });
    const { call } = harness;
    const from = (address: string) => call("/health", { headers: { "x-forwarded-for": address } });
    for (let n = 0; n < 2; n++) expect((await from("192.0.2.1")).status).toBe(200);
    expect((await from("192.0.2.1")).status).toBe(429);
    expect((await from("192.0.2.2")).status).toBe(200);
  });
});

describe("failed authentications", () => {
  it("[MAIL-SEC-03] are limited by address, without locking out known callers", async () => {
    harness = await startServer({ limits: { failedAuthentications: 3 }, trustProxy: true });
    const { call } = harness;
    const from = (address: string) => ({ "x-forwarded-for": address });
    const bad = (address: string) => call("/whoami", { token: "bad", headers: from(address) });
    expect((await call("/whoami", { token: "user-token", headers: from("192.0.2.1") })).status).toBe(200);
    for (let n = 0; n < 3; n++) expect((await bad("192.0.2.1")).status).toBe(401);
    const limited = await bad("192.0.2.1");
    expect(limited).toMatchObject({ status: 429, body: { code: "too_many_failures" } });
    expect(Number(limited.headers["retry-after"])).toBeGreaterThan(0);
    expect((await call("/whoami", { token: "user-token-new", headers: from("192.0.2.1") })).status).toBe(429);
    expect((await call("/whoami", { token: "user-token", headers: from("192.0.2.1") })).status).toBe(200);
    expect((await bad("192.0.2.2")).status).toBe(401);
  });

  it("[MAIL-SEC-03] are also limited on routes with optional authentication, which then recognize no caller", async () => {
    const asked: (string | undefined)[] = [];
    harness = await startServer({
      limits: { failedAuthentications: 3 },
      authenticator: {
        authenticate(bearer) {
          asked.push(bearer);
          return testAuthenticator.authenticate(bearer);
        },
      },
    });
    const { call } = harness;
    const swarms = (token: string) => call("/swarms", { token });
    expect((await call("/whoami", { token: "admin-token" })).status).toBe(200);
    for (let n = 0; n < 5; n++) expect((await swarms(`bad-${n}`)).status).toBe(200);
    expect(asked).toEqual(["admin-token", "bad-0", "bad-1", "bad-2"]);
    expect((await call("/whoami", { token: "user-token" })).status).toBe(429);
    expect((await call("/swarms")).status).toBe(200);
    expect((await call("/whoami", { token: "admin-token" })).status).toBe(200);
  });

  it("ignore a forwarded address unless the proxy is trusted", async () => {
    harness = await startServer({ limits: { failedAuthentications: 2 } });
    const { call } = harness;
    const bad = (n: number) =>
      call("/whoami", { token: "bad", headers: { "x-forwarded-for": `192.0.2.${n}` } });
    await bad(1);
    await bad(2);
    expect((await bad(3)).status).toBe(429);
  });
});

describe("bodies", () => {
  const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

  it("[MAP-F-7] that are nested too deeply are rejected on every route", async () => {
    harness = await startServer();
    const { call } = harness;
    await call("/message", { token: "user-token", json: { body: "[breakpoint]", task_id: "b" } });
    const deep = nested(200_000);
    const keyed = { token: "user-token", headers: { "idempotency-key": "k" } };
    const refusals = [
      await call("/message", { ...keyed, text: `{"body":"[direct]","kwargs":{"x":${deep}}}` }),
      await call("/message", { token: "user-token", text: `{"body":"[direct]","kwargs":{"x":${deep}}}` }),
      await call("/tasks/b/breakpoint", { token: "user-token", text: `{"results":{"content":${deep}}}` }),
      await call("/message", {
        token: "user-token",
        text: `{"body":"[direct]","kwargs":{"x":${nested(63)}}}`,
      }),
    ];
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({ status: 400, body: { code: "bad_json" } });
      expect(refusal.text).toContain("64 levels");
    }
    const allowed = `{"body":"[direct]","kwargs":{"x":${nested(62)}}}`;
    expect((await call("/message", { ...keyed, text: allowed })).status).toBe(200);
  });
});

describe("limits", () => {
  it("of tasks give 503 with Retry-After, and nothing is written", async () => {
    const held = gate();
    harness = await startServer({
      room: { swarm: captureSwarm({ hold: () => held.opened }), limits: { runningTasks: 1 } },
    });
    const { call } = harness;
    await call("/message", { token: "user-token", json: { body: "[hold]", wait: false, task_id: "a" } });
    const refused = await call("/message", { token: "user-token", json: { body: "x", task_id: "b" } });
    expect(refused).toMatchObject({ status: 503, body: { code: "overloaded" } });
    expect(refused.headers["retry-after"]).toBe("1");
    expect((await call("/tasks/b", { token: "user-token" })).status).toBe(404);
    held.open();
  });

  it("of waits and streams give 503 before anything is written", async () => {
    const held = gate();
    harness = await startServer({
      limits: { waitsPerCaller: 1, streamsPerCaller: 0 },
      room: { swarm: captureSwarm({ hold: () => held.opened }) },
    });
    const { call } = harness;
    const waiting = call("/message", { token: "user-token", json: { body: "[hold]", task_id: "a" } });
    const metrics = async () => (await call("/metrics", { token: "admin-token" })).text;
    await expect.poll(metrics).toContain("mailroom_waiting_requests 1");
    const second = await call("/message", { token: "user-token", json: { body: "x", task_id: "b" } });
    expect(second).toMatchObject({ status: 503, body: { code: "overloaded" } });
    const stream = await call("/message", {
      token: "user-token",
      json: { body: "x", task_id: "b", stream: true },
    });
    expect(stream.status).toBe(503);
    expect((await call("/tasks/b", { token: "user-token" })).status).toBe(404);
    const other = await call("/message", { token: "user-token-b", json: { body: "[direct] x" } });
    expect(other.status).toBe(200);
    held.open();
    expect((await waiting).status).toBe(200);
  });

  it("of time give 202, and the task continues", async () => {
    const held = gate();
    harness = await startServer({ room: { swarm: captureSwarm({ hold: () => held.opened }) } });
    const { call } = harness;
    const reply = await call("/message", {
      token: "user-token",
      json: { body: "[hold] x", task_id: "t/1", kwargs: { timeout: "0.01" } },
    });
    expect(reply).toMatchObject({
      status: 202,
      body: { response: null, events: null, task_id: "t/1", status: "running" },
    });
    expect(reply.headers.location).toBe("/tasks/t%2F1/events");
    held.open();
    const stream = await call(`${reply.headers.location}?until=round`, {
      token: "user-token",
      headers: { accept: "text/event-stream" },
    });
    expect(stream.text).toContain("Answer: sunny, 21C");
  });
});

describe("development mode", () => {
  it("serves only local names and pages, and needs no token", async () => {
    harness = await startServer({ dev: true, authenticator: devAuthenticator() });
    const { call } = harness;
    expect(await call("/whoami")).toMatchObject({ status: 200, body: { id: "dev", role: "user" } });
    expect(await call("/whoami", { token: "admin:root" })).toMatchObject({
      body: { id: "root", role: "admin" },
    });
    for (const host of ["evil.example", "localhost.evil.example", "192.0.2.1:80"]) {
      expect(await call("/whoami", { headers: { host } }), host).toMatchObject({
        status: 403,
        body: { code: "foreign_origin" },
      });
    }
    for (const origin of ["https://evil.example", "null", "http://localhost.evil.example"]) {
      expect((await call("/whoami", { headers: { origin } })).status, origin).toBe(403);
    }
    expect((await call("/whoami", { headers: { origin: "http://localhost:3000" } })).status).toBe(200);
    expect((await call("/whoami", { headers: { host: "localhost:1" } })).status).toBe(200);
  });
});

describe("a server in development mode", () => {
  it("listens on loopback only", async () => {
    harness = await startServer({ dev: true });
    for (const host of ["0.0.0.0", "::", "192.0.2.1"]) {
      await expect(harness.server.listen({ host })).rejects.toThrow(/cannot listen/);
    }
  });
});

describe("CORS", () => {
  const preflight = { origin: "https://app.example", "access-control-request-method": "POST" };
  it("is off by default", async () => {
    harness = await startServer();
    const reply = await harness.call("/message", { method: "OPTIONS", headers: preflight });
    expect(reply.status).toBe(405);
    const plain = await harness.call("/health", { headers: { origin: "https://app.example" } });
    expect(plain.headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("allows configured origins, also on streams", async () => {
    harness = await startServer({ cors: { origins: ["https://app.example"] } });
    const { call } = harness;
    const reply = await call("/message", { method: "OPTIONS", headers: preflight });
    expect(reply.status).toBe(204);
    expect(reply.headers["access-control-allow-origin"]).toBe("https://app.example");
    const stream = await call("/message", {
      token: "user-token",
      json: { body: "[direct] x", stream: true },
      headers: { origin: "https://app.example" },
    });
    expect(stream.headers["access-control-allow-origin"]).toBe("https://app.example");
    const other = await call("/health", { headers: { origin: "https://evil.example" } });
    expect(other.headers["access-control-allow-origin"]).not.toBe("https://evil.example");
  });
});

describe("TLS", () => {
  it("serves HTTP/2 and HTTP/1.1 on one port, streams included", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mailroom-tls-"));
    try {
      const tls = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
      makeCertificate(tls);
      harness = await startServer({ tls });
      const { url } = harness;
      expect(url).toMatch(/^https:/);
      expect(await overHttp1(`${url}/health`)).toBe(200);
      const session = connectHttp2(url, { rejectUnauthorized: false });
      const stream = session.request({
        ":method": "POST",
        ":path": "/message",
        authorization: "Bearer user-token",
        "content-type": "application/json",
      });
      stream.end(JSON.stringify({ body: "Tokyo?", stream: true }));
      const [headers, text] = await Promise.all([
        new Promise<Record<string, unknown>>((resolve) => stream.on("response", resolve)),
        collect(stream),
      ]);
      expect(headers).toMatchObject({ ":status": 200, "content-type": "text/event-stream; charset=utf-8" });
      expect(headers.connection).toBeUndefined();
      expect(text).toContain("Answer: sunny, 21C");
      session.close();
      harness.server.reloadTls();
      expect(await overHttp1(`${url}/health`)).toBe(200);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("HTTP/2 streams", () => {
  it("are limited for one connection and for one address, and are free again when they close", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mailroom-tls-"));
    const sessions: ClientHttp2Session[] = [];
    try {
      const tls = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
      makeCertificate(tls);
      const limits = { http2StreamsPerConnection: 2, http2StreamsPerAddress: 3 };
      const held = gate();
      harness = await startServer({
        tls,
        limits,
        room: { swarm: captureSwarm({ hold: () => held.opened }) },
      });
      const { url } = harness;
      const open = async () => {
        const session = connectHttp2(url, { rejectUnauthorized: false });
        sessions.push(session);
        await once(session, "remoteSettings");
        return session;
      };
      const ask = async (session: ClientHttp2Session, body?: object) => {
        const stream = session.request({
          ":path": body === undefined ? "/health" : "/message",
          ":method": body === undefined ? "GET" : "POST",
          authorization: "Bearer user-token",
          "content-type": "application/json",
        });
        stream.end(body === undefined ? undefined : JSON.stringify(body));
        const [{ ":status": status, "retry-after": retryAfter }] = await once(stream, "response");
        return { stream, status, retryAfter };
      };
      const [first, second] = [await open(), await open()];
      expect(first.remoteSettings.maxConcurrentStreams).toBe(2);
      const message = { body: "[hold]", stream: true };
      const streams = [await ask(first, message), await ask(first, message), await ask(second, message)];
      expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
      const refused = await ask(second);
      expect(refused).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^[1-9]/) });
      expect(JSON.parse(await collect(refused.stream))).toMatchObject({
        code: "overloaded",
        detail: "3 HTTP/2 streams of this address are open, which is the limit: retry later",
      });
      // HTTP/1.1 has limits of its own.
      expect(await overHttp1(`${url}/health`)).toBe(200);
      first.destroy();
      let status: unknown = 503;
      while (status === 503) ({ status } = await ask(second));
      expect(status).toBe(200);
      held.open();
    } finally {
      for (const session of sessions) session.destroy();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("the log", () => {
  it("is quiet, finds a request by its id, and never contains a credential", async () => {
    const lines: string[] = [];
    const log = (level: string) => pino({ level }, { write: (line: string) => void lines.push(line) });
    harness = await startServer({ logger: log("info") });
    await harness.call("/message", { token: "user-token-secret", json: { body: "[direct] x" } });
    await harness.call("/whoami", { token: "bad-secret" });
    expect(lines.filter((line) => !line.includes("listening at"))).toEqual([]);
    await harness.close();
    harness = await startServer({ logger: log("trace") });
    const reply = await harness.call("/message", {
      token: "user-token-secret",
      json: { body: "[direct] x", task_id: "t" },
    });
    await harness.call("/whoami", { token: "bad-secret" });
    const key = (await harness.mailroom.store.tasks.find({ role: "user", id: "user-secret" }, "t"))?.key;
    const line = () => lines.find((text) => text.includes(String(reply.headers["x-request-id"])));
    await expect.poll(line).toContain(`"task":"${key}"`);
    expect(lines.join("")).not.toMatch(/token-secret|bad-secret/i);
  });

  it("[MAIL-ERR-07] contains the reason of an internal error, and the response does not", async () => {
    const lines: string[] = [];
    harness = await startServer({
      logger: pino({ level: "info" }, { write: (line: string) => void lines.push(line) }),
    });
    const { mailroom, call } = harness;
    Object.defineProperty(mailroom.store.tasks, "list", {
      value: async () => {
        throw new Error("an internal detail");
      },
    });
    const reply = await call("/status", { token: "user-token" });
    expect(reply).toMatchObject({ status: 500, body: { code: "internal_error" } });
    expect(reply.text).not.toContain("inside");
    expect(reply.body).toMatchObject({ request_id: reply.headers["x-request-id"] });
    expect(lines.join("")).toContain("an internal detail");
  });
});

function overHttp1(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(url, { rejectUnauthorized: false, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on("error", reject);
    request.end();
  });
}

async function collect(stream: AsyncIterable<unknown>): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += String(chunk);
  return text;
}

it("[MAIL-G-15] routes without authentication are limited per address by default, generously", async () => {
  const { call, close } = await startServer();
  try {
    const { publicRequestsPerAddress: limit } = defaultsOf(httpSettings);
    expect(limit).toBeGreaterThanOrEqual(1_000);
    const reply = async () => (await call("/health")).status;
    for (let sent = 0; sent < limit; ) {
      const batch = Math.min(200, limit - sent);
      const statuses = await Promise.all(Array.from({ length: batch }, reply));
      expect(new Set(statuses)).toEqual(new Set([200]));
      sent += batch;
    }
    const over = await call("/health");
    expect([over.status, over.headers["retry-after"]]).toEqual([429, expect.any(String)]);
    // Callers with a token are served.
    expect((await call("/whoami", { token: "user-token" })).status).toBe(200);
  } finally {
    await close();
  }
});

it("an offer to upgrade to HTTP/2 without TLS is ignored, and the request is served", async () => {
  const { url, close } = await startServer();
  try {
    const { port } = new URL(url);
    const offer = (head: string) =>
      new Promise<string>((resolve, reject) => {
        let text = "";
        const socket = connect(Number(port), "127.0.0.1", () =>
          socket.write(
            `${head}Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n`,
          ),
        );
        socket.on("data", (data) => {
          text += data.toString();
        });
        socket.on("close", () => resolve(text));
        socket.on("error", reject);
      });
    const served = await offer("GET /health HTTP/1.1\r\n");
    expect(served).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(served).toContain('"swarm_name"');
    expect(await offer("POST /message HTTP/1.1\r\nContent-Length: 2\r\n")).toMatch(/^HTTP\/1\.1 501/);
  } finally {
    await close();
  }
});

describe("bodies that are being received", () => {
  const MB = 1024 * 1024;
  const head = (length: number, token = "user-token") =>
    `POST /message HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n` +
    `content-length: ${length}\r\n\r\n`;

  it("are limited in bytes for one caller; further ones wait, also for a caller that never finishes", async () => {
    const limits = { bodies: 4 * MB, bodiesPerCaller: MB };
    harness = await startServer({ limits });
    const { call, url } = harness;
    const body = JSON.stringify({ body: `[direct] ${"x".repeat(600_000)}` });
    const slow = connect(Number(new URL(url).port), "127.0.0.1");
    slow.write(head(body.length) + body.slice(0, 100_000));
    // A small body does not wait, and shows that the slow one is being received.
    expect((await call("/message", { token: "user-token", json: { body: "[direct]" } })).status).toBe(200);
    const second = call("/message", { token: "user-token", json: JSON.parse(body) }).then(
      ({ status }) => status,
    );
    for (let n = 0; n < 5; n++) expect((await call("/whoami", { token: "user-token" })).status).toBe(200);
    expect((await call("/message", { token: "user-token-b", json: JSON.parse(body) })).status).toBe(200);
    expect(await Promise.race([second, "waiting"])).toBe("waiting");
    slow.destroy();
    expect(await second).toBe(200);
  });

  /** Sends the head and a part of a large body, and returns when the server has had time to read them. */
  async function begin({ url, call }: Harness, body: string, ...tokens: string[]) {
    const sockets = tokens.map((token) => {
      const socket = connect(Number(new URL(url).port), "127.0.0.1");
      socket.on("error", () => {});
      socket.write(head(body.length, token) + body.slice(0, 1000));
      return socket;
    });
    for (let n = 0; n < 5; n++) await call("/whoami", { token: "user-token" });
    return sockets;
  }
  const large = JSON.stringify({ body: `[direct] ${"x".repeat(1_000_000)}` });

  it("leave their places to a caller that waits if they are slow", async () => {
    // Large enough for a time limit of their own that the test would not wait for.
    harness = await startServer({ limits: { body: 4 * MB, bodies: 8 * MB, bodiesPerCaller: 4 * MB } });
    const larger = JSON.stringify({ body: `[direct] ${"x".repeat(3_500_000)}` });
    const slow = await begin(harness, larger, "user-token", "user-token-b");
    const { status } = await harness.call("/message", { token: "admin-token", json: JSON.parse(larger) });
    expect(status).toBe(200);
    for (const socket of slow) socket.destroy();
  });

  it("keep their places while others wait for another reason, however slow they are", async () => {
    harness = await startServer({ limits: { bodies: 4 * MB, bodiesPerCaller: MB } });
    const [kept, own] = await begin(harness, large, "user-token-b", "user-token");
    if (kept === undefined || own === undefined) throw new Error("two connections were asked for");
    const ended = once(own, "close");
    // It waits for the other body of its caller, and for nothing else.
    const second = harness.call("/message", { token: "user-token", json: JSON.parse(large) });
    await ended;
    expect((await second).status).toBe(200);
    const answer = once(kept, "data");
    kept.write(large.slice(1000));
    expect(String((await answer)[0])).toMatch(/^HTTP\/1\.1 200 /);
    kept.destroy();
  });
});

it("connections of one address are limited, and those of a trusted proxy are not", async () => {
  const first = await startServer({ limits: { connectionsPerAddress: 2 } });
  harness = first;
  const open = async ({ url }: Harness) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    await once(socket, "connect");
    return socket;
  };
  const [one] = [await open(first), await open(first)];
  await once(await open(first), "close");
  one?.destroy();
  if (one !== undefined && !one.closed) await once(one, "close");
  await expect.poll(async () => (await first.call("/health").catch(() => undefined))?.status).toBe(200);
  await first.close();
  harness = await startServer({ limits: { connectionsPerAddress: 1 }, trustProxy: ["127.0.0.1"] });
  await open(harness);
  expect((await harness.call("/health")).status).toBe(200);
});
