/** The caller behind an id: session ids, invited ids, and restrictions that follow the caller. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { Harness, OPEN, type RawClient, text } from "./harness.js";

let map: Harness;
beforeEach(async () => {
  map = await Harness.start({ authenticator: devAuthenticator(), dev: false });
});
afterEach(async () => {
  await map.stop();
  expect(map.problems).toEqual([]);
});

interface Caller extends RawClient {
  sessionId: string;
}

async function login(id: string, agentId?: string): Promise<Caller> {
  const raw = await map.raw({ connect: false });
  const connect = {
    protocolVersion: 1,
    participantType: "client",
    auth: { method: "bearer", token: `user:${id}` },
  };
  const { sessionId } = await raw.call("map/connect", connect);
  if (agentId !== undefined) await raw.call("map/agents/register", { agentId });
  return Object.assign(raw, { sessionId: String(sessionId) });
}

async function create(by: RawClient, params: Record<string, unknown> = {}): Promise<string> {
  const { conversation } = await by.call("mail/create", params);
  return (conversation as { id: string }).id;
}

const codeOf = async (by: RawClient, method: string, params: Record<string, unknown>) =>
  (await by.request(method, params)).error?.code;

const wordsOf = (result: Record<string, unknown>) =>
  (result.turns as { content: { text: string } }[]).map(({ content }) => content.text);

describe("the id of a session", () => {
  it("[MAP-F-4] cannot be registered by anybody, neither during the session nor afterwards", async () => {
    const [alice, bob, carol] = [await login("alice"), await login("bob"), await login("carol")];
    const conversationId = await create(alice, {
      initialParticipants: [
        { id: bob.sessionId, role: "moderator" },
        { id: "user:carol", role: "observer" },
      ],
    });
    const secret = { ...text("for bob"), visibility: { type: "participants", ids: [bob.sessionId] } };
    await alice.call("mail/turn", { conversationId, ...secret });
    const steal = () => codeOf(carol, "map/agents/register", { agentId: bob.sessionId });
    expect(await steal()).toBe(3000);
    expect(await codeOf(bob, "map/agents/register", { agentId: bob.sessionId })).toBe(3000);
    expect(wordsOf(await bob.call("mail/turns/list", { conversationId }))).toEqual(["for bob"]);
    const ended = map.map.context.sessions.byId("", bob.sessionId);
    bob.socket.terminate();
    if (ended !== undefined) map.map.context.sessions.end(ended);
    expect(await steal()).toBe(3000);
    expect(wordsOf(await carol.call("mail/turns/list", { conversationId }))).toEqual([]);
    // Its owner returns under its own id, with the same rights.
    const again = await login("bob");
    expect(await again.call("mail/join", { conversationId })).toMatchObject({
      participant: { id: "user:bob", role: "assistant", permissions: { canInvite: false } },
    });
  });

  it("does not keep agents from returning under an id that the server chose", async () => {
    const first = await login("ann");
    const { agent } = await first.call("map/agents/register", {});
    const { id: agentId } = agent as { id: string };
    await first.call("map/agents/unregister", { agentId });
    const second = await login("ann");
    expect(await second.call("map/agents/register", { agentId })).toMatchObject({ agent: { id: agentId } });
    expect(await codeOf(await login("eve"), "map/agents/register", { agentId })).toBe(3000);
  });
});

describe("an id that is invited before anybody has it", () => {
  it("[MAP-F-5] is registered by the inviter's caller, or with the invitation", async () => {
    const [alice, carol, dora] = [await login("alice"), await login("carol"), await login("dora")];
    const made = await alice.call("mail/create", {
      initialParticipants: [{ id: "agent-reviewer" }, { id: "agent-writer" }, { id: "user:dora" }],
      initialTurn: text("secret"),
    });
    const { id: conversationId } = made.conversation as { id: string };
    const { invitations } = made._meta as { invitations: Record<string, string> };
    expect(Object.keys(invitations)).toEqual(["agent-reviewer", "agent-writer"]);
    expect(await codeOf(carol, "map/agents/register", { agentId: "agent-reviewer" })).toBe(3000);
    expect(
      await codeOf(carol, "map/agents/register", { agentId: "agent-reviewer", invitation: "guess" }),
    ).toBe(3000);
    expect(await codeOf(carol, "mail/turns/list", { conversationId })).toBe(10002);
    const invitation = invitations["agent-reviewer"];
    await dora.call("map/agents/register", { agentId: "agent-reviewer", invitation });
    expect(wordsOf(await dora.call("mail/turns/list", { conversationId }))).toEqual(["secret"]);
    // An invitation is used up.
    expect(await codeOf(carol, "map/agents/register", { agentId: "agent-reviewer", invitation })).toBe(3000);
    const helper = await login("alice", "agent-writer");
    expect(wordsOf(await helper.call("mail/turns/list", { conversationId }))).toEqual(["secret"]);
    const stored = map.store.conversations.owners("", ["agent-reviewer", "agent-writer"]);
    expect([...(await stored)]).toEqual([
      ["agent-reviewer", { principal: "user:dora", reserved: false }],
      ["agent-writer", { principal: "user:alice", reserved: false }],
    ]);
  });

  it("[MAP-F-5] is kept when mail/invite or the visibility of a turn names it, also over a restart", async () => {
    const alice = await login("alice");
    const conversationId = await create(alice);
    const invited = await alice.call("mail/invite", { conversationId, participant: { id: "late" } });
    expect(invited).toMatchObject({ _meta: { invitations: { late: expect.any(String) } } });
    const turn = { ...text("psst"), visibility: { type: "participants", ids: ["later", "late"] } };
    const told = await alice.call("mail/turn", { conversationId, ...turn });
    expect(Object.keys((told._meta as { invitations: object }).invitations)).toEqual(["later"]);
    await map.stop({ keepStore: true });
    map = await Harness.start({ authenticator: devAuthenticator(), dev: false, store: map.store });
    const carol = await login("carol");
    for (const agentId of ["late", "later"]) {
      expect(await codeOf(carol, "map/agents/register", { agentId })).toBe(3000);
    }
    const { invitations } = told._meta as { invitations: Record<string, string> };
    await carol.call("map/agents/register", { agentId: "later", invitation: invitations.later });
    // It was addressed, so it may join.
    expect(await carol.call("mail/join", { conversationId })).toMatchObject({ participant: { id: "later" } });
    expect(wordsOf(await carol.call("mail/turns/list", { conversationId }))).toEqual(["psst"]);
  });

  it("[MAP-F-5] is not named by another caller before it has an owner, because that caller's guest would be let in", async () => {
    const [alice, carol] = [await login("alice"), await login("carol")];
    const named = { type: "participants", ids: ["seen-later"] };
    const { conversation } = await carol.call("mail/create", { initialParticipants: [{ id: "reviewer" }] });
    const { id: foreign } = conversation as { id: string };
    await carol.call("mail/turn", { conversationId: foreign, ...text("x"), visibility: named });
    const conversationId = await create(alice, { initialTurn: text("secret") });
    const refused = [
      await alice.request("mail/create", { initialParticipants: [{ id: "reviewer" }] }),
      await alice.request("mail/invite", { conversationId, participant: { id: "reviewer" } }),
      await alice.request("mail/turn", { conversationId, ...text("psst"), visibility: named }),
    ];
    for (const { error } of refused)
      expect(error).toMatchObject({ code: 3000, message: /reserved by another caller/ });
    // Carol may name it again, and so may a member of the conversation in which she did.
    await carol.call("mail/invite", { conversationId: foreign, participant: { id: "user:alice" } });
    const visibility = { type: "participants", ids: ["reviewer", "seen-later"] };
    await alice.call("mail/turn", { conversationId: foreign, ...text("hi"), visibility });
    await create(carol, { initialParticipants: [{ id: "reviewer" }] });
    // Once it has an owner, everybody sees whose it is.
    await carol.call("map/agents/register", { agentId: "reviewer" });
    await alice.call("mail/invite", { conversationId, participant: { id: "reviewer" } });
  });

  it("an id that a caller owns needs no invitation", async () => {
    const [alice] = [await login("alice"), await login("bob", "coder")];
    const made = await alice.call("mail/create", { initialParticipants: [{ id: "coder" }] });
    expect(made).not.toHaveProperty("_meta");
  });
});

describe("what was decided about a caller", () => {
  it("[MAP-F-6] limited history stays limited under a new id", async () => {
    const [alice, dave] = [await login("alice"), await login("dave")];
    const conversationId = await create(alice, {
      ...OPEN,
      initialParticipants: [{ id: "user:dave", permissions: { historyAccess: "none" } }],
      initialTurn: text("old"),
    });
    await dave.call("mail/leave", { conversationId });
    await dave.call("map/agents/register", { agentId: "dave-2" });
    expect(await dave.call("mail/join", { conversationId })).toMatchObject({
      participant: { id: "dave-2", permissions: { historyAccess: "none" } },
    });
    expect(await codeOf(dave, "mail/turns/list", { conversationId })).toBe(10003);
  });

  it("[MAP-F-6] a muted agent's owner stays muted, in its role, when it joins as itself", async () => {
    const [alice, bot] = [await login("alice"), await login("bob", "bob-bot")];
    const conversationId = await create(alice, {
      ...OPEN,
      initialParticipants: [
        { id: "bob-bot", role: "worker", permissions: { canSend: false, historyAccess: "from-join" } },
        { id: "bob-unborn", role: "observer" },
      ],
    });
    expect(bot.answered).toBeGreaterThan(0);
    const bob = await login("bob");
    expect(await bob.call("mail/join", { conversationId, role: "assistant" })).toMatchObject({
      participant: {
        id: "user:bob",
        role: "worker",
        permissions: { canSend: false, historyAccess: "from-join", canCreateThreads: true },
      },
    });
    expect(await codeOf(bob, "mail/turn", { conversationId, ...text("hi") })).toBe(10003);
  });

  it("[MAP-F-6] a restriction of an id counts, even if it was registered after the invitation", async () => {
    const alice = await login("alice");
    const made = await alice.call("mail/create", {
      ...OPEN,
      initialParticipants: [{ id: "guest", role: "observer" }],
    });
    const { id: conversationId } = made.conversation as { id: string };
    const { invitations } = made._meta as { invitations: Record<string, string> };
    const agent = await login("bob");
    await agent.call("map/agents/register", { agentId: "guest", invitation: invitations.guest });
    const bob = await login("bob");
    expect(await bob.call("mail/join", { conversationId })).toMatchObject({
      participant: { id: "user:bob", role: "observer", permissions: { canSend: false } },
    });
  });

  it.each(["open", "invite"])("[MAP-F-6] a removed caller returns under no id (%s)", async (joinPolicy) => {
    const [alice, bot] = [await login("alice"), await login("bob", "bob-bot")];
    const conversationId = await create(alice, {
      metadata: { joinPolicy },
      initialParticipants: [{ id: "bob-bot" }],
    });
    const second = await login("bob", "bob-two");
    // A further id of a caller that is in the conversation may join it.
    await second.call("mail/join", { conversationId });
    await alice.call("mail/leave", { conversationId, participantId: "bob-bot" });
    // It goes with the id that it joined beside.
    expect(await codeOf(second, "mail/turns/list", { conversationId })).toBe(10002);
    for (const again of [bot, second, await login("bob"), await login("bob", "bob-three")]) {
      expect(await codeOf(again, "mail/join", { conversationId })).toBe(10003);
    }
    await alice.call("mail/invite", { conversationId, participant: { id: "user:bob" } });
    expect(await codeOf(second, "mail/turns/list", { conversationId })).toBeUndefined();
  });

  it("[MAP-F-6] the caller's own id stands for all of its ids when it is removed", async () => {
    const [alice, one, two] = [await login("alice"), await login("bob", "b1"), await login("bob", "b2")];
    const conversationId = await create(alice, { initialParticipants: [{ id: "b1" }, { id: "b2" }] });
    await alice.call("mail/leave", { conversationId, participantId: "user:bob" });
    for (const gone of [one, two]) expect(await codeOf(gone, "mail/get", { conversationId })).toBe(10002);
  });

  it("[MAP-F-6] a change of a member holds for the ids that joined beside it, and for all ids of a caller", async () => {
    const [alice, bob, bot] = [await login("alice"), await login("bob"), await login("bob", "bob-bot")];
    const conversationId = await create(alice, { initialParticipants: [{ id: "user:bob" }] });
    await bot.call("mail/join", { conversationId, _meta: { actAs: "bob-bot" } });
    const change = (participantId: string, permissions: object) =>
      alice.call("mailroom/member", { conversationId, participantId, permissions });
    const speak = (by: RawClient, actAs: string) =>
      codeOf(by, "mail/turn", { conversationId, ...text("hi"), _meta: { actAs } });
    const both = async () => [await speak(bob, "user:bob"), await speak(bot, "bob-bot")];
    expect(await both()).toEqual([undefined, undefined]);
    expect(await change("user:bob", { canSend: false })).toMatchObject({ participant: { id: "user:bob" } });
    expect(await both()).toEqual([10003, 10003]);
    await change("user:bob", { canSend: true });
    expect(await both()).toEqual([undefined, undefined]);
    // Bob's own id was invited: what is decided about the agent is not decided about it.
    await change("bob-bot", { canSend: false });
    expect(await both()).toEqual([undefined, 10003]);
    const bystander = await login("bob", "bob-three");
    expect(
      await bystander.call("mail/join", { conversationId, _meta: { actAs: "bob-three" } }),
    ).toMatchObject({
      participant: { permissions: { canSend: false } },
    });
    await alice.call("mailroom/member", { conversationId, participantId: "user:bob", role: "observer" });
    const { participants } = await alice.call("mail/get", {
      conversationId,
      include: { participants: true },
    });
    expect((participants as { id: string; role: string }[]).map(({ id, role }) => [id, role])).toEqual([
      ["user:alice", "initiator"],
      ["user:bob", "observer"],
      ["bob-bot", "observer"],
      ["bob-three", "observer"],
    ]);
  });

  it("[MAP-F-6] a change of the initiator's other ids leaves the initiator as it is", async () => {
    const [boss, alice, bob] = [await login("alice", "boss"), await login("alice"), await login("bob")];
    const conversationId = await create(boss, {
      initialParticipants: [{ id: "user:bob", role: "moderator" }],
    });
    await alice.call("mail/join", { conversationId });
    const mute = { participantId: "user:alice", permissions: { canSend: false } };
    await bob.call("mailroom/member", { conversationId, ...mute });
    expect(await codeOf(alice, "mail/turn", { conversationId, ...text("hi") })).toBe(10003);
    expect(await codeOf(boss, "mail/turn", { conversationId, ...text("hi") })).toBeUndefined();
  });

  it("[MAP-F-6] writing to another agent of a removed caller does not enroll it, whenever the caller got the removed id", async () => {
    const [alice] = [await login("alice", "boss"), await login("bob", "b2")];
    const made = await alice.call("mail/create", { initialParticipants: [{ id: "guest" }] });
    const { id: conversationId } = made.conversation as { id: string };
    const { invitations } = made._meta as { invitations: Record<string, string> };
    const guest = await login("bob");
    await guest.call("map/agents/register", { agentId: "guest", invitation: invitations.guest });
    await alice.call("mail/leave", { conversationId, participantId: "guest" });
    const note = { to: { agent: "b2" }, payload: 1, meta: { mail: { conversationId } } };
    expect(await alice.call("map/send", note)).toMatchObject({ _meta: { mail: { recorded: true } } });
    const { participants } = await alice.call("mail/get", {
      conversationId,
      include: { participants: true },
    });
    expect((participants as { id: string }[]).map(({ id }) => id)).toEqual(["boss", "guest"]);
  });

  it("[MAP-F-6] writing to another agent of a removed caller does not enroll it", async () => {
    const [alice] = [await login("alice", "boss"), await login("bob", "b1"), await login("bob", "b2")];
    const conversationId = await create(alice, { initialParticipants: [{ id: "b1" }] });
    await alice.call("mail/leave", { conversationId, participantId: "b1" });
    await alice.call("map/send", { to: { agent: "b2" }, payload: 1, meta: { mail: { conversationId } } });
    const { participants } = await alice.call("mail/get", {
      conversationId,
      include: { participants: true },
    });
    expect((participants as { id: string }[]).map(({ id }) => id)).toEqual(["boss", "b1"]);
  });
});

describe("joining without an invitation", () => {
  it("[MAP-METH-05] needs an address in the conversation or an id of a member, unless the policy is open", async () => {
    const [alice, bob, carol] = [await login("alice", "boss"), await login("bob"), await login("carol")];
    const conversationId = await create(alice, { initialTurn: text("old") });
    expect(await codeOf(bob, "mail/join", { conversationId })).toBe(10003);
    const turn = { ...text("psst"), visibility: { type: "participants", ids: ["user:bob"] } };
    await alice.call("mail/turn", { conversationId, ...turn });
    expect(await bob.call("mail/join", { conversationId })).toMatchObject({
      participant: { id: "user:bob", role: "assistant" },
    });
    expect(await codeOf(carol, "mail/join", { conversationId })).toBe(10003);
    const assistant = await login("alice", "clerk");
    expect(await assistant.call("mail/join", { conversationId, role: "worker" })).toMatchObject({
      participant: { id: "clerk", role: "worker" },
    });
    const open = await create(alice, OPEN);
    expect(await codeOf(carol, "mail/join", { conversationId: open })).toBeUndefined();
  });

  it("gives the history of the setting", async () => {
    await map.stop();
    const rules = { joining: "open", historyOnJoin: "from-join" } as const;
    map = await Harness.start({ authenticator: devAuthenticator(), dev: false, mail: { rules } });
    const [alice, bob] = [await login("alice"), await login("bob")];
    const conversationId = await create(alice, { initialTurn: text("old") });
    await bob.call("mail/join", { conversationId });
    await alice.call("mail/turn", { conversationId, ...text("new") });
    expect(wordsOf(await bob.call("mail/turns/list", { conversationId }))).toEqual(["new"]);
  });
});

it("[MAP-F-10] an agent cannot be called like a caller, the server or another agent's look-alike", async () => {
  const eve = await login("eve");
  const bad = ["system", "System", "coder ", " coder", "a\nb", "a\0b", "сoder", "ａgent", "code\u200br"];
  for (const agentId of bad) {
    expect([agentId, await codeOf(eve, "map/agents/register", { agentId })]).toEqual([agentId, -32602]);
  }
  for (const agentId of ["user:bob", "USER:bob", "Admin:root"]) {
    expect([agentId, await codeOf(eve, "map/agents/register", { agentId })]).toEqual([agentId, 1003]);
  }
  for (const agentId of ["кодер", "coder-2", "Systems", "名前"]) {
    expect([agentId, await codeOf(eve, "map/agents/register", { agentId })]).toEqual([agentId, undefined]);
  }
});
