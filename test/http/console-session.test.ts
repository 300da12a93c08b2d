/** Signing in to the console: a sealed cookie that counts only with its proof and from the page's own origin. */
import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { createServer, type MailroomServer, type ServerOptions } from "../../src/server/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { call, fieldOf } from "./harness.js";
import { captureSwarm } from "./swarm.js";

let directory: string;
let server: MailroomServer;
let url: string;
let token: string;
const opened: MailroomServer[] = [];

async function open(options: Partial<ServerOptions> = {}): Promise<void> {
  const settings = { log: { level: "silent" }, ...options.settings } as const;
  server = await createServer({ swarm: captureSwarm(), data: directory, ...options, settings });
  opened.push(server);
  url = await server.listen({ port: 0 });
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mailroom-session-"));
  await open();
  token = (await server.tokens.create({ role: "user", id: "ann" })).token;
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close(0);
  await rm(directory, { recursive: true, force: true });
});

interface SignedIn {
  readonly cookie: string;
  readonly proof: string;
  readonly setCookie: string;
}

async function signIn(json: unknown = { token }, headers = {}): Promise<SignedIn> {
  const reply = await call(url, "/console/session", { json, headers });
  expect(reply.status, reply.text).toBe(200);
  const setCookie = String(reply.headers["set-cookie"]);
  return {
    setCookie,
    cookie: setCookie.slice(0, setCookie.indexOf(";")),
    proof: String(fieldOf(reply.body, "proof")),
  };
}

const withSession = ({ cookie, proof }: Pick<SignedIn, "cookie" | "proof">, more = {}) => ({
  headers: { cookie, "x-mailroom-console": proof, ...more },
});

describe("a session", () => {
  it("acts as the token that it was made from, on every route", async () => {
    const session = await signIn();
    const port = new URL(url).port;
    expect(session.setCookie).toMatch(
      new RegExp(`^mailroom_${port}=[\\w-]+; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200$`),
    );
    expect(session.setCookie).not.toContain(token);
    const who = await call(url, "/whoami", withSession(session));
    expect(who.body).toMatchObject({ role: "user", id: "ann", provider: "token", dev: false });
    expect((await call(url, "/console/session", withSession(session))).body).toEqual({
      role: "user",
      id: "ann",
      expires: expect.any(Number),
    });
    const posted = await call(url, "/message", {
      ...withSession(session, { "idempotency-key": "k" }),
      json: { body: "[direct] hello", task_id: "t" },
    });
    expect(posted.status).toBe(200);
    expect((await call(url, "/admin/tasks", withSession(session))).status).toBe(403);
  });

  it("needs the cookie and its own proof", async () => {
    const [first, second] = [await signIn(), await signIn()];
    const tries: Readonly<Record<string, string>>[] = [
      { cookie: first.cookie },
      { "x-mailroom-console": first.proof },
      { cookie: first.cookie, "x-mailroom-console": second.proof },
      { cookie: first.cookie, "x-mailroom-console": "" },
      { cookie: first.cookie, "x-mailroom-console": "x".repeat(5000) },
      { cookie: `${first.cookie.slice(0, -3)}AAA`, "x-mailroom-console": first.proof },
      { cookie: `${first.cookie.split("=")[0]}=AAAA`, "x-mailroom-console": first.proof },
      { cookie: `${first.cookie.split("=")[0]}=`, "x-mailroom-console": first.proof },
      { cookie: `other=${first.cookie.split("=")[1]}`, "x-mailroom-console": first.proof },
    ];
    for (const headers of tries) {
      for (const path of ["/whoami", "/console/session", "/tasks?limit=1"]) {
        expect((await call(url, path, { headers })).status, JSON.stringify(headers)).toBe(401);
      }
    }
    // Another server's cookie for the same host changes nothing.
    const both = withSession({ ...first, cookie: `mailroom_1=x; ${second.cookie}; ${first.cookie}` });
    expect((await call(url, "/whoami", both)).status).toBe(200);
  });

  it("counts only from the page's own origin", async () => {
    const session = await signIn();
    const { host } = new URL(url);
    const other = "http://127.0.0.1:1";
    const cases: readonly (readonly [Record<string, string>, number])[] = [
      [{ "sec-fetch-site": "same-origin" }, 200],
      [{ origin: `http://${host}` }, 200],
      [{ "sec-fetch-site": "same-site" }, 401],
      [{ "sec-fetch-site": "cross-site", origin: "https://evil.example" }, 401],
      [{ "sec-fetch-site": "none" }, 401],
      // Another port of the same host gets the cookie, and for SameSite it is the same site.
      [{ origin: other }, 401],
      [{ origin: "null" }, 401],
      [{ origin: "nonsense" }, 401],
    ];
    for (const [headers, status] of cases) {
      const reply = await call(url, "/whoami", withSession(session, headers));
      expect(reply.status, JSON.stringify(headers)).toBe(status);
    }
    // Nor can another origin sign a user in or out.
    for (const headers of [{ origin: other }, { "sec-fetch-site": "same-site" }]) {
      expect((await call(url, "/console/session", { json: { token }, headers })).status).toBe(403);
      const out = await call(url, "/console/session", { method: "DELETE", ...withSession(session, headers) });
      expect(out.status).toBe(403);
    }
    // A form cannot send JSON, and a preflight allows nothing.
    const form = await call(url, "/console/session", {
      method: "POST",
      text: JSON.stringify({ token }),
      headers: { "content-type": "text/plain" },
    });
    expect(form.status).toBe(415);
    const preflight = await call(url, "/whoami", {
      method: "OPTIONS",
      headers: {
        origin: other,
        "access-control-request-method": "GET",
        "access-control-request-headers": "x-mailroom-console",
      },
    });
    expect(preflight.headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("leaves requests with an Authorization header alone", async () => {
    const session = await signIn();
    const bob = (await server.tokens.create({ role: "user", id: "bob" })).token;
    const reply = await call(url, "/whoami", { token: bob, ...withSession(session) });
    expect(reply.body).toMatchObject({ id: "bob" });
  });

  it("ends with its token, and survives a restart", async () => {
    const session = await signIn();
    await server.close(0);
    await open();
    expect((await call(url, "/whoami", withSession(session))).status).toBe(200);
    await server.tokens.revoke(token);
    expect((await call(url, "/whoami", withSession(session))).status).toBe(401);
    expect((await call(url, "/console/session", withSession(session))).status).toBe(401);
  });

  it("expires", async () => {
    await server.close(0);
    const clock = new VirtualClock(Date.now());
    await open({ clock, settings: { console: { session: 60_000 }, log: { level: "silent" } } });
    const session = await signIn();
    expect(session.setCookie).toContain("Max-Age=60");
    expect((await call(url, "/whoami", withSession(session))).status).toBe(200);
    await clock.advance(60_001);
    expect((await call(url, "/whoami", withSession(session))).status).toBe(401);
  });

  it("ends its open feed when it expires", async () => {
    const clock = new VirtualClock(Date.now());
    await open({ data: false, clock, settings: { console: { session: 60_000 } } });
    token = (await server.tokens.create({ role: "user", id: "ann" })).token;
    const { headers } = withSession(await signIn(), { accept: "text/event-stream" });
    const response = await fetch(`${url}/feed`, { headers });
    expect(response.status).toBe(200);
    await clock.advance(60_000);
    expect(await response.text()).toContain("event: hello");
  });

  it("is refused for wrong tokens, which are counted, and for agents' tokens", async () => {
    for (const role of ["agent", "member"] as const) {
      const made = await server.tokens.create({ role, id: "weather" });
      const reply = await call(url, "/console/session", { json: { token: made.token } });
      expect(reply).toMatchObject({
        status: 403,
        body: { detail: expect.stringContaining("serves an agent") },
      });
    }
    for (const json of [{}, { token, code: "x" }, { token: "" }, { token: 1 }]) {
      expect((await call(url, "/console/session", { json })).status).toBe(400);
    }
    const long = await call(url, "/console/session", { json: { token: "a.b.".repeat(2000) } });
    expect([400, 401]).toContain(long.status);
    await server.close(0);
    await open({ settings: { http: { failedAuthentications: 3 }, log: { level: "silent" } } });
    const statuses: number[] = [];
    for (let n = 0; n < 5; n++)
      statuses.push((await call(url, "/console/session", { json: { token: `wrong-${n}` } })).status);
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
  });

  it("is removed by signing out", async () => {
    const session = await signIn();
    const reply = await call(url, "/console/session", { method: "DELETE", ...withSession(session) });
    expect(reply.status).toBe(204);
    expect(String(reply.headers["set-cookie"])).toMatch(/^mailroom_\d+=; .*Max-Age=0/);
    // The token was pasted, so it stays.
    expect((await call(url, "/whoami", { token })).status).toBe(200);
  });

  it("uses a cookie for HTTPS alone behind a proxy that speaks it", async () => {
    await server.close(0);
    await open({
      settings: { server: { publicUrl: "https://mail.example/base" }, log: { level: "silent" } },
    });
    const session = await signIn({ token }, { origin: "https://mail.example", host: "mail.example" });
    expect(session.setCookie).toMatch(/^__Host-mailroom_443=.*; Path=\/; .*; Secure$/);
    const reply = await call(url, "/whoami", withSession(session, { origin: "https://mail.example" }));
    expect(reply.status).toBe(200);
  });
});

describe("a link that signs in", () => {
  const socketPath = () => join(directory, "control.sock");
  function control(body: unknown): Promise<{ status: number; body: unknown }> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        { socketPath: socketPath(), path: "/control/console", method: "POST" },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (part: string) => {
            text += part;
          });
          response.on("end", () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }));
        },
      );
      request.on("error", reject);
      request.end(JSON.stringify(body));
    });
  }

  it("works once, as whom it was made for", async () => {
    await server.openControl(socketPath());
    const { body } = await control({ as: "user:ann" });
    const link = new URL(String(fieldOf(body, "url")));
    expect(link.origin + link.pathname).toBe(`${url}/console/`);
    const code = link.hash.slice("#code=".length);
    const session = await signIn({ code });
    expect((await call(url, "/whoami", withSession(session))).body).toMatchObject({
      role: "user",
      id: "ann",
    });
    expect((await call(url, "/console/session", { json: { code } })).status).toBe(401);
    expect((await control({ as: "member:weather" })).status).toBe(400);
    // Its token was made for the session and goes with it.
    await call(url, "/console/session", { method: "DELETE", ...withSession(session) });
    expect((await call(url, "/whoami", withSession(session))).status).toBe(401);
  });

  it("is valid for a minute", async () => {
    await server.close(0);
    const clock = new VirtualClock(Date.now());
    await open({ clock });
    await server.openControl(socketPath());
    const { body } = await control({});
    const code = new URL(String(fieldOf(body, "url"))).hash.slice("#code=".length);
    await clock.advance(60_001);
    expect((await call(url, "/console/session", { json: { code } })).status).toBe(401);
  });
});

describe("a WebSocket of the console", () => {
  async function connect(headers: Record<string, string>, proof: string): Promise<unknown> {
    const socket = new WebSocket(`${url.replace("http", "ws")}/map`, { headers });
    try {
      await new Promise((resolve, reject) => {
        socket.once("open", resolve);
        socket.once("error", reject);
      });
      const answer = new Promise((resolve, reject) => {
        socket.once("message", (data) => resolve(JSON.parse(String(data))));
        socket.once("close", (code, reason) => reject(new Error(`${code} ${String(reason)}`)));
      });
      const params = { protocolVersion: 1, auth: { method: "console", credential: proof } };
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "map/connect", params }));
      return await answer;
    } finally {
      socket.terminate();
    }
  }

  it("takes the cookie of the upgrade and the proof of the first message", async () => {
    const { cookie, proof } = await signIn();
    expect(await connect({ cookie, origin: url }, proof)).toMatchObject({
      result: { participantId: "user:ann" },
    });
    for (const [headers, given] of [
      [{ cookie }, "wrong"],
      [{}, proof],
    ] as const) {
      expect(await connect(headers, given)).toMatchObject({
        error: { data: { details: { authError: "invalid_credentials" } } },
      });
    }
    await expect(connect({ cookie, origin: "http://127.0.0.1:1" }, proof)).rejects.toThrow("4403");
  });
});
