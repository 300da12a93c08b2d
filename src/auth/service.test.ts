import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Problem } from "../base/index.js";
import { type ServiceOptions, serviceAuthenticator } from "./service.js";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const PEOPLE: Readonly<Record<string, { role: string; id: string | number }>> = {
  "user-key": { role: "user", id: "alice" },
  "admin-key": { role: "admin", id: "admin-1" },
  "beta-key": { role: "agent", id: "beta" },
  "number-key": { role: "user", id: 42 },
  "king-key": { role: "king", id: "arthur" },
  "mesh-key": { role: "user", id: "mesh/lab/bob" },
};

let server: Server;
let base: string;
let calls: string[];
let problems: Problem[];
let time: number;
let handle: Handler;

/** A service that behaves like the reference's. */
const wellBehaved: Handler = (request, response) => {
  const bearer = request.headers.authorization?.replace("Bearer ", "") ?? "";
  const key = request.url === "/login" ? bearer : bearer.replace("jwt-of-", "");
  const person = PEOPLE[key];
  if (person === undefined) return json(response, 401, { detail: "who?" });
  if (request.url === "/login") return json(response, 200, { token: `jwt-of-${key}` });
  return json(response, 200, { ...person, api_key: key });
};

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

beforeEach(async () => {
  calls = [];
  problems = [];
  time = 0;
  handle = wellBehaved;
  server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  base = `http://127.0.0.1:${port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const service = (options: Partial<ServiceOptions> = {}) =>
  serviceAuthenticator({
    authEndpoint: `${base}/login`,
    tokenInfoEndpoint: `${base}/check`,
    clock: { now: () => time },
    report: (problem) => problems.push(problem),
    ...options,
  });

describe("the external service", () => {
  it("is asked in two steps, as in the reference", async () => {
    expect(await service().authenticate("user-key")).toEqual({
      ok: true,
      principal: { role: "user", id: "alice", provider: "service" },
    });
    expect(calls).toEqual(["POST /login Bearer user-key", "GET /check Bearer jwt-of-user-key"]);
  });

  it("is asked in one step when there is no login", async () => {
    const oneStep = service({ authEndpoint: undefined });
    expect(await oneStep.authenticate("beta-key")).toMatchObject({
      principal: { role: "agent", id: "beta" },
    });
    expect(calls).toEqual(["GET /check Bearer beta-key"]);
  });

  it("may use numbers as ids", async () => {
    expect(await service().authenticate("number-key")).toMatchObject({ principal: { id: "42" } });
  });

  it("rejects unknown keys", async () => {
    expect(await service().authenticate("nope")).toEqual({
      ok: false,
      reason: "unknown",
      detail: "invalid API key",
    });
    handle = (request, response) =>
      request.url === "/login" ? json(response, 200, { token: "stale" }) : json(response, 401, {});
    expect(await service().authenticate("user-key")).toMatchObject({ reason: "unknown" });
    expect(problems).toEqual([]);
  });

  it("cannot assign an unknown role or the id of a mesh peer", async () => {
    expect(await service().authenticate("king-key")).toEqual({
      ok: false,
      reason: "unknown",
      detail: "invalid role",
    });
    expect(await service().authenticate("mesh-key")).toMatchObject({ reason: "unknown" });
  });

  it("is not asked without a credential", async () => {
    expect(await service().authenticate(undefined)).toMatchObject({ reason: "missing" });
    expect(await service().authenticate("bad\r\nheader: x")).toMatchObject({ reason: "bad_format" });
    expect(calls).toEqual([]);
  });
});

describe("cached answers", () => {
  it("expire", async () => {
    const asked = service({ cacheTime: 1000 });
    for (let n = 0; n < 20; n++) expect(await asked.authenticate("user-key")).toMatchObject({ ok: true });
    expect(calls).toHaveLength(2);
    time = 1000;
    await asked.authenticate("user-key");
    expect(calls).toHaveLength(4);
  });

  it("expire earlier when they were rejections", async () => {
    const asked = service({ cacheTime: 1000, refusalCacheTime: 10 });
    await asked.authenticate("nope");
    await asked.authenticate("nope");
    expect(calls).toHaveLength(1);
    time = 10;
    await asked.authenticate("nope");
    expect(calls).toHaveLength(2);
  });

  it("are bounded in number, and rejected keys do not evict accepted ones", async () => {
    const asked = service({ cacheSize: 2 });
    await asked.authenticate("user-key");
    for (const guess of ["a", "b", "c", "d"]) await asked.authenticate(guess);
    calls = [];
    await asked.authenticate("user-key");
    expect(calls).toEqual([]);
    await asked.authenticate("a");
    expect(calls).toHaveLength(1);
    await asked.authenticate("admin-key");
    await asked.authenticate("beta-key");
    calls = [];
    await asked.authenticate("user-key");
    expect(calls).toHaveLength(2);
  });

  it("are requested once for any number of concurrent callers", async () => {
    const asked = service();
    const results = await Promise.all(Array.from({ length: 100 }, () => asked.authenticate("user-key")));
    expect(results.every((result) => result.ok)).toBe(true);
    expect(calls).toHaveLength(2);
  });
});

describe("a service that fails", () => {
  const failures: readonly [string, Handler][] = [
    ["answers 500", (_, response) => json(response, 500, {})],
    ["answers 403", (_, response) => json(response, 403, {})],
    ["redirects", (_, response) => response.writeHead(302, { location: `${base}/elsewhere` }).end()],
    ["is not JSON", (_, response) => response.end("<html>")],
    ["omits fields", (_, response) => json(response, 200, { role: "user" })],
    ["sends too much", (_, response) => response.end("x".repeat(70_000))],
    ["hangs up", (request) => request.socket.destroy()],
    ["never answers", () => {}],
  ];
  for (const [name, handler] of failures) {
    it(`that ${name} is unavailable, is asked again, and the key is reported nowhere`, async () => {
      const asked = service({ timeout: 200 });
      handle = handler;
      expect(await asked.authenticate("user-key")).toMatchObject({ ok: false, reason: "unavailable" });
      expect(problems).toHaveLength(1);
      expect(JSON.stringify(problems)).not.toContain("user-key");
      expect(calls.filter((call) => call.includes("elsewhere"))).toEqual([]);
      handle = wellBehaved;
      expect(await asked.authenticate("user-key")).toMatchObject({ ok: true });
    });
  }

  it("that does not listen is unavailable", async () => {
    const gone = service({ authEndpoint: "http://127.0.0.1:9/login" });
    expect(await gone.authenticate("user-key")).toMatchObject({ reason: "unavailable" });
    expect(problems[0]?.message).toMatch(/login endpoint did not answer/);
  });

  it("is not asked about more keys at once than its limit", async () => {
    const waiting: (() => void)[] = [];
    let arrived = (): void => {};
    const bothArrived = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    handle = (request, response) => {
      waiting.push(() => wellBehaved(request, response));
      if (waiting.length === 2) arrived();
    };
    const asked = service({ maxPending: 2 });
    const first = [asked.authenticate("user-key"), asked.authenticate("admin-key")];
    await bothArrived;
    expect(await asked.authenticate("beta-key")).toMatchObject({ reason: "unavailable" });
    handle = wellBehaved;
    for (const letGo of waiting) letGo();
    expect(await Promise.all(first)).toMatchObject([{ ok: true }, { ok: true }]);
    expect(await asked.authenticate("beta-key")).toMatchObject({ ok: true });
  });
});
