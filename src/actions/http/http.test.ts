import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Action } from "../../engine/agent.js";
import { createGuard, createHttpClient } from "../../net/index.js";
import { actionContext } from "../../testing/action-context.js";
import { interswarmActions } from "../interswarm/actions.js";
import { type HttpActionName, httpActions } from "./actions.js";

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

let handler: Handler;
let outer: Server;
/** Stands for an internal server that actions must not reach. */
let inner: Server;
let innerAsked = 0;
let base: string;
let innerUrl: string;

const listen = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
};

beforeAll(async () => {
  outer = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) if (Buffer.isBuffer(part)) parts.push(part);
    handler(request, response, Buffer.concat(parts).toString());
  });
  inner = createServer((_request, response) => {
    innerAsked++;
    response.end("internal data");
  });
  base = `http://127.0.0.1:${await listen(outer)}`;
  innerUrl = `http://127.0.0.1:${await listen(inner)}`;
});
afterAll(() => {
  outer.close();
  inner.close();
});
beforeEach(() => {
  innerAsked = 0;
});

const allow = () => [new URL(base).host];

async function call(action: Action, args: Record<string, unknown>): Promise<unknown> {
  const checked = await action.check(args);
  if (!checked.ok) throw new Error(checked.message);
  return action.run(checked.value, actionContext());
}

describe("HTTP actions", () => {
  it.each<[HttpActionName, string]>([
    ["http_get", "GET"],
    ["http_delete", "DELETE"],
    ["http_options", "OPTIONS"],
  ])("%s sends headers and reports any status", async (name, method) => {
    handler = (request, response) => {
      response.writeHead(418, { "content-type": "text/plain" });
      response.end(`${request.method} ${String(request.headers["x-test"])}`);
    };
    const result = await call(httpActions({ allow: allow() })[name], {
      url: base,
      headers: { "X-Test": "yes" },
    });
    expect(result).toMatch(new RegExp(`^HTTP 418 I'm a Teapot\n[\\s\\S]*\n\n${method} yes$`));
  });

  it.each<[HttpActionName, string]>([
    ["http_post", "POST"],
    ["http_put", "PUT"],
    ["http_patch", "PATCH"],
  ])("%s sends a body as JSON", async (name, method) => {
    handler = (request, response, body) => {
      const { "content-type": type, "idempotency-key": key } = request.headers;
      response.end(JSON.stringify([request.method, type, key ?? null, JSON.parse(body)]));
    };
    const result = await call(httpActions({ allow: allow() })[name], {
      url: base,
      headers: {},
      body: { a: 1 },
    });
    const key = name === "http_put" ? null : "key/2/0";
    expect(result).toBe(`HTTP 200 OK\n\n${JSON.stringify([method, "application/json", key, { a: 1 }])}`);
  });

  it("http_head returns headers and no body", async () => {
    handler = (_request, response) => response.writeHead(200, { "x-answer": "42" }).end();
    expect(await call(httpActions({ allow: allow() }).http_head, { url: base })).toContain("x-answer: 42");
  });

  it("[AGT-ACT-03] truncates a long body, and does not return binary data", async () => {
    handler = (_request, response) => response.end("x".repeat(5_000_000));
    const { http_get: get } = httpActions({ allow: allow(), maxBytes: 100 });
    expect(await call(get, { url: base })).toBe(
      `HTTP 200 OK\n\n${"x".repeat(100)}\n(truncated after 100 bytes)`,
    );
    handler = (_request, response) => response.setHeader("content-type", "image/png").end("1234");
    expect(await call(get, { url: base })).toContain("(4 bytes of binary data)");
  });

  it("aborts after its time limit", async () => {
    handler = (_request, response) => response.write("slow");
    const { http_get: get } = httpActions({ allow: allow(), timeLimit: 50 });
    await expect(call(get, { url: base })).rejects.toMatchObject({ name: "NetError" });
  });

  it.each([
    { Host: "inner" },
    { "Transfer-Encoding": "chunked" },
    { "X-A": "b\r\nHost: inner" },
    { "X A": "b" },
  ])("rejects the headers %j", async (headers) => {
    await expect(call(httpActions().http_get, { url: base, headers })).rejects.toThrow();
  });
});

describe("attempts to reach an internal server", () => {
  it.each([
    "http://127.0.0.1",
    "http://localhost",
    "http://[::1]",
    "http://2130706433",
    "http://169.254.169.254/latest",
  ])("%s is rejected", async (url) => {
    await expect(call(httpActions().http_get, { url })).rejects.toMatchObject({
      code: expect.stringMatching(/blocked_address|insecure_url/),
    });
    await expect(call(interswarmActions().ping_swarm, { url })).rejects.toMatchObject({ name: "NetError" });
  });

  it("[AGT-ACT-04] a redirect to it is rejected", async () => {
    handler = (_request, response) => response.writeHead(302, { location: innerUrl }).end();
    const { http_get: get } = httpActions({ allow: allow() });
    await expect(call(get, { url: base })).rejects.toMatchObject({ code: "blocked_address" });
    expect(innerAsked).toBe(0);
  });

  it("[AGT-ACT-05] a name that resolves to an internal address is rejected", async () => {
    const client = createHttpClient({
      clock: { after: () => () => {} },
      guard: createGuard(),
      resolve: async () => [{ address: "127.0.0.1", family: 4 }],
    });
    const { http_get: get } = httpActions({ client });
    const url = innerUrl.replace("http://127.0.0.1", "https://harmless.example.com");
    await expect(call(get, { url })).rejects.toMatchObject({ code: "blocked_address" });
    expect(innerAsked).toBe(0);
    await client.close();
  });

  it.each(["file:///etc/passwd", "ftp://example.com", "https://user:pass@example.com", "not a url"])(
    "%s is an invalid URL",
    async (url) => {
      await expect(call(httpActions().http_get, { url })).rejects.toMatchObject({ code: "invalid_url" });
    },
  );
});

describe("interswarm actions", () => {
  it("[AGT-ACT-06] query another swarm's root, health and registry", async () => {
    const answers: Record<string, unknown> = {
      "/": { name: "mail", swarm: { name: "desk", entrypoint: "clerk" } },
      "/health": { status: "healthy" },
      "/swarms": { swarms: [{ swarm_name: "lab", base_url: "https://lab.example.com" }, { odd: true }] },
    };
    handler = (request, response) => response.end(JSON.stringify(answers[request.url ?? ""]));
    const actions = interswarmActions({ allow: allow() });
    expect(await call(actions.ping_swarm, { url: `${base}/` })).toBe("pong");
    expect(await call(actions.get_swarm_health, { url: base })).toBe("healthy");
    expect(await call(actions.get_swarm_registry, { url: base })).toBe("lab@https://lab.example.com");
  });

  it("report a server that is not a MAIL swarm", async () => {
    handler = (_request, response) => response.end("<html>");
    await expect(call(interswarmActions({ allow: allow() }).ping_swarm, { url: base })).rejects.toMatchObject(
      {
        code: "not_a_swarm",
      },
    );
  });
});
