/** Conversations, participants and permissions. */
import type { AgentConnection } from "@multi-agent-protocol/sdk";
import { afterEach, beforeEach, expect, it } from "vitest";
import { codeOf, gather, Harness, OPEN, text, until, withBothPolicies } from "./harness.js";

let map: Harness;
/** The initiator, two more agents, and one that never becomes a member. */
let ann: AgentConnection;
let bob: AgentConnection;
let cyd: AgentConnection;
let eve: AgentConnection;

async function start(options: Parameters<typeof Harness.start>[0] = {}): Promise<void> {
  map = await Harness.start(options);
  [ann, bob, cyd, eve] = [
    await map.agent("ann"),
    await map.agent("bob", { name: "Bob", role: "researcher" }),
    await map.agent("cyd"),
    await map.agent("eve"),
  ];
}

beforeEach(() => start());
afterEach(async () => {
  await map.stop();
  expect(map.problems).toEqual([]);
});

async function restart(options: Parameters<typeof Harness.start>[0]): Promise<void> {
  await map.stop();
  await start(options);
}

type CreateParams = Parameters<AgentConnection["createConversation"]>[0];

async function conversation(params: CreateParams = {}): Promise<string> {
  return (await ann.createConversation(params)).conversation.id;
}

const say = (who: AgentConnection, conversationId: string, words = "hello") =>
  who.recordTurn({ conversationId, ...text(words) });

withBothPolicies("conversations", () => {
  it("[MAP-CONV-01, MAP-METH-01] can be created without parameters", async () => {
    const { conversation: made, participant } = await ann.createConversation();
    expect(made).toMatchObject({
      id: expect.stringMatching(/^conv-[0-9a-f-]{36}$/),
      type: "multi-agent",
      status: "active",
      participantCount: 1,
      createdBy: "ann",
      metadata: {},
    });
    expect(participant).toMatchObject({ id: "ann", role: "initiator", type: "agent" });
  });

  it("[MAP-METH-01, MAP-CONV-04, MAP-LEVL-04] can be created with members and a first turn, with one event each", async () => {
    const client = await map.client();
    const seen = gather(await client.subscribe({ mail: {} }));
    const { conversation: made, initialTurn } = await ann.createConversation({
      type: "mixed",
      subject: "Plans",
      initialParticipants: [{ id: "bob", role: "worker" }, { id: "later" }],
      initialTurn: text("Let's plan."),
      metadata: { project: "x" },
    });
    expect(made).toMatchObject({ participantCount: 3, subject: "Plans", metadata: { project: "x" } });
    expect(initialTurn).toMatchObject({
      participant: "ann",
      source: { type: "explicit", method: "mail/turn" },
      content: { text: "Let's plan." },
      status: "complete",
    });
    await seen.count(5);
    expect(seen.types()).toEqual([
      "mail.created",
      "mail.participant.joined",
      "mail.participant.joined",
      "mail.participant.joined",
      "mail.turn.added",
    ]);
  });

  it("an invalid first turn creates nothing", async () => {
    const client = await map.client();
    const seen = gather(await client.subscribe({ mail: {} }));
    const bad = { initialTurn: { contentType: "foo", content: 1 } };
    expect(await codeOf(ann.createConversation(bad as never))).toBe(10008);
    expect((await ann.listConversations()).conversations).toEqual([]);
    await ann.createConversation();
    await seen.count(2);
    expect(seen.types()).toEqual(["mail.created", "mail.participant.joined"]);
  });

  it("[MAP-CONV-02] parents must exist, be readable, and have the turn", async () => {
    expect(await codeOf(ann.createConversation({ parentConversationId: "conv-x" }))).toBe(10000);
    const parent = await conversation();
    expect(await codeOf(eve.createConversation({ parentConversationId: parent }))).toBe(10002);
    const inParent = { parentConversationId: parent, parentTurnId: "turn-x" };
    expect(await codeOf(ann.createConversation(inParent))).toBe(10006);
    const { turn } = await say(ann, parent);
    await ann.closeConversation(parent);
    const child = await ann.createConversation({ parentConversationId: parent, parentTurnId: turn.id });
    expect(child.conversation).toMatchObject({ parentConversationId: parent, parentTurnId: turn.id });
    expect(await codeOf(ann.createConversation({ parentTurnId: turn.id }))).toBe(-32602);
  });

  it("[MAP-CONV-01] unknown types and roles are rejected, and duplicate participants count once", async () => {
    expect(await codeOf(ann.createConversation({ type: "party" as never }))).toBe(-32602);
    expect(
      await codeOf(ann.createConversation({ initialParticipants: [{ id: "b", role: "king" as never }] })),
    ).toBe(-32602);
    const { conversation: made } = await ann.createConversation({
      initialParticipants: [{ id: "bob" }, { id: "ann" }, { id: "bob", role: "observer" }],
    });
    expect(made.participantCount).toBe(2);
  });

  it("[MAP-METH-02, MAP-ERRS-01] get returns only what was requested", async () => {
    expect(await codeOf(ann.getConversation("conv-x"))).toBe(10000);
    expect(await codeOf(ann.getConversation("conv-00000000-0000-7000-8000-000000000000"))).toBe(10000);
    const id = await conversation({ initialParticipants: [{ id: "bob" }] });
    for (const words of ["one", "two", "three"]) await say(ann, id, words);
    expect(Object.keys(await ann.getConversation(id))).toEqual(["conversation"]);
    const parts = await ann.getConversation(id, {
      participants: true,
      threads: true,
      recentTurns: 2,
      stats: true,
    });
    expect(Object.keys(parts).sort()).toEqual([
      "conversation",
      "participants",
      "recentTurns",
      "stats",
      "threads",
    ]);
    expect(parts.recentTurns?.map(({ content }) => content)).toEqual([{ text: "three" }, { text: "two" }]);
    expect(parts.participants?.map((one) => one.id)).toEqual(["ann", "bob"]);
    await bob.leaveConversation(id);
    const { participants } = await ann.getConversation(id, { participants: true });
    expect(participants?.[1]).toMatchObject({ id: "bob", leftAt: expect.any(Number) });
    expect(await codeOf(ann.getConversation(id, { recentTurns: 0 }))).toBe(-32602);
  });

  it("stats count the turns that the caller can see, by type", async () => {
    const id = await conversation({ initialParticipants: [{ id: "bob" }] });
    await say(ann, id);
    await ann.recordTurn({ conversationId: id, contentType: "data", content: [1] });
    await ann.recordTurn({
      conversationId: id,
      contentType: "data",
      content: 2,
      visibility: { type: "private" },
    });
    const statsFor = async (who: AgentConnection) => (await who.getConversation(id, { stats: true })).stats;
    expect(await statsFor(ann)).toEqual({
      totalTurns: 3,
      turnsByContentType: { text: 1, data: 2 },
      activeParticipants: 2,
      threadCount: 0,
    });
    expect(await statsFor(bob)).toMatchObject({ totalTurns: 2, turnsByContentType: { text: 1, data: 1 } });
  });

  it("[MAP-METH-03] list filters and pages without overlap or gap", async () => {
    const ids: string[] = [];
    const times: number[] = [];
    for (let n = 0; n < 7; n++) {
      const { conversation: made } = await ann.createConversation({
        type: n % 2 === 0 ? "mixed" : "agent-task",
        ...(n === 6 && ids[0] !== undefined && { parentConversationId: ids[0] }),
        ...(n === 3 && { initialParticipants: [{ id: "bob" }] }),
      });
      ids.push(made.id);
      times.push(made.createdAt);
      await until(() => Date.now() > made.createdAt);
    }
    await ann.closeConversation(ids[1] ?? "");
    const listed = async (
      filter: NonNullable<Parameters<AgentConnection["listConversations"]>[0]>["filter"],
    ) =>
      (await ann.listConversations({ ...(filter !== undefined && { filter }) })).conversations.map(({ id }) =>
        ids.indexOf(id),
      );
    expect(await listed({ type: ["agent-task"] })).toEqual([1, 3, 5]);
    expect(await listed({ type: [], status: ["active"] })).toEqual([0, 2, 3, 4, 5, 6]);
    expect(await listed({ status: ["completed"] })).toEqual([1]);
    expect(await listed({ participantId: "bob" })).toEqual([3]);
    expect(await listed({ createdAfter: times[4] ?? 0 })).toEqual([5, 6]);
    expect(await listed({ createdBefore: times[2] ?? 0 })).toEqual([0, 1]);
    expect(await listed({ parentConversationId: ids[0] ?? "" })).toEqual([6]);
    await bob.leaveConversation(ids[3] ?? "");
    expect(await listed({ participantId: "bob" })).toEqual([]);
    const paged: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await ann.listConversations({ limit: 3, ...(cursor !== undefined && { cursor }) });
      paged.push(...page.conversations.map(({ id }) => id));
      cursor = page.nextCursor;
      expect(page.hasMore).toBe(cursor !== undefined);
      if (cursor === undefined) break;
    }
    expect(paged).toEqual(ids);
    expect(await codeOf(ann.listConversations({ cursor: "nonsense" }))).toBe(-32602);
    expect(await codeOf(ann.listConversations({ limit: 0 }))).toBe(-32602);
  });

  it("list and get agree, also after a restart", async () => {
    const id = await conversation({ subject: "s", initialParticipants: [{ id: "bob" }] });
    await say(bob, id);
    const { conversation: got } = await ann.getConversation(id);
    expect((await ann.listConversations()).conversations).toEqual([got]);
    await map.stop({ keepStore: true });
    await start({ store: map.store });
    expect((await ann.listConversations()).conversations).toEqual([got]);
  });

  it("a list contains no conversations of other callers", async () => {
    const id = await conversation({ initialParticipants: [{ id: "bob" }] });
    expect((await eve.listConversations()).conversations).toEqual([]);
    expect((await bob.listConversations()).conversations.map((one) => one.id)).toEqual([id]);
    await bob.leaveConversation(id);
    expect((await bob.listConversations()).conversations).toEqual([]);
  });

  it("[MAP-METH-04] closing completes a conversation once, and records who closed it and why", async () => {
    const client = await map.client();
    const seen = gather(await client.subscribe({ eventTypes: ["mail.closed"] }));
    const id = await conversation();
    const { conversation: closed } = await ann.closeConversation(id, "done");
    expect(closed).toMatchObject({ status: "completed", closedAt: expect.any(Number) });
    await seen.count(1);
    expect(seen.events[0]?.data).toEqual({ conversationId: id, closedBy: "ann", reason: "done" });
    expect(await codeOf(ann.closeConversation(id))).toBe(10001);
  });

  it("only the initiator and moderators can close a conversation", async () => {
    const id = await conversation({
      initialParticipants: [
        { id: "bob", role: "worker" },
        { id: "cyd", role: "moderator" },
      ],
    });
    expect(await codeOf(bob.closeConversation(id))).toBe(10003);
    expect(await codeOf(eve.closeConversation(id))).toBe(10002);
    expect((await cyd.closeConversation(id)).conversation.status).toBe("completed");
    await restart({ mail: { rules: { closing: "members" } } });
    const open = await conversation({ initialParticipants: [{ id: "bob", role: "worker" }] });
    expect((await bob.closeConversation(open)).conversation.status).toBe("completed");
  });

  it("[MAP-ERRS-02] a closed conversation can be read but not written", async () => {
    const id = await conversation();
    const { turn } = await say(ann, id);
    await ann.closeConversation(id);
    expect(await codeOf(say(ann, id))).toBe(10001);
    expect(await codeOf(ann.createThread({ conversationId: id, rootTurnId: turn.id }))).toBe(10001);
    expect(await codeOf(bob.joinConversation({ conversationId: id }))).toBe(10001);
    expect(
      await codeOf(
        ann.inviteToConversation({ conversationId: id, participant: { id: "bob", role: "worker" } }),
      ),
    ).toBe(10001);
    expect((await ann.getConversation(id)).conversation.status).toBe("completed");
    expect((await ann.listTurns({ conversationId: id })).turns).toHaveLength(1);
    expect((await ann.replayConversation({ conversationId: id })).turns).toHaveLength(1);
    expect((await ann.leaveConversation(id)).success).toBe(true);
  });

  it("[MAP-CAPS-02, MAP-ERRS-11, MAP-OVER-01] with mail switched off its methods fail, and messages still arrive", async () => {
    await restart({ mail: false });
    const client = await map.client();
    expect(client.serverCapabilities).not.toHaveProperty("mail");
    const methods = [
      "create",
      "get",
      "list",
      "close",
      "join",
      "leave",
      "invite",
      "turn",
      "turns/list",
      "thread/create",
      "thread/list",
      "summary",
      "replay",
    ];
    for (const method of methods)
      expect(await codeOf(client.callExtension(`mail/${method}`, {}))).toBe(10010);
    const received: unknown[] = [];
    bob.onMessage(({ meta }) => {
      received.push(meta);
    });
    const result = await ann.sendWithMail({ agent: "bob" }, { x: 1 }, "conv-1");
    expect(result).toEqual({ messageId: expect.any(String), delivered: ["bob"] });
    await until(() => received.length > 0);
    expect(received).toEqual([{ mail: { conversationId: "conv-1" } }]);
  });
});

withBothPolicies("participants and permissions", () => {
  it("[MAP-METH-05, MAP-ERRS-05] a participant joins as assistant, and only once", async () => {
    const id = await conversation({ ...OPEN, initialParticipants: [{ id: "cyd" }] });
    const { participant, conversation: joined } = await bob.joinConversation({ conversationId: id });
    expect(participant).toMatchObject({
      id: "bob",
      type: "agent",
      role: "assistant",
      agentInfo: { agentId: "bob", name: "Bob", role: "researcher" },
    });
    expect(joined.participantCount).toBe(3);
    expect(await codeOf(bob.joinConversation({ conversationId: id }))).toBe(10004);
    expect(await codeOf(cyd.joinConversation({ conversationId: id }))).toBe(10004);
    await ann.inviteToConversation({ conversationId: id, participant: { id: "eve", role: "worker" } });
    expect(await codeOf(eve.joinConversation({ conversationId: id }))).toBe(10004);
    expect(await codeOf(eve.joinConversation({ conversationId: "conv-x" }))).toBe(10000);
  });

  it("a participant cannot join as initiator or moderator", async () => {
    const id = await conversation(OPEN);
    for (const role of ["initiator", "moderator"] as const) {
      expect(await codeOf(bob.joinConversation({ conversationId: id, role }))).toBe(10003);
    }
    expect((await bob.joinConversation({ conversationId: id, role: "observer" })).participant.role).toBe(
      "observer",
    );
  });

  it("[MAP-METH-06, MAP-ERRS-03] a former member has no access", async () => {
    const client = await map.client();
    const seen = gather(await client.subscribe({ eventTypes: ["mail.participant.left"] }));
    const id = await conversation({ initialParticipants: [{ id: "bob" }] });
    expect(await bob.leaveConversation(id, "enough")).toMatchObject({
      success: true,
      leftAt: expect.any(Number),
    });
    await seen.count(1);
    expect(seen.events[0]?.data).toEqual({ conversationId: id, participantId: "bob", reason: "enough" });
    expect(await codeOf(say(bob, id))).toBe(10002);
    expect(await codeOf(bob.getConversation(id))).toBe(10002);
    expect(await codeOf(bob.listTurns({ conversationId: id }))).toBe(10002);
    expect(await codeOf(bob.leaveConversation(id))).toBe(10002);
  });

  it("[MAP-OURS-05] leaving and joining again removes no restriction", async () => {
    const id = await conversation({ initialParticipants: [{ id: "bob", role: "observer" }] });
    await bob.leaveConversation(id);
    const { participant } = await bob.joinConversation({ conversationId: id, role: "worker" });
    expect(participant).toMatchObject({ role: "observer", permissions: { canSend: false } });
    expect(await codeOf(say(bob, id))).toBe(10003);
  });

  it("[MAP-METH-07, MAP-CONV-06, MAP-ERRS-04] inviting requires canInvite and a participant that is not a member", async () => {
    const id = await conversation({ initialParticipants: [{ id: "bob", role: "worker" }] });
    const invite = (who: AgentConnection, guest: string) =>
      who.inviteToConversation({
        conversationId: id,
        participant: { id: guest, role: "worker" },
        message: "come",
      });
    expect(await codeOf(invite(bob, "cyd"))).toBe(10003);
    expect(await codeOf(invite(eve, "cyd"))).toBe(10002);
    expect(await codeOf(invite(ann, "bob"))).toBe(10004);
    const { participant } = await invite(ann, "cyd");
    expect(participant).toMatchObject({
      id: "cyd",
      role: "worker",
      _meta: { invitedBy: "ann", message: "come" },
    });
    await cyd.leaveConversation(id);
    const again = await ann.inviteToConversation({
      conversationId: id,
      participant: { id: "cyd", role: "observer" },
    });
    expect(again.participant).toMatchObject({ role: "observer", permissions: { canSend: false } });
  });

  it("[MAP-OURS-06] a member cannot grant permissions that it lacks", async () => {
    const id = await conversation({
      initialParticipants: [
        { id: "bob", role: "worker", permissions: { canInvite: true, historyAccess: "from-join" } },
      ],
    });
    const invite = (permissions: Record<string, unknown>, role = "worker") =>
      codeOf(
        bob.inviteToConversation({
          conversationId: id,
          participant: { id: "cyd", role, permissions } as never,
        }),
      );
    expect(await invite({ historyAccess: "full" })).toBe(10003);
    expect(await invite({ historyAccess: "from-join", canRemove: true })).toBe(10003);
    expect(await invite({ historyAccess: "from-join", canSeeInternal: true })).toBe(10003);
    expect(await invite({ historyAccess: "from-join" }, "moderator")).toBe(10003);
    expect(await invite({ historyAccess: "from-join" })).toBeUndefined();
  });

  it("[MAP-METH-08, MAP-LEVL-03] an invited agent can write under its agent id without joining", async () => {
    const id = await conversation();
    await ann.inviteToConversation({ conversationId: id, participant: { id: "bob", role: "worker" } });
    expect((await say(bob, id)).turn.participant).toBe("bob");
  });

  it("a member without canSend can neither write nor be recorded, but its messages arrive", async () => {
    const id = await conversation({ initialParticipants: [{ id: "bob", permissions: { canSend: false } }] });
    expect(await codeOf(say(bob, id))).toBe(10003);
    const result = await bob.sendWithMail({ agent: "ann" }, { x: 1 }, id);
    expect(result).toMatchObject({
      delivered: ["ann"],
      _meta: { mail: { recorded: false, error: { code: 10003 } } },
    });
    expect((await ann.listTurns({ conversationId: id })).turns).toEqual([]);
  });

  it("creating threads requires canCreateThreads", async () => {
    const id = await conversation({
      initialParticipants: [{ id: "bob", permissions: { canCreateThreads: false } }],
    });
    const { turn } = await say(ann, id);
    expect(await codeOf(bob.createThread({ conversationId: id, rootTurnId: turn.id }))).toBe(10003);
  });

  it.each([
    ["canCreate", (who: AgentConnection) => who.createConversation()],
    ["canJoin", (who: AgentConnection, id: string) => who.joinConversation({ conversationId: id })],
    [
      "canInvite",
      (who: AgentConnection, id: string) =>
        who.inviteToConversation({ conversationId: id, participant: { id: "x", role: "worker" } }),
    ],
    ["canViewHistory", (who: AgentConnection, id: string) => who.listTurns({ conversationId: id })],
    ["canViewHistory", (who: AgentConnection, id: string) => who.replayConversation({ conversationId: id })],
    [
      "canViewHistory",
      (who: AgentConnection, id: string) => who.getConversationSummary({ conversationId: id }),
    ],
    [
      "canCreateThreads",
      (who: AgentConnection, id: string) => who.createThread({ conversationId: id, rootTurnId: "turn-x" }),
    ],
  ] as const)("[MAP-CAPS-03] the server's %s: false is enforced", async (capability, call) => {
    const id = await conversation({ initialParticipants: [{ id: "cyd", role: "moderator" }] });
    await map.stop({ keepStore: true });
    await start({ store: map.store, mail: { capabilities: { [capability]: false } } });
    expect(ann.serverCapabilities).toMatchObject({ mail: { [capability]: false } });
    expect(await codeOf(call(ann, id))).toBe(10003);
  });

  it("a participant is not granted capabilities that it declines", async () => {
    const client = await map.client({ capabilities: { mail: { canCreate: false } } as never });
    expect(client.serverCapabilities).toMatchObject({ mail: { canCreate: false, canJoin: true } });
    expect(await codeOf(client.createConversation())).toBe(10003);
  });

  it("[MAP-ERRS-06] removing a member requires canRemove and an existing member", async () => {
    const id = await conversation({
      initialParticipants: [{ id: "bob", permissions: { canRemove: true } }, { id: "cyd" }],
    });
    const remove = (who: AgentConnection, participantId: string) =>
      codeOf(who.callExtension("mail/leave", { conversationId: id, participantId, reason: "out" }));
    expect(await remove(cyd, "bob")).toBe(10003);
    expect(await remove(bob, "eve")).toBe(10005);
    expect(await remove(bob, "ann")).toBe(10003);
    expect(await remove(bob, "cyd")).toBeUndefined();
    expect(await codeOf(say(cyd, id))).toBe(10002);
  });

  it.each(["open", "invite"])(
    "a removed member can return by invitation only, without its former role (%s)",
    async (joinPolicy) => {
      const id = await conversation({
        metadata: { joinPolicy },
        initialParticipants: [{ id: "bob", role: "moderator" }],
      });
      await ann.callExtension("mail/leave", { conversationId: id, participantId: "bob", reason: "out" });
      expect(await codeOf(bob.joinConversation({ conversationId: id }))).toBe(10003);
      await map.stop({ keepStore: true });
      await start({ store: map.store });
      expect(await codeOf(bob.joinConversation({ conversationId: id }))).toBe(10003);
      await ann.inviteToConversation({ conversationId: id, participant: { id: "bob", role: "observer" } });
      expect(await codeOf(bob.getConversation(id))).toBeUndefined();
    },
  );
});
