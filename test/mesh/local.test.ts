/** Checklist items 31 (over TLS), 64–68: key fetches, wake, the operator's routes, GitHub; and `mesh init`. */
import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeDevCertificates } from "../../src/mesh/dev-ca/files.js";
import { notificationFor, readNotification } from "../../src/mesh/github.js";
import { operate } from "../../src/mesh/operator/index.js";
import { createPeers } from "../../src/mesh/peers.js";
import { initMesh, openMesh, readIdentity, rotateKeyFile } from "../../src/mesh/setup.js";
import { commandWaker, type WakeNote, WakeTrigger, wakeNoteOf, webhookWaker } from "../../src/mesh/wake.js";
import { createMeshHandler, type MeshRequest, type MeshResponse } from "../../src/mesh/wire/handler.js";
import { type Listener, listen } from "../../src/mesh/wire/listener.js";
import { createLocalHandler, type LocalOptions } from "../../src/mesh/wire/local.js";
import { createGuard, createHttpClient, type HttpClientOptions } from "../../src/net/index.js";
import { type Agent, bodyOf, Mesh } from "./harness.js";

let mesh: Mesh;
let alice: Agent;
let bob: Agent;
let lab: string;
let directory: string;
const listeners: Listener[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "mesh-local-"));
  mesh = new Mesh();
  alice = await mesh.agent("alice");
  bob = await mesh.agent("bob");
  lab = await mesh.swarm(alice, bob);
});
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close();
  await mesh.close();
  rmSync(directory, { recursive: true, force: true });
});

const timers = {
  after: (ms: number, callback: () => void) => clearTimeout.bind(undefined, setTimeout(callback, ms)),
};

async function serveTls(handle: (request: MeshRequest) => Promise<MeshResponse>) {
  const files = makeDevCertificates(join(directory, "tls"), Date.now());
  const [cert, key, ca] = [files.cert, files.key, files.ca].map((path) => readFileSync(path, "utf8"));
  const listener = await listen({ handle, host: "localhost", port: 0, cert: cert ?? "", key: key ?? "" });
  listeners.push(listener);
  return { origin: `https://localhost:${listener.port}`, ca: ca ?? "", port: listener.port };
}

describe("the listener", () => {
  it("[ASP-INFR-02] speaks HTTP/2 and 1.1 over TLS 1.2 or newer, and cuts long bodies off", async () => {
    const { origin, ca, port } = await serveTls(createMeshHandler(bob.node));
    const session = connect(origin, { ca });
    const status = await new Promise<unknown>((resolve, reject) => {
      session.on("error", reject);
      session
        .request({ ":path": "/swarm/health" })
        .on("response", (headers) => resolve(headers[":status"]))
        .resume();
    });
    session.close();
    expect(status).toBe(200);
    const http = createHttpClient({
      clock: timers,
      guard: createGuard({ allow: ["loopback"] }),
      tls: { extraCa: ca },
    });
    expect((await http.request(`${origin}/swarm/info`)).status).toBe(200);
    const message = alice.message({ swarm_id: lab });
    const posted = await http.request(`${origin}/swarm/message`, {
      method: "POST",
      body: JSON.stringify(message),
    });
    expect([posted.status, JSON.parse(posted.text())]).toEqual([
      200,
      { status: "queued", message_id: message.message_id },
    ]);
    const long = await http
      .request(`${origin}/swarm/message`, { method: "POST", body: "x".repeat(3 * 1024 * 1024) })
      .then(
        ({ status: code }) => code,
        () => "cut off",
      );
    expect([413, "cut off"]).toContain(long);
    await http.close();
    const old = connectTls({ port, host: "localhost", ca, maxVersion: "TLSv1.1", minVersion: "TLSv1" });
    await expect(
      new Promise((resolve, reject) => old.on("secureConnect", resolve).on("error", reject)),
    ).rejects.toThrow();
  });
});

describe("64. a key fetch (8.7)", () => {
  const http = (ca: string, options: Partial<HttpClientOptions> = {}) =>
    createHttpClient({
      clock: timers,
      guard: createGuard({ allow: ["loopback"] }),
      tls: { extraCa: ca },
      ...options,
    });
  const answer = (status: number, body: string, headers = {}): MeshResponse => ({ status, body, headers });
  const good = () => JSON.stringify({ agent_id: "bob", public_key: bob.pair.publicKey.text });

  it("takes the key of the right agent from an honest endpoint", async () => {
    const { origin, ca } = await serveTls(async () => answer(200, good()));
    expect(await createPeers(http(ca), "alice", Date.now).info(origin, "bob")).toEqual({
      publicKey: bob.pair.publicKey.text,
    });
    expect(await createPeers(http(ca), "alice", Date.now).info(origin, "carol")).toMatchObject({
      unreachable: false,
    });
  });

  it.each([
    "https://localhost:1",
    "https://127.0.0.1:1",
    "https://[::1]:1",
    "https://169.254.169.254",
    "https://10.0.0.1",
    "https://[fd00::1]",
  ])("[ASP-OURS-09] never connects to %s unless that is allowed", async (endpoint) => {
    const client = createHttpClient({ clock: timers, guard: createGuard() });
    const info = await createPeers(client, "alice", Date.now).info(endpoint, "bob");
    expect(info).toMatchObject({ reason: expect.stringContaining("allow-list") });
    await client.close();
  });

  it("follows no redirect and stops at 64 KiB", async () => {
    const { origin, ca } = await serveTls(async ({ path }) =>
      path === "/swarm/info" ? answer(302, "", { location: "/elsewhere" }) : answer(200, good()),
    );
    expect(await createPeers(http(ca), "alice", Date.now).info(origin, "bob")).toMatchObject({
      reason: expect.stringContaining("302"),
    });
    const big = await serveTls(async () => answer(200, `${good()}${" ".repeat(70_000)}`));
    expect(await createPeers(http(big.ca), "alice", Date.now).info(big.origin, "bob")).toMatchObject({
      reason: expect.stringContaining("65536"),
    });
  });

  it("waits five seconds and no longer", async () => {
    const { origin, ca } = await serveTls(() => new Promise(() => undefined));
    const limits: number[] = [];
    const impatient = {
      after: (ms: number, callback: () => void) => {
        limits.push(ms);
        return clearTimeout.bind(undefined, setTimeout(callback, ms / 50));
      },
    };
    const info = await createPeers(http(ca, { clock: impatient }), "alice", Date.now).info(origin, "bob");
    expect(info).toMatchObject({ unreachable: true });
    expect(Math.max(...limits)).toBe(5_000);
  });
});

describe("65. wake", () => {
  const secret = "a long random secret";

  it("[ASP-WAKE-01] posts the four fields with the secret; a dead URL does not affect the answer to the sender", async () => {
    const notes: { note: WakeNote; secret: string | undefined }[] = [];
    const { origin, ca } = await serveTls(async ({ headers, body }) => {
      notes.push({ note: JSON.parse(Buffer.from(body).toString()), secret: headers["x-wake-secret"] });
      return { status: 202, headers: {}, body: "{}" };
    });
    const http = createHttpClient({
      clock: timers,
      guard: createGuard({ allow: ["loopback"] }),
      tls: { extraCa: ca },
    });
    const problems: string[] = [];
    const trigger = new WakeTrigger(webhookWaker({ url: `${origin}/api/wake`, secret, http }), ({ code }) =>
      problems.push(code),
    );
    bob.node.onMessage((message) => trigger.wake(wakeNoteOf(message, "bob")));
    const message = alice.message({ swarm_id: lab, recipient: "bob", extras: { priority: "high" } });
    await bob.post("/swarm/message", message);
    await bob.post("/swarm/message", message);
    await trigger.quiet();
    const note = {
      message_id: message.message_id,
      swarm_id: lab,
      sender_id: "alice",
      notification_level: "urgent",
    };
    expect(notes).toEqual([{ note, secret }]);
    await http.close();
    expect((await bob.post("/swarm/message", alice.message({ swarm_id: lab }))).status).toBe(200);
    await trigger.quiet();
    expect(problems).toEqual(["mesh_wake_failed"]);
  });

  it("a command gets the note on its input and nothing in its arguments (8.18)", async () => {
    const out = join(directory, "woken");
    const script = "const fs=require('node:fs');fs.writeFileSync(process.argv[1],fs.readFileSync(0));";
    const waker = commandWaker([process.execPath, "-e", script, out]);
    const note: WakeNote = {
      message_id: "$(touch pwned)",
      swarm_id: "; rm -rf /",
      sender_id: "a\n",
      notification_level: "normal",
    };
    await waker(note);
    expect(JSON.parse(readFileSync(out, "utf8"))).toEqual(note);
    await expect(commandWaker([process.execPath, "-e", "process.exit(3)"])(note)).rejects.toThrow("3");
  });

  it("the receiving side refuses a wrong secret (8.17)", async () => {
    const handle = createLocalHandler({
      node: bob.node,
      reads: bob.store.mesh,
      wake: { secret, invoke: () => "invoked" },
    });
    const post = (headers: Record<string, string>, body: unknown) =>
      handle({
        method: "POST",
        path: "/api/wake",
        headers,
        body: Buffer.from(JSON.stringify(body)),
        address: "x",
        query: new URLSearchParams(),
      });
    const note = { message_id: "m", swarm_id: "s", sender_id: "a", notification_level: "normal" };
    expect((await post({}, note))?.status).toBe(403);
    expect((await post({ "x-wake-secret": "guess" }, note))?.status).toBe(403);
    expect((await post({ "x-wake-secret": secret }, note))?.status).toBe(202);
    expect((await post({ "x-wake-secret": secret }, {}))?.status).toBe(400);
  });
});

describe("66. the operator's routes", () => {
  const call = async (method: string, path: string, body?: unknown, options: Partial<LocalOptions> = {}) => {
    const url = new URL(path, "https://x");
    const handle = createLocalHandler({ node: bob.node, reads: bob.store.mesh, ...options });
    const response = await handle({
      method,
      path: url.pathname,
      headers: {},
      body: Buffer.from(JSON.stringify(body ?? null)),
      address: "x",
      query: url.searchParams,
    });
    return response === undefined
      ? undefined
      : { status: response.status, body: response.body === "" ? undefined : JSON.parse(response.body) };
  };

  it("show what came with a message; lists leave out the contents of files", async () => {
    const extras = {
      priority: "high",
      attachments: [{ type: "inline", mime_type: "text/plain", content: "aGVsbG8=" }],
      references: [{ type: "github_issue", repo: "octo/cat", number: 7, action: "claimed" }],
      metadata: { topic: "lunch" },
    } as const;
    const message = alice.message({ swarm_id: lab, extras });
    await bob.post("/swarm/message", message);
    expect((await call("GET", `/api/inbox/${message.message_id}`))?.body.extras).toEqual(extras);
    const listed = await operate({ node: bob.node, reads: bob.store.mesh, directory }, "messages", {});
    expect(listed.messages).toContainEqual(
      expect.objectContaining({
        message_id: message.message_id,
        extras: { ...extras, attachments: [{ type: "inline", mime_type: "text/plain", bytes: 5 }] },
      }),
    );
  });

  it("find a message by its id though another member gave its own the same id later", async () => {
    const aaron = await mesh.agent("aaron");
    await aaron.node.join(await alice.node.invite(lab));
    const message = alice.message({ swarm_id: lab, content: "the original" });
    await bob.post("/swarm/message", message);
    const { message_id } = message;
    await bob.post("/swarm/message", aaron.message({ swarm_id: lab, message_id, content: "a shadow" }));
    expect((await call("GET", `/api/inbox/${message_id}`))?.body).toMatchObject({ sender_id: "alice" });
  });

  it("show and archive what was imported from other software, whatever its senders are called", async () => {
    const state = {
      ...JSON.parse(JSON.stringify(bob.node.exportState())),
      schema_version: "2.0.0",
      inbox: ["a/b", "carol"].map((sender_id) => ({
        message_id: crypto.randomUUID(),
        swarm_id: lab,
        sender_id,
        recipient_id: "bob",
        message_type: "message",
        content: '{"priority":"urgent","attachments":[{"type":"inline","content":{"toString":1}}]}',
        received_at: "2026-01-01T00:00:00.000Z",
        status: "unread",
      })),
    };
    await bob.node.importState(JSON.stringify(state), { mode: "merge" });
    const parts = { node: bob.node, reads: bob.store.mesh, directory };
    const { messages } = await operate(parts, "messages", {});
    // Its content only looks like a message with extras.
    expect(messages).toContainEqual(expect.objectContaining({ sender_id: "a/b", extras: {} }));
    await operate(parts, "archive_all", {});
    const left = await operate(parts, "messages", { status: "read" });
    expect(left).toMatchObject({ count: 0 });
  });

  it("list, show, count and move messages", async () => {
    const ids: string[] = [];
    for (const content of ["one", "two", "three"]) {
      const message = alice.message({ swarm_id: lab, content });
      ids.push(message.message_id);
      await bob.post("/swarm/message", message);
    }
    const [first = "", second = "", third = ""] = ids;
    const list = await call("GET", "/api/inbox?limit=2");
    expect(list?.body.messages.map((one: { content_preview: string }) => one.content_preview)).toEqual([
      "three",
      "two",
    ]);
    expect((await call("GET", "/api/inbox?limit=0"))?.status).toBe(400);
    expect((await call("GET", "/api/inbox?status=odd"))?.status).toBe(400);
    expect((await call("GET", `/api/inbox/${first}`))?.body).toMatchObject({
      status: "read",
      content_preview: "one",
    });
    expect((await call("POST", `/api/inbox/${second}/archive`))?.body).toEqual({
      status: "archived",
      message_id: second,
    });
    expect((await call("POST", `/api/inbox/${second}/read`))?.status).toBe(400);
    expect(
      (await call("POST", "/api/inbox/batch", { message_ids: [first, third], action: "delete" }))?.body,
    ).toEqual({ action: "delete", updated: 2, total: 2 });
    expect((await call("GET", `/api/inbox/count?swarm_id=${lab}`))?.body).toMatchObject({
      archived: 1,
      deleted: 2,
    });
    expect((await call("GET", `/api/inbox/${crypto.randomUUID()}`))?.status).toBe(404);
    await bob.node.send({ swarmId: lab, content: "out" });
    await mesh.settle();
    expect((await call("GET", "/api/outbox"))?.body.messages).toMatchObject([
      { recipient_id: "alice", status: "delivered" },
    ]);
    expect((await call("GET", "/api/outbox/count"))?.body).toMatchObject({ delivered: 1, total: 1 });
    mesh.clock.jump(1);
    await bob.node.purge({ deletedBefore: mesh.clock.now() });
    expect((await call("GET", "/api/inbox/count"))?.body).toMatchObject({ deleted: 2 });
  });

  it("[ASP-OURS-06] are not on the mesh's own listener (8.16)", async () => {
    for (const path of ["/api/inbox", "/api/outbox", "/api/wake", "/mesh/github", "/api/inbox/count"]) {
      const response = await createMeshHandler(bob.node)({
        method: "GET",
        path,
        headers: {},
        body: Buffer.alloc(0),
        address: "x",
      });
      expect([response.status, bodyOf(response).error?.code]).toEqual([404, "NOT_FOUND"]);
    }
  });
});

describe("68. GitHub", () => {
  const payload = {
    action: "opened",
    repository: { full_name: "acme/shop" },
    issue: { number: 7, title: "It is broken", html_url: "https://github.com/acme/shop/issues/7" },
  };

  it.each([
    ["issues", { ...payload }, "issue_created", "github_issue"],
    ["issues", { ...payload, action: "assigned" }, "issue_assigned", "github_issue"],
    [
      "issue_comment",
      { ...payload, action: "created", comment: { html_url: "https://github.com/acme/shop/issues/7#c" } },
      "comment_added",
      "github_issue",
    ],
    ["pull_request", { ...payload, issue: undefined, pull_request: payload.issue }, "pr_opened", "github_pr"],
    [
      "pull_request",
      { ...payload, action: "review_requested", issue: undefined, pull_request: payload.issue },
      "review_requested",
      "github_pr",
    ],
  ])(
    "[ASP-GHUB-01] %s becomes a notification with metadata and a matching reference",
    (event, value, action, type) => {
      const notification = notificationFor(event, value);
      expect(notification?.extras).toMatchObject({
        metadata: {
          github_url: expect.stringContaining("https://github.com/acme/shop/issues/7"),
          action,
          event: `github:${action}`,
        },
        references: [{ type, repo: "acme/shop", number: 7 }],
      });
      const { metadata, references } = notification?.extras ?? {};
      // Each alone is understood on receipt.
      expect(readNotification({ type: "notification", metadata: { action } })).toEqual({ action });
      expect(readNotification({ type: "notification", metadata: { event: `github:${action}` } })).toEqual({
        action,
      });
      expect(
        readNotification({ type: "notification", references: references ?? [] })?.reference,
      ).toMatchObject({ type });
      expect(readNotification({ type: "notification", metadata: metadata ?? {} })?.url).toContain(
        "github.com",
      );
      expect(readNotification({ type: "notification" })).toBeUndefined();
    },
  );

  it("[ASP-GHUB-02] only what GitHub signed gets in, and other events are ignored", async () => {
    const github = { secret: "hook", swarm: lab };
    const handle = createLocalHandler({ node: alice.node, reads: alice.store.mesh, github });
    const post = (event: string, value: unknown, secret = "hook") => {
      const body = Buffer.from(JSON.stringify(value));
      const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
      const headers = { "x-github-event": event, "x-hub-signature-256": signature };
      return handle({
        method: "POST",
        path: "/mesh/github",
        headers,
        body,
        address: "x",
        query: new URLSearchParams(),
      });
    };
    expect((await post("issues", payload, "wrong"))?.status).toBe(403);
    expect((await post("star", payload))?.status).toBe(204);
    expect((await post("issues", payload))?.status).toBe(202);
    await mesh.settle();
    const [stored] = (await bob.store.mesh.inbox({ limit: 9 })).filter(({ type }) => type === "notification");
    expect(stored?.content).toBe("New issue: acme/shop#7 It is broken");
  });
});

describe("mesh init", () => {
  it("[ASP-INFR-03] makes a key and an identity, once, for a public name unless it is for development", async () => {
    const make = (endpoint: string, dev = false) => initMesh({ directory, agentId: "dora", endpoint, dev });
    for (const endpoint of [
      "http://d.example.com/swarm",
      "https://203.0.113.7/swarm",
      "https://localhost/swarm",
      "https://[::1]/swarm",
      "https://intranet/swarm",
    ]) {
      expect(() => make(endpoint)).toThrow(/endpoint/);
    }
    expect(() => initMesh({ directory, agentId: "broadcast", endpoint: "https://d.example.com" })).toThrow(
      /broadcast/,
    );
    const { publicKey } = make("https://localhost:8443/swarm", true);
    expect(readIdentity(directory)).toEqual({
      agentId: "dora",
      dev: true,
      endpoint: "https://localhost:8443/swarm",
    });
    expect(statSync(join(directory, "mesh", "agent.json")).mode & 0o777).toBe(0o600);
    expect(() => make("https://d.example.com/swarm")).toThrow(/exists/);
    const node = await openMesh({
      directory,
      store: bob.store,
      http: bob.node.core.parts.http,
      clock: mesh.clock,
      ids: bob.node.core.parts.ids,
      report: () => undefined,
    });
    expect(node.core.pair.publicKey.text).toBe(publicKey);
    const renewed = await rotateKeyFile(directory, node);
    expect(renewed).not.toBe(publicKey);
    expect(node.core.pair.publicKey.text).toBe(renewed);
    await node.close();
  });

  it("the development CA is for loopback only", () => {
    expect(() => makeDevCertificates(directory, Date.now(), ["example.com"])).toThrow(/loopback/);
  });
});
