/** Which messages are accepted, and attacks with messages. */
import { beforeEach, describe, expect, it } from "vitest";
import { signFields } from "../../src/mesh/signature.js";
import { type Agent, alice, bob, bodyOf, carol, forEachTest, mesh, textsAt } from "./harness.js";

forEachTest();
let lab: string;
beforeEach(async () => {
  lab = await mesh.swarm(alice, bob, carol);
});

const FIELDS = [
  "protocol_version",
  "message_id",
  "timestamp",
  "sender",
  "recipient",
  "swarm_id",
  "type",
  "content",
  "signature",
];

const inboxOf = async (agent: Agent, type = "message") =>
  (await agent.store.mesh.inbox({ limit: 100 })).filter((message) => message.type === type);

describe("messages", () => {
  it("[ASP-ENDP-03, ASP-STAT-09] a valid direct message is queued", async () => {
    const message = alice.message({ swarm_id: lab, recipient: "bob", content: "hi" });
    const response = await bob.post("/swarm/message", message);
    expect(response.status).toBe(200);
    expect(bodyOf(response)).toEqual({ status: "queued", message_id: message.message_id });
    expect(await inboxOf(bob)).toMatchObject([
      { senderId: "alice", content: "hi", status: "pending", box: "unread" },
    ]);
  });

  it("[ASP-MSGF-06] a broadcast reaches every other member once, with identical bodies", async () => {
    mesh.calls.length = 0;
    const { messageId, recipients } = await alice.agent.send({ swarmId: lab, content: "hello all" });
    await mesh.settle();
    expect([...recipients].sort()).toEqual(["bob", "carol"]);
    expect(new Set(mesh.calls.map(({ body }) => body)).size).toBe(1);
    for (const agent of [bob, carol])
      expect(await inboxOf(agent)).toMatchObject([{ messageId, content: "hello all" }]);
    expect(await inboxOf(alice)).toEqual([]);
    expect(await alice.store.mesh.sentCounts(lab)).toMatchObject({ delivered: 3, sent: 0, failed: 0 });
  });

  it.each(FIELDS)("[ASP-MSGF-01] a message without %s is malformed", async (field) => {
    const message: Record<string, unknown> = { ...alice.message({ swarm_id: lab }) };
    delete message[field];
    const response = await bob.post("/swarm/message", message);
    expect(response.status).toBe(400);
    expect(bodyOf(response).error?.code).toBe("INVALID_FORMAT");
  });

  it("[ASP-MSGF-02, ASP-MSGF-05] unknown types and priorities are refused, nulls count as absent", async () => {
    const message = alice.message({ swarm_id: lab });
    expect(await bob.answer({ ...message, type: "shout" })).toBe(400);
    expect(await bob.answer({ ...message, priority: "urgent" })).toBe(400);
    const nulls = Object.fromEntries(
      ["in_reply_to", "thread_id", "priority", "expires_at", "attachments", "references", "metadata"].map(
        (name) => [name, null],
      ),
    );
    expect(await bob.answer({ ...message, ...nulls })).toBe(200);
  });

  it("[ASP-VERS-01] sent messages have no nulls and omit the normal priority", async () => {
    mesh.calls.length = 0;
    await alice.agent.send({
      swarmId: lab,
      to: "bob",
      content: "x",
      extras: { priority: "normal", references: [], attachments: [] },
    });
    await mesh.settle();
    const body = JSON.parse(mesh.calls[0]?.body ?? "");
    expect(Object.values(body)).not.toContain(null);
    expect(Object.keys(body)).toEqual(FIELDS);
  });

  it.each(["http://alice.example.com/swarm", "https://u:p@alice.example.com/", "https://a/#f", "nonsense"])(
    "the endpoint %s is refused",
    async (endpoint) => {
      const message = alice.message({ swarm_id: lab });
      expect(await bob.answer({ ...message, sender: { agent_id: "alice", endpoint } })).toBe(400);
    },
  );

  it.each([
    ["0.9.3", 200],
    ["1.0.0", 400],
    ["0.1", 400],
    ["v0.1.0", 400],
  ])("[ASP-VERS-02] version %s is answered with status %i", async (protocol_version, status) => {
    const message = { ...alice.message({ swarm_id: lab }), protocol_version };
    expect(await bob.answer(message)).toBe(status);
  });

  it("[ASP-SECU-01, ASP-ENDP-05] an unsigned message is refused, and one signed by an unknown agent or another member", async () => {
    const message = alice.message({ swarm_id: lab });
    const { signature: _, ...unsigned } = message;
    expect(await bob.answer(unsigned)).toBe(400);
    for (const forger of [await mesh.agent("mallory"), carol]) {
      const forged = { ...forger.message({ swarm_id: lab }), sender: message.sender };
      const response = await bob.post("/swarm/message", forged);
      expect([response.status, bodyOf(response).error?.code]).toEqual([401, "INVALID_SIGNATURE"]);
      expect(await bob.store.mesh.seen(lab, "alice", forged.message_id)).toBe(false);
    }
    expect(await inboxOf(bob)).toEqual([]);
  });

  it("[ASP-SECU-02, ASP-ENDP-06, ASP-ENDP-07] an unknown swarm is 404, an unknown sender 403, and causes no fetch from its endpoint", async () => {
    const unknown = await bob.post("/swarm/message", alice.message({ swarm_id: crypto.randomUUID() }));
    expect([unknown.status, bodyOf(unknown).error?.code]).toEqual([404, "SWARM_NOT_FOUND"]);
    const mallory = await mesh.agent("mallory");
    mesh.calls.length = 0;
    const stranger = await bob.post("/swarm/message", mallory.message({ swarm_id: lab }));
    expect([stranger.status, bodyOf(stranger).error?.code]).toEqual([403, "NOT_AUTHORIZED"]);
    await mesh.settle();
    expect(mesh.calls.filter(({ url }) => url.includes("mallory"))).toEqual([]);
  });

  it("a message addressed to another agent is 403", async () => {
    expect(await bob.answer(alice.message({ swarm_id: lab, recipient: "carol" }))).toBe(403);
  });

  it("[ASP-OURS-01] a repeated message is queued once and triggers one wake-up", async () => {
    const woken: string[] = [];
    bob.agent.onMessage(({ messageId }) => woken.push(messageId));
    const message = alice.message({ swarm_id: lab });
    const answers = await Promise.all([1, 2, 3].map(() => bob.post("/swarm/message", message)));
    answers.push(await bob.post("/swarm/message", { ...message, metadata: { other: 1 } }));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(woken).toEqual([message.message_id]);
    expect(await inboxOf(bob)).toHaveLength(1);
  });

  it("the same id from two members is two messages", async () => {
    const message_id = crypto.randomUUID();
    for (const sender of [alice, carol]) {
      expect(await bob.answer(sender.message({ swarm_id: lab, message_id }))).toBe(200);
    }
    expect((await inboxOf(bob)).map(({ senderId }) => senderId).sort()).toEqual(["alice", "carol"]);
  });

  it.each([
    ["six minutes ahead", 360_000, 400, "timestamp_in_future"],
    ["four minutes ahead", 240_000, 200, undefined],
    ["23 hours ago", -82_800_000, 200, undefined],
    ["25 hours ago", -90_000_000, 400, "timestamp_too_old"],
  ])("a timestamp %s", async (_, offset, status, reason) => {
    const response = await bob.post(
      "/swarm/message",
      alice.message({ swarm_id: lab }, { at: mesh.clock.now() + offset }),
    );
    expect(response.status).toBe(status);
    expect(bodyOf(response).error?.details?.reason).toBe(reason);
  });

  it("[ASP-MSGF-07] an expired message is refused", async () => {
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
  ])("[ASP-MSGF-03] the reference %j is refused when sending", async (reference) => {
    await expect(
      alice.agent.send({ swarmId: lab, content: "x", extras: { references: [reference] } }),
    ).rejects.toThrow(/references/);
  });

  it("an invalid thread id is refused when sending", async () => {
    await expect(
      alice.agent.send({ swarmId: lab, content: "x", extras: { thread_id: "no" } }),
    ).rejects.toThrow(/thread_id/);
  });

  it("unknown reference types pass on receipt, malformed references do not", async () => {
    const newer = alice.message({
      swarm_id: lab,
      extras: { references: [{ type: "gitlab_issue", action: "liked" }] },
    });
    expect(await bob.answer(newer)).toBe(200);
    const broken = {
      ...alice.message({ swarm_id: lab }),
      references: [{ type: "github_issue", repo: "o/r", number: "7" }],
    };
    expect(await bob.answer(broken)).toBe(400);
  });

  it("content that is too long is refused by sender and receiver; characters count, not code units", async () => {
    const long = "x".repeat(65_537);
    await expect(alice.agent.send({ swarmId: lab, content: long })).rejects.toThrow(/65536/);
    expect(await bob.answer(alice.message({ swarm_id: lab, content: long }))).toBe(400);
    const emoji = "😀".repeat(65_536);
    expect(await bob.answer(alice.message({ swarm_id: lab, content: emoji }))).toBe(200);
    expect(await bob.answer("x".repeat(2 * 1024 * 1024 + 1))).toBe(413);
  });

  it("the two headers are optional, but must not contradict the message", async () => {
    const post = (headers: Record<string, string>) =>
      bob.post("/swarm/message", alice.message({ swarm_id: lab }), headers);
    expect((await post({})).status).toBe(200);
    expect((await post({ "x-agent-id": "alice", "x-swarm-protocol": "0.1.0" })).status).toBe(200);
    expect((await post({ "x-agent-id": "bob" })).status).toBe(400);
    expect((await post({ "x-swarm-protocol": "2.0.0" })).status).toBe(400);
  });

  it("[ASP-ENDP-04] every error has the object form and echoes nothing", async () => {
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

  it("ids are compared without regard to case", async () => {
    const message = alice.message({ swarm_id: lab });
    const upper = { ...message, message_id: message.message_id.toUpperCase(), swarm_id: lab.toUpperCase() };
    const response = await bob.post("/swarm/message", upper);
    expect(bodyOf(response)).toEqual({ status: "queued", message_id: upper.message_id });
    expect(await bob.answer(message)).toBe(200);
    expect(await inboxOf(bob)).toHaveLength(1);
  });

  it("[ASP-MSGF-04] attachments are limited, and URLs are never fetched", async () => {
    const inline = (bytes: number) => ({
      type: "inline" as const,
      mime_type: "text/plain",
      content: Buffer.alloc(bytes).toString("base64"),
    });
    const draft = (attachments: unknown[]) => ({ ...alice.message({ swarm_id: lab }), attachments });
    expect(await bob.answer(draft([inline(1024)]))).toBe(200);
    expect(await bob.answer(draft([inline(1024 * 1024 + 3)]))).toBe(400);
    expect(await bob.answer(draft(Array.from({ length: 17 }, () => inline(1))))).toBe(400);
    expect(await bob.answer(draft([{ type: "inline", mime_type: "x", content: "not base64!" }]))).toBe(400);
    expect(await bob.answer(draft([{ type: "url", mime_type: "x", content: "http://a/" }]))).toBe(400);
    mesh.calls.length = 0;
    expect(await bob.answer(draft([{ type: "url", mime_type: "x", content: "https://a.example/" }]))).toBe(
      200,
    );
    await mesh.settle();
    expect(mesh.calls).toEqual([]);
  });
});

describe("attacks on messages", () => {
  it("a signature for one recipient is not valid for a command to another", async () => {
    // alice sends a harmless message to "bob"; split differently it would be a system command to "bobmessage".
    const content = 'system{"action":"member_kicked","agent_id":"carol"}';
    const chat = alice.message({ swarm_id: lab, recipient: "bob", content });
    const command = {
      ...chat,
      recipient: "bobmessage",
      type: "system",
      content: content.slice("system".length),
    };
    expect(signFields(command, alice.pair)).toBe(chat.signature);
    expect(await bob.answer(command)).toBe(400);
    expect(bob.agent.swarm(lab).members.has("carol")).toBe(true);
  });

  it("an altered copy of an unsealed message does not suppress other messages", async () => {
    const thread_id = crypto.randomUUID();
    const [first, second] = ["first", "second"].map((content) =>
      alice.message({ swarm_id: lab, content, extras: { thread_id } }),
    );
    const evil = { references: [{ type: "url", url: "https://evil.example" }] };
    expect(await bob.answer({ ...first, ...evil })).toBe(200);
    expect(await bob.answer(second)).toBe(200);
    expect(await textsAt(bob)).toEqual(["second", "first"]);
  });

  it("a duplicate key in a command is refused", async () => {
    const content = '{"action":"member_left","agent_id":"carol","agent_id":"bob"}';
    const response = await bob.post(
      "/swarm/message",
      carol.message({ swarm_id: lab, type: "system", content }),
    );
    expect(response.status).toBe(400);
  });

  it("control characters in ids are refused", async () => {
    for (const agent_id of ["alice\n", "al\u001bice", "a b", "\u202ealice"]) {
      const message = { ...alice.message({ swarm_id: lab }), sender: { agent_id, endpoint: alice.endpoint } };
      expect(await bob.answer(message)).toBe(400);
    }
  });
});
