/** Streams over real sockets. */
import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Clock } from "../../src/base/index.js";
import { fieldOf, gate, type Harness, parseStream, type StreamedEvent, startServer } from "./harness.js";
import { captureSwarm } from "./swarm.js";

let harness: Harness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

const TOKEN = { authorization: "Bearer user-token" };

/** Reads a stream until `enough` returns true, and disconnects. */
async function read(
  url: string,
  init: RequestInit,
  enough: (events: readonly StreamedEvent[]) => boolean = () => false,
): Promise<{ readonly response: Response; readonly events: StreamedEvent[] }> {
  const hangUp = new AbortController();
  const response = await fetch(url, { ...init, signal: hangUp.signal });
  let text = "";
  try {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (enough(parseStream(text.slice(0, text.lastIndexOf("\r\n\r\n") + 4)))) break;
    }
  } finally {
    hangUp.abort();
  }
  return { response, events: parseStream(text.slice(0, text.lastIndexOf("\r\n\r\n") + 4)) };
}

function post(json: unknown): RequestInit {
  return {
    method: "POST",
    headers: { ...TOKEN, "content-type": "application/json" },
    body: JSON.stringify(json),
  };
}

const follow = (more: Record<string, string> = {}): RequestInit => ({
  headers: { ...TOKEN, accept: "text/event-stream", ...more },
});

describe("a stream of POST /message", () => {
  it("[MAIL-REST-07] has the reference's form and journal ids, and ends with the round", async () => {
    harness = await startServer();
    const reply = await harness.call("/message", {
      token: "user-token",
      json: { body: "Tokyo?", stream: true, task_id: "s 1" },
    });
    expect(reply.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      connection: "keep-alive",
      "x-accel-buffering": "no",
      location: "/tasks/s%201/events?round=2",
    });
    const lines = reply.text.split("\r\n");
    expect(lines.filter((line) => line.includes("\n"))).toEqual([]);
    const events = parseStream(reply.text);
    const task = await harness.call("/tasks/s%201", { token: "user-token" });
    expect(events).toEqual(fieldOf(task.body, "events"));
    expect(events.at(-1)).toMatchObject({
      event: "task_complete",
      data: { task_id: "s 1", response: "Answer: sunny, 21C", status: "completed" },
    });
  });

  it("of a further message contains only that round", async () => {
    harness = await startServer();
    const first = { token: "user-token", json: { body: "Tokyo?", task_id: "t" } };
    await harness.call("/message", first);
    const before = await harness.call("/tasks/t/events", { token: "user-token" });
    const reply = await harness.call("/message", {
      token: "user-token",
      json: { body: "Osaka?", task_id: "t", stream: true },
    });
    const all = await harness.call("/tasks/t/events", { token: "user-token" });
    const seen = [fieldOf(before.body, "events"), parseStream(reply.text)].flat();
    expect(seen).toEqual(fieldOf(all.body, "events"));
  });

  it("does not end with an earlier message's round while its own message waits", async () => {
    const held = gate();
    const thinking = gate();
    harness = await startServer({
      room: {
        swarm: captureSwarm({
          hold: async () => {
            thinking.open();
            await held.opened;
          },
        }),
      },
    });
    const { url, call } = harness;
    await call("/message", {
      token: "user-token",
      json: { body: "[think][direct] one", task_id: "t", wait: false },
    });
    await thinking.opened;
    const second = read(
      `${url}/message`,
      post({ body: "[direct] two", task_id: "t", stream: true }),
      (seen) => {
        // Its own message has arrived, so the first round cannot end before it.
        held.open();
        return seen.length === 0;
      },
    );
    const endings = (await second).events.filter(({ event }) => event === "task_complete");
    expect(endings.map(({ data }) => fieldOf(data, "response"))).toEqual([
      "direct: [think][direct] one",
      "direct: [direct] two",
    ]);
  });

  it("shows partial text without an id", async () => {
    // Answers to mail that is not durable yet are not visible.
    harness = await startServer({ room: { limits: { speculation: false } } });
    const { events } = await read(`${harness.url}/message`, post({ body: "[talk] Tokyo", stream: true }));
    const tokens = events.filter(({ event }) => event === "token");
    expect(tokens.map(({ data }) => fieldOf(data, "delta")).join("")).toBe("sunny");
    expect(tokens.map(({ id }) => id)).toEqual(tokens.map(() => undefined));
    expect(tokens[0]?.data).toMatchObject({ agent: "weather", attempt: 1, offset: 0 });
  });
});

describe("a stream of a task's events", () => {
  it("resumes after every event without loss or repetition", async () => {
    harness = await startServer();
    await harness.call("/message", { token: "user-token", json: { body: "[action] Tokyo", task_id: "t" } });
    const page = await harness.call("/tasks/t/events", { token: "user-token" });
    const all = parseEvents(page.body);
    expect(all.length).toBeGreaterThan(8);
    for (const [index, { id = "" }] of all.entries()) {
      const byHeader = await read(
        `${harness.url}/tasks/t/events?until=round&after=1`,
        follow({ "last-event-id": id }),
      );
      const byQuery = await read(`${harness.url}/tasks/t/events?until=round&after=${id}`, follow());
      expect(byHeader.events).toEqual(all.slice(index + 1));
      expect(byQuery.events).toEqual(all.slice(index + 1));
    }
  });

  it("returns pages as JSON", async () => {
    harness = await startServer();
    await harness.call("/message", { token: "user-token", json: { body: "[action] Tokyo", task_id: "t" } });
    const whole = await harness.call("/tasks/t/events", { token: "user-token" });
    const pages: StreamedEvent[] = [];
    let after = "";
    for (;;) {
      const page = await harness.call(`/tasks/t/events?limit=3${after}`, { token: "user-token" });
      pages.push(...parseEvents(page.body));
      after = `&after=${String(fieldOf(page.body, "next_after"))}`;
      if (fieldOf(page.body, "more") !== true) break;
    }
    expect(pages).toEqual(parseEvents(whole.body));
    const end = await harness.call(`/tasks/t/events?${after.slice(1)}`, { token: "user-token" });
    expect(end.body).toMatchObject({ events: [], more: false, status: "completed" });
  });

  it("shows the same to several clients, and one that disconnects affects no other", async () => {
    const held = gate();
    harness = await startServer({ room: { swarm: captureSwarm({ hold: () => held.opened }) } });
    const { url } = harness;
    await harness.call("/message", {
      token: "user-token",
      json: { body: "[hold] x", task_id: "t", wait: false },
    });
    const listeners = [1, 2, 3].map(() => read(`${url}/tasks/t/events?until=round`, follow()));
    await read(`${url}/tasks/t/events`, follow(), (events) => events.length > 0);
    held.open();
    const [first, ...others] = await Promise.all(listeners);
    for (const other of others) expect(other.events).toEqual(first?.events);
    expect(first?.events.at(-1)?.event).toBe("task_complete");
  });

  it("continues past the end of a round unless requested otherwise", async () => {
    harness = await startServer();
    const { url, call } = harness;
    await call("/message", { token: "user-token", json: { body: "[direct] 1", task_id: "t" } });
    const endings = (events: readonly StreamedEvent[]) =>
      events.filter(({ event }) => event === "task_complete").length;
    const listening = read(`${url}/tasks/t/events`, follow(), (events) => endings(events) === 2);
    await call("/message", { token: "user-token", json: { body: "[direct] 2", task_id: "t" } });
    expect(endings((await listening).events)).toBe(2);
  });

  it("sends heartbeats without an id while idle", async () => {
    const held = gate();
    harness = await startServer({
      heartbeat: 20,
      room: { swarm: captureSwarm({ hold: () => held.opened }) },
    });
    const { events } = await read(
      `${harness.url}/message`,
      post({ body: "[hold] x", task_id: "t", stream: true }),
      (seen) => seen.filter(({ event }) => event === "ping").length >= 2,
    );
    const ping = events.find(({ event }) => event === "ping");
    expect(ping?.id).toBeUndefined();
    expect(ping?.data).toEqual({ timestamp: expect.any(String), task_id: "t" });
    held.open();
  });

  it("rejects an invalid event id", async () => {
    harness = await startServer();
    await harness.call("/message", { token: "user-token", json: { body: "[direct] x", task_id: "t" } });
    const reply = await harness.call("/tasks/t/events?after=yesterday", {
      token: "user-token",
      headers: { accept: "text/event-stream" },
    });
    expect(reply).toMatchObject({ status: 400, body: { code: "bad_input" } });
  });
});

describe("a client that does not read", () => {
  it("is disconnected, and the task and other clients continue", async () => {
    const clock = manualClock();
    harness = await startServer({
      clock,
      limits: { streamBuffer: 64 * 1024, streamStallTimeout: 1000 },
      room: { limits: { repetition: 0 } },
    });
    const { url, call, server } = harness;
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    // Far more than the kernel buffers between both ends.
    const large = "x".repeat(900_000);
    await call("/message", { token: "user-token", json: { body: "[direct] begin", task_id: "t" } });
    socket.pause();
    socket.write(
      "GET /tasks/t/events HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n" +
        "authorization: Bearer user-token\r\n\r\n",
    );
    for (let round = 0; round < 12; round++) {
      await call("/message", {
        token: "user-token",
        json: { body: `[direct] ${round} ${large}`, task_id: "t" },
      });
    }
    const metric = async () =>
      /mailroom_dropped_listeners_total (\d+)/.exec(
        (await call("/metrics", { token: "admin-token" })).text,
      )?.[1];
    expect(await metric()).toBe("0");
    clock.advance(1001);
    await expect.poll(metric).toBe("1");
    const after = await call("/message", {
      token: "user-token",
      json: { body: "[direct] end", task_id: "t" },
    });
    expect(after).toMatchObject({ status: 200, body: { status: "completed" } });
    socket.destroy();
    expect(server.app.server.listening).toBe(true);
  });
});

/** Real time that a test can advance. */
function manualClock(): Clock & { advance(ms: number): void } {
  let offset = 0;
  const waiting = new Set<{ due: number; callback: () => void }>();
  return {
    now: () => Date.now() + offset,
    after(ms, callback) {
      const timer = { due: Date.now() + offset + ms, callback };
      waiting.add(timer);
      return () => waiting.delete(timer);
    },
    advance(ms) {
      offset += ms;
      for (const timer of [...waiting]) {
        if (timer.due > Date.now() + offset) continue;
        waiting.delete(timer);
        timer.callback();
      }
    },
  };
}

function parseEvents(body: unknown): StreamedEvent[] {
  const events = fieldOf(body, "events");
  if (!Array.isArray(events)) throw new Error("a page has events");
  return events;
}
