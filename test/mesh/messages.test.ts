/** Checklist items 12–37 and the attacks on messages: numbers and section 8 of the protocol's review. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkDraft } from "../../src/mesh/message/build.js";
import { signFields } from "../../src/mesh/signature.js";
import { type Agent, bodyOf, type Mesh, threeAgents } from "./harness.js";

let mesh: Mesh;
let alice: Agent;
let bob: Agent;
let carol: Agent;
let lab: string;

beforeEach(async () => {
  ({ mesh, alice, bob, carol } = await threeAgents());
  lab = await mesh.swarm(alice, bob, carol);
});
afterEach(() => mesh.close());

const inboxOf = async (agent: Agent, type = "message") =>
  (await agent.store.mesh.inbox({ limit: 100 })).filter((message) => message.type === type);

describe("messages", () => {
  it("[ASP-ENDP-03, ASP-STAT-09] 14. a valid direct message is queued", async () => {
    const message = alice.message({ swarm_id: lab, recipient: "bob", content: "hi" });
    const response = await bob.post("/swarm/message", message);
    expect(response.status).toBe(200);
    expect(bodyOf(response)).toEqual({ status: "queued", message_id: message.message_id });
    expect(await inboxOf(bob)).toMatchObject([
      { senderId: "alice", content: "hi", status: "pending", box: "unread" },
    ]);
  });

  it("[ASP-MSGF-06] 15. a broadcast reaches every other member once, with identical bodies", async () => {
    mesh.calls.length = 0;
    const { messageId, recipients } = await alice.node.send({ swarmId: lab, content: "hello all" });
    await mesh.settle();
    expect([...recipients].sort()).toEqual(["bob", "carol"]);
    expect(new Set(mesh.calls.map(({ body }) => body)).size).toBe(1);
    for (const agent of [bob, carol])
      expect(await inboxOf(agent)).toMatchObject([{ messageId, content: "hello all" }]);
    expect(await inboxOf(alice)).toEqual([]);
    expect(await alice.store.mesh.sentCounts(lab)).toMatchObject({ delivered: 3, sent: 0, failed: 0 });
  });

  it.each([
    "protocol_version",
    "message_id",
    "timestamp",
    "sender",
    "recipient",
    "swarm_id",
    "type",
    "content",
    "signature",
  ])("[ASP-MSGF-01] 16. without %s a message is malformed", async (field) => {
    const message: Record<string, unknown> = { ...alice.message({ swarm_id: lab }) };
    delete message[field];
    const response = await bob.post("/swarm/message", message);
    expect(response.status).toBe(400);
    expect(bodyOf(response).error?.code).toBe("INVALID_FORMAT");
  });

  it("[ASP-MSGF-02, ASP-MSGF-05] 17. unknown type and priority are refused, nulls are absent", async () => {
    const message = alice.message({ swarm_id: lab });
    expect((await bob.post("/swarm/message", { ...message, type: "shout" })).status).toBe(400);
    expect((await bob.post("/swarm/message", { ...message, priority: "urgent" })).status).toBe(400);
    const nulls = Object.fromEntries(
      ["in_reply_to", "thread_id", "priority", "expires_at", "attachments", "references", "metadata"].map(
        (name) => [name, null],
      ),
    );
    expect((await bob.post("/swarm/message", { ...message, ...nulls })).status).toBe(200);
  });

  it("[ASP-VERS-01] 18. what we send has no nulls, and no normal priority", async () => {
    mesh.calls.length = 0;
    await alice.node.send({
      swarmId: lab,
      to: "bob",
      content: "x",
      extras: { priority: "normal", references: [], attachments: [] },
    });
    await mesh.settle();
    const body = JSON.parse(mesh.calls[0]?.body ?? "");
    expect(Object.values(body)).not.toContain(null);
    expect(Object.keys(body)).toEqual([
      "protocol_version",
      "message_id",
      "timestamp",
      "sender",
      "recipient",
      "swarm_id",
      "type",
      "content",
      "signature",
    ]);
  });

  it.each(["http://alice.example.com/swarm", "https://u:p@alice.example.com/", "https://a/#f", "nonsense"])(
    "19. the endpoint %s is refused",
    async (endpoint) => {
      const message = alice.message({ swarm_id: lab });
      expect(
        (await bob.post("/swarm/message", { ...message, sender: { agent_id: "alice", endpoint } })).status,
      ).toBe(400);
    },
  );

  it.each([
    ["0.9.3", 200],
    ["1.0.0", 400],
    ["0.1", 400],
    ["v0.1.0", 400],
  ])("[ASP-VERS-02] 20. version %s is answered %i", async (protocol_version, status) => {
    const message = { ...alice.message({ swarm_id: lab }), protocol_version };
    expect((await bob.post("/swarm/message", message)).status).toBe(status);
  });

  it("[ASP-SECU-01, ASP-ENDP-05] 21. an unsigned or wrongly signed message is refused and leaves nothing", async () => {
    const mallory = await mesh.agent("mallory");
    const message = alice.message({ swarm_id: lab });
    const { signature: _, ...unsigned } = message;
    expect((await bob.post("/swarm/message", unsigned)).status).toBe(400);
    const forged = { ...mallory.message({ swarm_id: lab }), sender: message.sender };
    const response = await bob.post("/swarm/message", forged);
    expect([response.status, bodyOf(response).error?.code]).toEqual([401, "INVALID_SIGNATURE"]);
    expect(await inboxOf(bob)).toEqual([]);
    expect(await bob.store.mesh.seen(lab, "alice", forged.message_id)).toBe(false);
  });

  it("[ASP-SECU-02, ASP-ENDP-06, ASP-ENDP-07] 22. an unknown swarm is 404, a stranger 403, and a stranger causes no fetch from its endpoint", async () => {
    const unknown = await bob.post("/swarm/message", alice.message({ swarm_id: crypto.randomUUID() }));
    expect([unknown.status, bodyOf(unknown).error?.code]).toEqual([404, "SWARM_NOT_FOUND"]);
    const mallory = await mesh.agent("mallory");
    mesh.calls.length = 0;
    const stranger = await bob.post("/swarm/message", mallory.message({ swarm_id: lab }));
    expect([stranger.status, bodyOf(stranger).error?.code]).toEqual([403, "NOT_AUTHORIZED"]);
    expect(mesh.calls.filter(({ url }) => url.includes("mallory"))).toEqual([]);
  });

  it("23. a message for somebody else is 403", async () => {
    expect(
      (await bob.post("/swarm/message", alice.message({ swarm_id: lab, recipient: "carol" }))).status,
    ).toBe(403);
  });

  it("[ASP-OURS-01] 24. the same message twice is queued once, and wakes once", async () => {
    const woken: string[] = [];
    bob.node.onMessage(({ messageId }) => woken.push(messageId));
    const message = alice.message({ swarm_id: lab });
    const answers = await Promise.all([1, 2, 3].map(() => bob.post("/swarm/message", message)));
    answers.push(await bob.post("/swarm/message", { ...message, metadata: { other: 1 } }));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(woken).toEqual([message.message_id]);
    expect(await inboxOf(bob)).toHaveLength(1);
  });

  it("25. the same id from two members is two messages (8.5)", async () => {
    const message_id = crypto.randomUUID();
    for (const sender of [alice, carol]) {
      expect((await bob.post("/swarm/message", sender.message({ swarm_id: lab, message_id }))).status).toBe(
        200,
      );
    }
    expect((await inboxOf(bob)).map(({ senderId }) => senderId).sort()).toEqual(["alice", "carol"]);
  });

  it.each([
    ["six minutes ahead", 360_000, 400, "timestamp_in_future"],
    ["four minutes ahead", 240_000, 200, undefined],
    ["23 hours ago", -82_800_000, 200, undefined],
    ["25 hours ago", -90_000_000, 400, "timestamp_too_old"],
  ])("26. a timestamp %s", async (_, offset, status, reason) => {
    const response = await bob.post(
      "/swarm/message",
      alice.message({ swarm_id: lab }, mesh.clock.now() + offset),
    );
    expect(response.status).toBe(status);
    expect(bodyOf(response).error?.details?.reason).toBe(reason);
  });

  it("[ASP-MSGF-07] 26. an expired message is refused", async () => {
    const expires_at = new Date(mesh.clock.now() - 1).toISOString();
    const response = await bob.post(
      "/swarm/message",
      alice.message({ swarm_id: lab, extras: { expires_at } }),
    );
    expect(bodyOf(response).error?.details?.reason).toBe("expired");
  });

  it.each([
    { type: "github_repo" },
    { type: "github_issue", repo: "o/r" },
    { type: "github_pr", number: 1 },
    { type: "github_commit", repo: "o/r" },
    { type: "url" },
    { type: "github_repo", repo: "no slash" },
    { type: "gitlab_issue", repo: "o/r" },
    { type: "url", url: "https://x", action: "liked" },
  ])("[ASP-MSGF-03] 27. the reference %j is refused when sending", async (reference) => {
    await expect(
      alice.node.send({ swarmId: lab, content: "x", extras: { references: [reference] } }),
    ).rejects.toThrow(/references/);
  });

  it("27. what a newer version may know passes on receipt, what is broken does not", async () => {
    const newer = alice.message({
      swarm_id: lab,
      extras: { references: [{ type: "gitlab_issue", action: "liked" }] },
    });
    expect((await bob.post("/swarm/message", newer)).status).toBe(200);
    const broken = {
      ...alice.message({ swarm_id: lab }),
      references: [{ type: "github_issue", repo: "o/r", number: "7" }],
    };
    expect((await bob.post("/swarm/message", broken)).status).toBe(400);
  });

  it("28. too long a content is refused by sender and receiver; characters count, not code units (8.20)", async () => {
    const long = "x".repeat(65_537);
    await expect(alice.node.send({ swarmId: lab, content: long })).rejects.toThrow(/65536/);
    expect((await bob.post("/swarm/message", alice.message({ swarm_id: lab, content: long }))).status).toBe(
      400,
    );
    const emoji = "😀".repeat(65_536);
    expect((await bob.post("/swarm/message", alice.message({ swarm_id: lab, content: emoji }))).status).toBe(
      200,
    );
    expect((await bob.post("/swarm/message", "x".repeat(2 * 1024 * 1024 + 1))).status).toBe(413);
  });

  it("29. the two headers may be missing, but must not contradict", async () => {
    const post = (headers: Record<string, string>) =>
      bob.post("/swarm/message", alice.message({ swarm_id: lab }), headers);
    expect((await post({})).status).toBe(200);
    expect((await post({ "x-agent-id": "alice", "x-swarm-protocol": "0.1.0" })).status).toBe(200);
    expect((await post({ "x-agent-id": "bob" })).status).toBe(400);
    expect((await post({ "x-swarm-protocol": "2.0.0" })).status).toBe(400);
  });

  it("[ASP-ENDP-04] 30. every error has the object form and echoes nothing (8.25)", async () => {
    const bodies = [
      "{",
      "",
      "[]",
      "null",
      '"secret-text"',
      JSON.stringify({ secret: "secret-text" }),
      Buffer.from([0xff, 0xfe]),
      `${"[".repeat(40)}${"]".repeat(40)}`,
    ];
    for (const path of ["/swarm/message", "/swarm/join"]) {
      for (const body of bodies) {
        const response = await bob.post(path, body);
        expect(response.status).toBe(400);
        expect(bodyOf(response).error).toMatchObject({
          code: expect.any(String),
          message: expect.any(String),
        });
        expect(response.body).not.toContain("secret-text");
      }
    }
    expect((await bob.post("/swarm/nope", {})).status).toBe(404);
    expect((await bob.post("/swarm/info", {})).status).toBe(405);
  });

  it("13. upper-case ids are the same ids", async () => {
    const message = alice.message({ swarm_id: lab });
    const upper = { ...message, message_id: message.message_id.toUpperCase(), swarm_id: lab.toUpperCase() };
    const response = await bob.post("/swarm/message", upper);
    expect(bodyOf(response)).toEqual({ status: "queued", message_id: upper.message_id });
    expect((await bob.post("/swarm/message", message)).status).toBe(200);
    expect(await inboxOf(bob)).toHaveLength(1);
  });

  it("[ASP-MSGF-04] attachments have limits, and a URL is never fetched", async () => {
    const inline = (bytes: number) => ({
      type: "inline" as const,
      mime_type: "text/plain",
      content: Buffer.alloc(bytes).toString("base64"),
    });
    const draft = (attachments: unknown[]) => ({ ...alice.message({ swarm_id: lab }), attachments });
    expect((await bob.post("/swarm/message", draft([inline(1024)]))).status).toBe(200);
    expect((await bob.post("/swarm/message", draft([inline(1024 * 1024 + 3)]))).status).toBe(400);
    expect(
      (await bob.post("/swarm/message", draft(Array.from({ length: 17 }, () => inline(1))))).status,
    ).toBe(400);
    expect(
      (await bob.post("/swarm/message", draft([{ type: "inline", mime_type: "x", content: "not base64!" }])))
        .status,
    ).toBe(400);
    expect(
      (await bob.post("/swarm/message", draft([{ type: "url", mime_type: "x", content: "http://a/" }])))
        .status,
    ).toBe(400);
    mesh.calls.length = 0;
    expect(
      (
        await bob.post(
          "/swarm/message",
          draft([{ type: "url", mime_type: "x", content: "https://a.example/" }]),
        )
      ).status,
    ).toBe(200);
    expect(mesh.calls).toEqual([]);
    expect(() =>
      checkDraft({
        message_id: "",
        swarm_id: "",
        recipient: "bob",
        type: "message",
        content: "x",
        extras: { thread_id: "no" },
      }),
    ).toThrow(/thread_id/);
  });
});

describe("endpoints", () => {
  const get = async (agent: Agent, path: string) => {
    const { createMeshHandler } = await import("../../src/mesh/wire/handler.js");
    return createMeshHandler(agent.node)({
      method: "GET",
      path,
      headers: {},
      body: Buffer.alloc(0),
      address: "x",
    });
  };

  it("[ASP-ENDP-01] 31. health and info need no header", async () => {
    expect(bodyOf(await get(bob, "/swarm/health"))).toEqual({
      status: "healthy",
      agent_id: "bob",
      protocol_version: "0.1.0",
      timestamp: new Date(mesh.clock.now()).toISOString(),
      message: null,
    });
    expect(bodyOf(await get(bob, "/swarm/info"))).toEqual({
      agent_id: "bob",
      endpoint: bob.endpoint,
      public_key: bob.pair.publicKey.text,
      protocol_version: "0.1.0",
      capabilities: ["message", "system", "notification"],
      metadata: null,
    });
  });

  it("[ASP-SECU-06, ASP-ENDP-08] 32. the 61st message of a sender in a minute has to wait", async () => {
    for (let index = 0; index < 60; index += 1) {
      expect((await bob.post("/swarm/message", carol.message({ swarm_id: lab }))).status).toBe(200);
    }
    const response = await bob.post("/swarm/message", carol.message({ swarm_id: lab }));
    expect(response.status).toBe(429);
    expect(Number(response.headers["retry-after"])).toBeLessThanOrEqual(60);
    for (const name of ["limit", "remaining", "reset"])
      expect(response.headers[`x-ratelimit-${name}`]).toMatch(/^\d+$/);
    // Nobody can spend another's budget: a forged message is not counted.
    expect((await bob.post("/swarm/message", alice.message({ swarm_id: lab }))).status).toBe(200);
    mesh.clock.jump(61_000);
    expect((await bob.post("/swarm/message", carol.message({ swarm_id: lab }))).status).toBe(200);
  });

  it("[ASP-SECU-08] 32. a hundred messages a minute are what a swarm may have", async () => {
    const answers: number[] = [];
    for (let index = 0; index < 52; index += 1) {
      for (const sender of [alice, carol])
        answers.push((await bob.post("/swarm/message", sender.message({ swarm_id: lab }))).status);
    }
    // Two of them were the lifecycle messages of the joins.
    expect(answers.filter((status) => status === 200).length).toBeLessThanOrEqual(100);
    expect(answers.at(-1)).toBe(429);
  });

  it("[ASP-SECU-07] 33. the eleventh join of an address in an hour has to wait", async () => {
    for (let index = 0; index < 10; index += 1)
      expect((await alice.post("/swarm/join", {}, {}, "203.0.113.9")).status).toBe(400);
    const response = await alice.post("/swarm/join", {}, {}, "203.0.113.9");
    expect(response.status).toBe(429);
    expect((await alice.post("/swarm/join", {}, {}, "203.0.113.10")).status).toBe(400);
  });

  it("8.29: an address that is refused again and again is slowed down", async () => {
    let last = 0;
    for (let index = 0; index < 130; index += 1)
      last = (await bob.post("/swarm/message", "{", {}, "192.0.2.1")).status;
    expect(last).toBe(429);
    expect((await bob.post("/swarm/message", alice.message({ swarm_id: lab }), {}, "192.0.2.2")).status).toBe(
      200,
    );
  });
});

describe("our client", () => {
  const send = async () => (await alice.node.send({ swarmId: lab, to: "bob", content: "x" })).messageId;
  const statusOf = async (messageId: string) => (await alice.store.mesh.sentById(messageId))[0];
  const attempts = () =>
    mesh.calls.filter(({ url }) => url === "https://bob.example.com/swarm/message").length;

  it("34. waits sensibly on an absolute Retry-After", async () => {
    const at = Math.floor(mesh.clock.now() / 1_000) + 45;
    mesh.foreign.set("bob.example.com", () => ({
      status: 429,
      body: "{}",
      headers: { "retry-after": String(at) },
    }));
    mesh.calls.length = 0;
    const id = await send();
    await mesh.settle();
    mesh.foreign.clear();
    await mesh.pass(40_000);
    expect(attempts()).toBe(1);
    await mesh.pass(10_000);
    expect(attempts()).toBe(2);
    expect((await statusOf(id))?.status).toBe("delivered");
  });

  it.each([
    [
      "a 422 detail list",
      422,
      JSON.stringify({ detail: [{ loc: ["body", "signature"], msg: "Field required" }] }),
      "body.signature Field required",
    ],
    ["a string error", 400, JSON.stringify({ error: "nope" }), "nope"],
    [
      "the object form",
      403,
      JSON.stringify({ error: { code: "NOT_AUTHORIZED", message: "go away" } }),
      "go away",
    ],
    ["plain text", 410, "Gone\u001b[31m fishing", "Gone [31m fishing"],
    ["nothing", 404, "", "status 404"],
  ])("35, 36. reports %s, and does not try again", async (_, status, body, complaint) => {
    mesh.foreign.set("bob.example.com", () => ({ status, body }));
    mesh.calls.length = 0;
    const id = await send();
    await mesh.pass(3_600_000);
    expect(attempts()).toBe(1);
    expect(await statusOf(id)).toMatchObject({ status: "failed", error: expect.stringContaining(complaint) });
  });

  it("35, 36. tries again after a plain-text 500, 503 or a broken connection, until its deadline", async () => {
    mesh.foreign.set("bob.example.com", () => ({ status: 500, body: "Internal Server Error" }));
    mesh.calls.length = 0;
    const id = await send();
    await mesh.pass(5_000);
    expect(attempts()).toBeGreaterThan(1);
    mesh.foreign.clear();
    mesh.down.add("bob.example.com");
    await mesh.pass(3_600_000);
    expect((await statusOf(id))?.status).toBe("sent");
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect((await statusOf(id))?.status).toBe("delivered");
    expect(await inboxOf(bob)).toHaveLength(1);
  });

  it("gives up after 14 days and says so; after 12 hours it signs anew with the same id", async () => {
    mesh.down.add("bob.example.com");
    const lost = await send();
    await mesh.pass(15 * 86_400_000);
    expect(await statusOf(lost)).toMatchObject({ status: "failed" });
    expect(alice.problems.some(({ code }) => code === "mesh_undelivered")).toBe(true);
    const late = await send();
    await mesh.pass(30 * 3_600_000);
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect((await statusOf(late))?.status).toBe("delivered");
    expect(await inboxOf(bob)).toMatchObject([{ messageId: late }]);
  });

  it("[ASP-ENDP-02] says what it sends, who it is and which protocol it speaks", async () => {
    mesh.calls.length = 0;
    await carol.node.join(await alice.node.invite(lab));
    await carol.node.send({ swarmId: lab, to: "bob", content: "x" });
    await mesh.settle();
    const posts = mesh.calls.filter(({ from, method }) => from === "carol" && method === "POST");
    expect(posts.map(({ url }) => new URL(url).pathname)).toEqual(["/swarm/join", "/swarm/message"]);
    for (const { headers } of posts) {
      expect(headers).toEqual({
        "content-type": "application/json",
        "x-agent-id": "carol",
        "x-swarm-protocol": "0.1.0",
      });
    }
  });

  it("37. a peer with a bare origin is called under /swarm", async () => {
    const { routeUrl } = await import("../../src/mesh/message/endpoint.js");
    expect(routeUrl("https://a.example", "message")).toBe("https://a.example/swarm/message");
    expect(routeUrl("https://a.example/", "join")).toBe("https://a.example/swarm/join");
    expect(routeUrl("https://a.example/swarm/", "info")).toBe("https://a.example/swarm/info");
    expect(routeUrl("https://a.example/agents/x", "message")).toBe("https://a.example/agents/x/message");
  });
});

describe("attacks on messages", () => {
  it("8.1, 8.6: nobody speaks for another member", async () => {
    const forged = {
      ...carol.message({ swarm_id: lab }),
      sender: { agent_id: "alice", endpoint: alice.endpoint },
    };
    expect((await bob.post("/swarm/message", forged)).status).toBe(401);
  });

  it("8.2: a signature for one recipient cannot be read as a command to another", async () => {
    // alice says something harmless to "bob"; read differently it is a system command to "bobmessage".
    const content = 'system{"action":"member_kicked","agent_id":"carol"}';
    const chat = alice.message({ swarm_id: lab, recipient: "bob", content });
    const command = {
      ...chat,
      recipient: "bobmessage",
      type: "system",
      content: content.slice("system".length),
    };
    const fields = { ...command, type: "system" };
    expect(signFields(fields, alice.pair)).toBe(chat.signature);
    expect((await bob.post("/swarm/message", command)).status).toBe(400);
    expect(bob.node.swarm(lab).members.has("carol")).toBe(true);
  });

  it("8.3: altered extras of a signed body stay hints: no other message is lost to them", async () => {
    const message = alice.message({ swarm_id: lab, extras: { thread_id: crypto.randomUUID() } });
    await bob.post("/swarm/message", {
      ...message,
      references: [{ type: "url", url: "https://evil.example" }],
    });
    expect((await inboxOf(bob))[0]?.content).toBe(message.content);
  });

  it("8.19: a key that is given twice in a command is refused", async () => {
    const content = '{"action":"member_left","agent_id":"carol","agent_id":"bob"}';
    const response = await bob.post(
      "/swarm/message",
      carol.message({ swarm_id: lab, type: "system", content }),
    );
    expect(response.status).toBe(400);
  });

  it("67. control characters never get in through an id", async () => {
    for (const agent_id of ["alice\n", "al\u001bice", "a b", "\u202ealice"]) {
      const message = { ...alice.message({ swarm_id: lab }), sender: { agent_id, endpoint: alice.endpoint } };
      expect((await bob.post("/swarm/message", message)).status).toBe(400);
    }
  });
});
