/** Tests A2A with invalid requests, and callers that disconnect or do not read. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createA2aHttpDoor } from "../../src/doors/a2a/index.js";
import { defineAgent, defineSwarm, Mailroom } from "../../src/index.js";
import { type FullStore, openStore } from "../../src/store/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { served } from "../kit/served.js";

const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

function calling(url: string) {
  return async (method: string, params: unknown) => {
    const response = await fetch(`${url}/a2a`, {
      method: "POST",
      headers: {
        authorization: "Bearer user:ann",
        "content-type": "application/json",
        "a2a-version": "1.0",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    return response.json();
  };
}

const message = (parts: object = {}) => ({
  message: { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "hello" }], ...parts },
});

describe("an invalid request", () => {
  it("gets an error that explains it", async () => {
    await using server = await served(ASKING_SWARM);
    const call = calling(server.url);
    const odd: readonly (readonly [string, unknown])[] = [
      ["SendMessage", message({ parts: [{ text: "" }] })],
      ["SendMessage", message({ parts: [{}] })],
      ["SendMessage", message({ parts: [{ text: "hello" }, null] })],
      ["SendStreamingMessage", message({ parts: [null] })],
      ["message/send", message({ kind: "message", role: "user", parts: [null] })],
      ["SendMessage", { ...message(), configuration: { historyLength: -1 } }],
      ["SendMessage", { message: null }],
      ["SendMessage", null],
      ["ListTasks", { pageSize: "x" }],
      ["ListTasks", { pageSize: 1.5 }],
      ["ListTasks", { pageSize: 0 }],
      ["ListTasks", { statusTimestampAfter: "nonsense" }],
      ["ListTasks", { historyLength: -1 }],
      ["GetTask", { id: "x", historyLength: -5 }],
    ];
    for (const [method, params] of odd) {
      expect(await call(method, params), JSON.stringify(params)).toMatchObject({
        error: { code: INVALID_PARAMS },
      });
    }
    expect(await call("SendMessage", message({ parts: [{ data: [null] }] }))).toMatchObject({
      result: { task: {} },
    });
    const nested = JSON.parse("[".repeat(65) + "]".repeat(65));
    expect(await call("SendMessage", message({ parts: [{ data: nested }] }))).toMatchObject({
      code: "bad_json",
      detail: expect.stringContaining("levels deep"),
    });
  });

  it("includes contexts that are not UUIDs when strict_ids is set", async () => {
    await using server = await served(ASKING_SWARM, "[server.settings]\nstrict_ids = true\n");
    const call = calling(server.url);
    expect(await call("SendMessage", message({ contextId: "mine" }))).toMatchObject({
      error: { code: INVALID_PARAMS, message: expect.stringContaining("UUID") },
    });
    const contextId = randomUUID();
    expect(await call("SendMessage", message({ contextId }))).toMatchObject({
      result: { task: { contextId } },
    });
  });
});

it("a full server answers with a temporary error, not with an unsupported operation", async () => {
  await using server = await served(ASKING_SWARM, "[limits]\nrunning_tasks_per_instance = 1\n");
  const call = calling(server.url);
  const sent = { ...message({ parts: [{ text: "wait" }] }), configuration: { returnImmediately: true } };
  expect(await call("SendMessage", sent)).toMatchObject({ result: { task: {} } });
  expect(await call("SendMessage", message())).toMatchObject({
    error: { code: INTERNAL_ERROR, message: expect.stringContaining("retry later") },
  });
});

describe("a separate A2A endpoint", () => {
  let store: FullStore;
  let mailroom: Mailroom;
  let http: Server;
  let port: number;
  let reported: Error[];
  let handled: Promise<void>[];
  /** Changes a response before the endpoint gets it. */
  let before: (response: ServerResponse) => Promise<void>;
  let body: object;
  const clients: Socket[] = [];

  beforeEach(async () => {
    const echo = defineAgent({
      name: "echo",
      enableEntrypoint: true,
      canCompleteTasks: true,
      run: async (mail) => {
        if (mail.body === "never") await new Promise(() => {});
        mail.complete(mail.body);
      },
    });
    store = await openStore({ path: ":memory:" });
    mailroom = await Mailroom.open({ swarm: defineSwarm({ name: "desk", agents: [echo] }), store });
    reported = [];
    handled = [];
    before = async () => {};
    const door = createA2aHttpDoor({
      mailroom,
      state: store.a2a,
      url: () => "http://localhost/a2a",
      patience: 100,
      onError: (error) => reported.push(error),
    });
    const handle = async (request: IncomingMessage, response: ServerResponse) => {
      await before(response);
      const caller = { role: "user", id: "ann", provider: "dev" } as const;
      await door.handle({ request, response, caller, body, reading: async () => {}, turn: async () => {} });
    };
    http = createServer((request, response) => void handled.push(handle(request, response)));
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    const address = http.address();
    port = typeof address === "object" && address !== null ? address.port : 0;
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
    await mailroom.close({ grace: 0 });
    await store.close();
  });

  const asking = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });
  const saying = (text: string) => message({ parts: [{ text }] });

  /** A client that sends requests and does not read. */
  async function ask(): Promise<Socket> {
    const socket = connect(port, "127.0.0.1").pause();
    clients.push(socket);
    const arrived = once(http, "request");
    socket.write("POST / HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\ncontent-length: 0\r\n\r\n");
    await arrived;
    return socket;
  }

  it("exposes no internals, and reports the error to the operator", async () => {
    const insides = "SQLITE_IOERR: /srv/secret/mailroom.db";
    vi.spyOn(store.tasks, "byKey").mockRejectedValue(new Error(insides));
    const answer = async () => {
      const response = await fetch(`http://127.0.0.1:${port}`, { headers: { "a2a-version": "1.0" } });
      return response.text();
    };
    for (const method of ["GetTask", "SubscribeToTask", "CancelTask"]) {
      body = asking(method, { id: `${randomUUID()}.2` });
      expect(await answer()).toContain("internal server error");
    }
    expect(reported.map((error) => error.message)).toEqual([insides, insides, insides]);
  });

  it("releases a caller that disconnected before its request was handled", async () => {
    body = asking("SendMessage", saying("never"));
    before = async (response) => {
      const closed = once(response, "close");
      response.destroy();
      await closed;
    };
    await ask();
    await Promise.all(handled);
  });

  it("disconnects a reader of a stream that does not read", async () => {
    body = asking("SendStreamingMessage", saying("x".repeat(16 * 1024 * 1024)));
    await ask();
    await Promise.all(handled);
    expect(handled).toHaveLength(1);
  });
});
