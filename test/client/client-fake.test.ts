/** Tests the client against misbehaving servers and against the forms of the reference implementation. */
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  MailClient,
  MailClientError,
  MailConnectionError,
  MailStreamError,
  type TaskEvent,
} from "../../src/client/index.js";
import { fakeServer, json, openStream, sse } from "./fake-server.js";

const quick = { token: "secret", retries: 2, reconnects: 3, retryPause: 1 } as const;
const mailroomRoot = {
  name: "mail",
  status: "running",
  swarm: { name: "desk" },
  capabilities: ["dedupe", "idempotency"],
};
const referenceRoot = { name: "mail", protocol_version: "1.3", swarm: { name: "alpha" }, status: "running" };

async function collect(events: AsyncIterable<TaskEvent>): Promise<TaskEvent[]> {
  const all: TaskEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

describe("answers", () => {
  it("sends the token and omits unset fields", async () => {
    await using server = await fakeServer({
      "POST /message": (_, response) => json(response, 200, { response: "hi", events: null }),
    });
    const answer = await new MailClient(`${server.url}/`, quick).postMessage("hello", { taskId: "t1" });
    expect(answer).toMatchObject({ response: "hi", events: undefined });
    expect(server.seen[0]?.headers.authorization).toBe("Bearer secret");
    expect(server.seen[0]?.body).toEqual({ body: "hello", task_id: "t1" });
  });

  it("parses both forms of an event's data", async () => {
    const data = { timestamp: "t", description: "d", task_id: "t1", extra_data: { tool_name: "help" } };
    await using server = await fakeServer({
      "POST /message": (_, response) =>
        json(response, 200, {
          response: "",
          events: [
            { event: "tool_call", data, id: null, retry: null },
            { event: "tool_call", data: JSON.stringify(data), id: "7.1" },
          ],
        }),
    });
    const { events } = await new MailClient(server.url, quick).postMessage("x", { showEvents: true });
    expect(events?.map(({ id }) => id)).toEqual([undefined, "7.1"]);
    expect(events?.[0]?.data).toEqual(data);
    expect(events?.[1]?.data).toEqual(data);
  });

  it("finds one task among all on a server without a route for it", async () => {
    const task = {
      task_id: "a b",
      task_owner: "user:ann@alpha",
      is_running: false,
      completed: true,
      events: [],
    };
    await using server = await fakeServer({
      "GET /": (_, response) => json(response, 200, referenceRoot),
      "GET /tasks": (_, response) => json(response, 200, { "a b": task }),
    });
    const client = new MailClient(server.url, quick);
    expect(await client.getTask("a b")).toMatchObject({ task_id: "a b", status: "completed" });
    await expect(client.getTask("other")).rejects.toMatchObject({ status: 404 });
  });

  it("drops a token that the server rejects", async () => {
    await using server = await fakeServer({
      "GET /whoami": ({ headers }, response) =>
        headers.authorization === undefined
          ? json(response, 401, { detail: "no API key provided" })
          : json(response, 401, { detail: "invalid API key" }),
    });
    const client = new MailClient(server.url);
    await expect(client.login("wrong")).rejects.toMatchObject({ status: 401, detail: "invalid API key" });
    await expect(client.whoami()).rejects.toMatchObject({ detail: "no API key provided" });
  });
});

describe("errors", () => {
  it("have status, detail, code and retryAfter", async () => {
    await using server = await fakeServer({
      "GET /status": (_, response) =>
        json(response, 429, { detail: "too many", code: "rate_limited" }, { "retry-after": "7" }),
    });
    const failure = await new MailClient(server.url, { retries: 0 }).getStatus().catch((error) => error);
    expect(failure).toBeInstanceOf(MailClientError);
    expect(failure).toMatchObject({
      status: 429,
      detail: "too many",
      code: "rate_limited",
      retryAfter: 7_000,
    });
  });

  it("name the reason when the server is not listening", async () => {
    const { url } = await fakeServer({}).then(async (server) => {
      await server[Symbol.asyncDispose]();
      return server;
    });
    const failure = await new MailClient(url, { retries: 0 }).ping().catch((error) => error);
    expect(failure).toBeInstanceOf(MailConnectionError);
    expect(failure).toMatchObject({ code: "unreachable", url });
    expect(failure.message).toContain("ECONNREFUSED");
  });

  it("name the setting for pages of other origins, whose refusal a browser hides", async () => {
    const fetch = () => Promise.reject(new TypeError("Failed to fetch"));
    const client = new MailClient("http://mail.example.com:8000", { retries: 0, fetch });
    const messageAt = async (origin: string) => {
      vi.stubGlobal("location", { origin });
      const failure = await client.ping().catch((error) => error);
      vi.unstubAllGlobals();
      return String(failure.message);
    };
    expect(await messageAt("https://page.example.com")).toContain(
      "cors_origins lists https://page.example.com",
    );
    expect(await messageAt("http://mail.example.com:8000")).not.toContain("cors_origins");
  });

  it("identify a page that does not come from a MAIL server", async () => {
    await using server = await fakeServer({ "GET /": (_, response) => response.end("<html>hello</html>") });
    await expect(new MailClient(server.url).ping()).rejects.toMatchObject({ code: "bad_response" });
  });

  it("end a call at its time limit, and at the caller's abort with the caller's reason", async () => {
    await using server = await fakeServer({ "GET /health": () => {} });
    const client = new MailClient(server.url, { timeout: 30 });
    await expect(client.getHealth()).rejects.toMatchObject({ code: "timeout" });
    const control = new AbortController();
    const call = client.getHealth({ timeout: 60_000, signal: control.signal });
    control.abort(new Error("changed my mind"));
    await expect(call).rejects.toThrow("changed my mind");
  });

  it("reject an invalid URL", () => {
    expect(() => new MailClient("localhost:8000")).toThrow(TypeError);
  });
});

describe("writes whose connection broke", () => {
  it("are repeated with the same key on a server that supports keys", async () => {
    let calls = 0;
    await using server = await fakeServer({
      "GET /": (_, response) => json(response, 200, mailroomRoot),
      "POST /message": (_, response) => {
        calls += 1;
        if (calls === 1) response.destroy();
        else json(response, 200, { response: "once", events: null });
      },
    });
    expect(await new MailClient(server.url, quick).postMessage("x")).toMatchObject({ response: "once" });
    const keys = server.seen
      .filter(({ method }) => method === "POST")
      .map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBe(keys[1]);
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
  });

  it("[MAIL-G-18] that answer a breakpoint take the reference's form on its servers", async () => {
    const answer = { response: "done", events: null };
    await using server = await fakeServer({
      "GET /": (_, response) => json(response, 200, referenceRoot),
      "POST /message": (_, response) => json(response, 200, answer),
    });
    const client = new MailClient(server.url, quick);
    expect(await client.answerBreakpoint("t", "yes")).toMatchObject({ response: "done" });
    expect(server.seen.find(({ path }) => path === "/message")?.body).toMatchObject({
      task_id: "t",
      resume_from: "breakpoint_tool_call",
      kwargs: { breakpoint_tool_call_result: '{"content":"yes"}' },
    });
  });

  it("are never repeated on a server that would execute them twice", async () => {
    await using server = await fakeServer({
      "GET /": (_, response) => json(response, 200, referenceRoot),
      "POST /message": (_, response) => response.destroy(),
    });
    await expect(new MailClient(server.url, quick).postMessage("x")).rejects.toBeInstanceOf(
      MailConnectionError,
    );
    expect(server.seen.filter(({ method }) => method === "POST")).toHaveLength(1);
  });

  it("are repeated on any server that answered with 429 or 503", async () => {
    let calls = 0;
    await using server = await fakeServer({
      "POST /message": (_, response) => {
        calls += 1;
        if (calls === 1) json(response, 503, { detail: "busy" }, { "retry-after": "0" });
        else json(response, 200, { response: "done", events: null });
      },
    });
    expect(await new MailClient(server.url, quick).postMessage("x")).toMatchObject({ response: "done" });
  });
});

describe("a gateway that takes a minute to report a dead server", () => {
  afterEach(() => void vi.useRealTimers());

  /** Number of requests for a message with this time limit. */
  async function attempts(timeout: number): Promise<number> {
    vi.useFakeTimers({ toFake: ["Date"] });
    await using server = await fakeServer({
      "GET /": (_, response) => json(response, 200, mailroomRoot),
      "POST /message": (_, response) => {
        vi.setSystemTime(Date.now() + 61_000);
        json(response, 504, { detail: "gateway timeout" });
      },
    });
    const sending = new MailClient(server.url, quick).postMessage("hello", { timeout });
    await expect(sending).rejects.toThrow("gateway timeout");
    return server.seen.filter(({ method }) => method === "POST").length;
  }

  it("is retried within the caller's time limit", async () => {
    expect(await attempts(10_000)).toBe(3);
    expect(await attempts(90_000)).toBe(3);
    expect(await attempts(10 * 61_000)).toBe(11);
  });
});

describe("streams", () => {
  const event = (number: number) => ({ description: `event ${number} – 🙂`, task_id: "t1", extra_data: {} });
  const end = { task_id: "t1", response: "done", status: "completed" };

  it("of the reference end with the terminal event and need no ids", async () => {
    await using server = await fakeServer({
      "POST /message": ({ body }, response) => {
        expect(body).toEqual({ body: "x", stream: true });
        openStream(response);
        response.write(sse("ping", { task_id: "t1" }));
        response.write(sse("new_message", event(1)));
        response.end(sse("task_complete", { timestamp: "t", task_id: "t1", response: "done" }));
      },
    });
    const events = await collect(new MailClient(server.url, quick).postMessageStream("x"));
    expect(events.map((one) => one.event)).toEqual(["new_message", "task_complete"]);
    expect(events.at(-1)?.data.response).toBe("done");
  });

  it("decode characters that a chunk splits", async () => {
    await using server = await fakeServer({
      "POST /message": (_, response) => {
        openStream(response);
        const bytes = Buffer.from(sse("new_message", event(1), "1") + sse("task_complete", end, "2"));
        const send = (at: number): void => {
          if (at >= bytes.length) response.end();
          else response.write(bytes.subarray(at, at + 1), () => send(at + 1));
        };
        send(0);
      },
    });
    const events = await collect(new MailClient(server.url, quick).postMessageStream("x"));
    expect(events[0]?.data.description).toBe("event 1 – 🙂");
  });

  it("that break are resumed after the last event, at the server's Location", async () => {
    await using server = await fakeServer({
      "POST /message": (_, response) => {
        openStream(response, { location: "/tasks/t1/events?after=0" });
        response.write(sse("new_message", event(1), "1"));
        const half = sse("new_message", event(2), "2.0");
        response.write(half.slice(0, half.length - 5), () => response.destroy());
      },
      "GET /tasks/t1/events": ({ headers }, response) => {
        openStream(response);
        if (headers["last-event-id"] === "1") response.end(sse("new_message", event(2), "2.0"));
        else if (headers["last-event-id"] === "2.0") response.end(sse("task_complete", end, "2.1"));
      },
    });
    const events = await collect(new MailClient(server.url, quick).postMessageStream("x"));
    expect(events.map(({ id }) => id)).toEqual(["1", "2.0", "2.1"]);
    expect(server.seen.map(({ path }) => path)).toEqual(["/message", "/tasks/t1/events", "/tasks/t1/events"]);
  });

  it.each(["is closed", "breaks"])(
    "continue after the end of an earlier message's round, also if the connection %s right there",
    async (how) => {
      await using server = await fakeServer({
        "POST /message": (_, response) => {
          openStream(response, { location: "/tasks/t1/events?round=2" });
          response.write(sse("new_message", event(1), "1"));
          const earlier = sse("task_complete", { ...end, response: "the earlier answer" }, "2");
          if (how === "breaks") response.write(earlier, () => response.destroy());
          else response.end(earlier);
        },
        "GET /tasks/t1/events": ({ headers }, response) => {
          openStream(response);
          if (headers["last-event-id"] === "2") {
            response.write(sse("new_message", event(3), "3"));
            response.write(sse("task_complete", end, "4"), () => response.destroy());
          } else response.end(": end of round\r\n\r\n");
        },
      });
      const states: string[] = [];
      const stream = new MailClient(server.url, quick).postMessageStream("x", {
        onState: ({ status }) => states.push(status),
      });
      expect((await collect(stream)).map(({ id }) => id)).toEqual(["1", "2", "3", "4"]);
      expect(server.seen).toHaveLength(3);
      const connected = ["connecting", "open"];
      expect(states).toEqual([...connected, "waiting", ...connected, "waiting", ...connected, "closed"]);
    },
  );

  it("follow no Location to another server", async () => {
    await using stranger = await fakeServer({});
    await using server = await fakeServer({
      "POST /message": (_, response) => {
        openStream(response, { location: `${stranger.url}/tasks/t1/events` });
        response.write(sse("new_message", event(1), "1"), () => response.destroy());
      },
      "GET /tasks/t1/events": (_, response) => {
        openStream(response);
        response.end(sse("task_complete", end, "2"));
      },
    });
    const events = await collect(new MailClient(server.url, quick).postMessageStream("x"));
    expect(events.map(({ id }) => id)).toEqual(["1", "2"]);
    expect(stranger.seen).toEqual([]);
  });

  it("that cannot be resumed throw, and never end as if complete", async () => {
    await using server = await fakeServer({
      "GET /": (_, response) => json(response, 200, referenceRoot),
      "POST /message": (_, response) => {
        openStream(response);
        response.end(sse("new_message", event(1)));
      },
    });
    const failure = await collect(new MailClient(server.url, quick).postMessageStream("x")).catch(
      (error) => error,
    );
    expect(failure).toBeInstanceOf(MailStreamError);
    expect(failure).toMatchObject({ code: "stream_lost", taskId: "t1" });
    expect(server.seen.filter(({ method }) => method === "POST")).toHaveLength(1);
  });

  it("that are silent for too long are resumed", async () => {
    await using server = await fakeServer({
      "POST /message": (_, response) => {
        openStream(response, { location: "/tasks/t1/events?after=0" });
        response.write(sse("new_message", event(1), "1"));
      },
      "GET /tasks/t1/events": (_, response) => {
        openStream(response);
        response.end(sse("task_complete", end, "2"));
      },
    });
    const client = new MailClient(server.url, { ...quick, idleLimit: 20 });
    expect((await collect(client.postMessageStream("x"))).map(({ id }) => id)).toEqual(["1", "2"]);
  });

  it("release the connection when the reader stops", async () => {
    let onClosed = () => {};
    const closed = new Promise<void>((resolve) => {
      onClosed = resolve;
    });
    await using server = await fakeServer({
      "POST /message": (_, response) => {
        response.on("close", () => onClosed());
        openStream(response);
        response.write(sse("new_message", event(1), "1"));
      },
    });
    for await (const _ of new MailClient(server.url, quick).postMessageStream("x")) break;
    await closed;
  });

  it("throw the caller's reason when aborted", async () => {
    await using server = await fakeServer({
      "POST /message": (_, response) => {
        openStream(response);
        response.write(sse("new_message", event(1), "1"));
      },
    });
    const control = new AbortController();
    const reading = collect(
      (async function* () {
        const events = new MailClient(server.url, quick).postMessageStream("x", { signal: control.signal });
        for await (const one of events) {
          yield one;
          control.abort(new Error("enough"));
        }
      })(),
    );
    await expect(reading).rejects.toThrow("enough");
  });
});
