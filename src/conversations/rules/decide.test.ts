import { describe, expect, it } from "vitest";
import { actorOf, createdEntry, joinedEntry, turnEntryOf } from "../../../test/map/builders.js";
import { defaultsOf } from "../../base/index.js";
import { type ConversationRules, conversationSettings } from "../settings.js";
import { decideClose, decideCreate, decideInvite, decideJoin, decideLeave } from "./decide-members.js";
import { decideInterception, decideThread, decideTurn } from "./decide-turns.js";
import type { DecisionContext } from "./decision-context.js";
import type { ConversationEntry } from "./entries.js";
import { MAP_ERRORS, MapError } from "./errors.js";
import { permissionsFor, ROLE_DEFAULTS } from "./roles.js";
import { beginState, type ConversationState, evolve } from "./state.js";
import { PARTICIPANT_ROLES } from "./types.js";

let made = 0;
const RULES = { ...defaultsOf(conversationSettings), joining: "open" } as const;

const context: DecisionContext = {
  now: 5,
  id: (prefix) => `${prefix}-${++made}`,
  identify: () => ({ type: "agent" }),
  reservation: () => undefined,
};

function conversation(...entries: ConversationEntry[]): ConversationState {
  const state = beginState(createdEntry(1));
  evolve(state, joinedEntry("ann", "initiator"));
  for (const entry of entries) evolve(state, entry);
  return state;
}

function codeOf(act: () => unknown): number | undefined {
  try {
    act();
  } catch (error) {
    if (error instanceof MapError) return MAP_ERRORS[error.code].code;
    throw error;
  }
  return undefined;
}

const closed: ConversationEntry = { t: "closed", at: 1, by: "ann" };
const turn = { contentType: "text", content: { text: "hello" } };
const ann = actorOf("ann");
const bob = actorOf("bob");
const bobWith = (permissions: Parameters<typeof permissionsFor>[1]) =>
  joinedEntry("bob", "worker", permissionsFor("worker", permissions));

describe("role defaults", () => {
  it.each([
    ["initiator", true, true, true, true, true],
    ["moderator", true, true, true, true, true],
    ["assistant", true, false, false, true, false],
    ["worker", true, false, false, true, false],
    ["observer", false, false, false, false, false],
  ] as const)("of the %s", (role, canSend, canInvite, canRemove, canCreateThreads, canSeeInternal) => {
    expect(ROLE_DEFAULTS[role]).toEqual({
      canSend,
      canObserve: true,
      canInvite,
      canRemove,
      canCreateThreads,
      canSeeInternal,
      historyAccess: "full",
    });
  });
});

describe("the first failing check is reported", () => {
  const nothing = { ...turn, contentType: "foo", threadId: "thread-x", inReplyTo: "turn-x" };

  it("of a turn in the order member, closed, permission, content type, thread, replied turn", () => {
    const muted = bobWith({ canSend: false });
    expect(codeOf(() => decideTurn(conversation(closed), bob, nothing, context))).toBe(10002);
    expect(codeOf(() => decideTurn(conversation(muted, closed), bob, nothing, context))).toBe(10001);
    expect(codeOf(() => decideTurn(conversation(muted), bob, nothing, context))).toBe(10003);
    expect(codeOf(() => decideTurn(conversation(), ann, nothing, context))).toBe(10008);
    expect(codeOf(() => decideTurn(conversation(), ann, { ...nothing, contentType: "x-a" }, context))).toBe(
      10007,
    );
    expect(codeOf(() => decideTurn(conversation(), ann, { ...turn, inReplyTo: "turn-x" }, context))).toBe(
      10006,
    );
    expect(codeOf(() => decideTurn(conversation(), ann, turn, context))).toBeUndefined();
  });

  it("of a join in the order capability, closed, member, role", () => {
    const barred = actorOf("bob", { capabilities: { canJoin: false } });
    expect(
      codeOf(() => decideJoin(conversation(closed), barred, { role: "moderator" }, context, RULES)),
    ).toBe(10003);
    expect(codeOf(() => decideJoin(conversation(bobWith({}), closed), bob, {}, context, RULES))).toBe(10001);
    expect(
      codeOf(() => decideJoin(conversation(bobWith({})), bob, { role: "moderator" }, context, RULES)),
    ).toBe(10004);
    expect(codeOf(() => decideJoin(conversation(), bob, { role: "initiator" }, context, RULES))).toBe(10003);
    expect(codeOf(() => decideJoin(conversation(), bob, {}, context, RULES))).toBeUndefined();
  });

  it("of a thread in the order capability, member, closed, permission, parent, root, depth", () => {
    const root = turnEntryOf("turn-1", "ann");
    const rules = { ...RULES, maxThreadDepth: 0 };
    const at = { rootTurnId: "turn-x", parentThreadId: "thread-x" };
    const barred = actorOf("bob", { capabilities: { canCreateThreads: false } });
    expect(codeOf(() => decideThread(conversation(closed), barred, at, context, rules))).toBe(10003);
    expect(codeOf(() => decideThread(conversation(closed), bob, at, context, rules))).toBe(10002);
    expect(codeOf(() => decideThread(conversation(closed), ann, at, context, rules))).toBe(10001);
    const kept = conversation(bobWith({ canCreateThreads: false }));
    expect(codeOf(() => decideThread(kept, bob, at, context, rules))).toBe(10003);
    expect(codeOf(() => decideThread(conversation(), ann, at, context, rules))).toBe(10007);
    expect(codeOf(() => decideThread(conversation(), ann, { rootTurnId: "turn-x" }, context, rules))).toBe(
      10006,
    );
    const rooted = conversation(root);
    expect(codeOf(() => decideThread(rooted, ann, { rootTurnId: "turn-1" }, context, rules))).toBe(10009);
    expect(codeOf(() => decideThread(rooted, ann, { rootTurnId: "turn-1" }, context, RULES))).toBeUndefined();
  });

  it("of closing in the order member, closed, role", () => {
    const close = (state: ConversationState, actor = bob) =>
      codeOf(() => decideClose(state, actor, {}, context, RULES));
    expect(close(conversation(closed))).toBe(10002);
    expect(close(conversation(bobWith({}), closed))).toBe(10001);
    expect(close(conversation(bobWith({})))).toBe(10003);
    expect(close(conversation(), ann)).toBeUndefined();
    const paused: ConversationEntry = { t: "status", at: 1, status: "paused", by: "server" };
    expect(codeOf(() => decideTurn(conversation(paused), ann, turn, context))).toBe(10001);
    expect(close(conversation(paused), ann)).toBeUndefined();
  });
});

describe("what an inviter can grant", () => {
  const invite = (
    inviter: ConversationEntry,
    participant: Parameters<typeof decideInvite>[2]["participant"],
  ) => codeOf(() => decideInvite(conversation(inviter), bob, { participant }, context));

  it("is at most what it has", () => {
    const inviter = bobWith({ canInvite: true, historyAccess: "from-join" });
    const narrow = { historyAccess: "from-join" as const };
    expect(invite(inviter, { id: "cyd", permissions: narrow })).toBeUndefined();
    expect(invite(inviter, { id: "cyd" })).toBe(10003);
    expect(invite(inviter, { id: "cyd", permissions: { ...narrow, canRemove: true } })).toBe(10003);
    expect(invite(inviter, { id: "cyd", role: "moderator", permissions: narrow })).toBe(10003);
  });

  it("never includes the initiator's role, even for the initiator", () => {
    for (const role of PARTICIPANT_ROLES) {
      const code = codeOf(() =>
        decideInvite(conversation(), ann, { participant: { id: "cyd", role } }, context),
      );
      expect(code).toBe(role === "initiator" ? 10003 : undefined);
    }
    const again = () =>
      decideCreate("conv-1", ann, { initialParticipants: [{ id: "bob", role: "initiator" }] }, context);
    expect(codeOf(again)).toBe(10003);
  });
});

describe("joining without an invitation", () => {
  it("is allowed or not as the conversation says, otherwise as the setting says", () => {
    const rules = { ...RULES, joining: "invite" } as const;
    const join = (metadata: object) => () => {
      const state = beginState({
        ...createdEntry(1),
        conversation: { ...createdEntry(1).conversation, metadata: { ...metadata } },
      });
      evolve(state, joinedEntry("ann", "initiator"));
      return decideJoin(state, bob, {}, context, rules);
    };
    expect(codeOf(join({}))).toBe(10003);
    expect(codeOf(join({ joinPolicy: "open" }))).toBeUndefined();
  });

  it("gives the history access of the setting", () => {
    const accessWith = (rules: ConversationRules) =>
      decideJoin(conversation(), bob, {}, context, rules).participant.permissions.historyAccess;
    expect(accessWith(RULES)).toBe("full");
    expect(accessWith({ ...RULES, historyOnJoin: "from-join" })).toBe("from-join");
  });
});

describe("coming back", () => {
  it("keeps role and permissions", () => {
    const state = conversation(joinedEntry("bob", "observer", permissionsFor("observer")), {
      t: "left",
      at: 1,
      participantId: "bob",
      by: "bob",
    });
    const { participant } = decideJoin(state, bob, { role: "worker" }, context, RULES);
    expect(participant).toMatchObject({ role: "observer", permissions: { canSend: false } });
  });

  it("by a new participant fails where invitations are required, but a former member may join", () => {
    const state = beginState({
      ...createdEntry(1),
      conversation: { ...createdEntry(1).conversation, metadata: { joinPolicy: "invite" } },
    });
    evolve(state, joinedEntry("ann", "initiator"));
    expect(codeOf(() => decideJoin(state, bob, {}, context, RULES))).toBe(10003);
    evolve(state, bobWith({}));
    evolve(state, { t: "left", at: 1, participantId: "bob", by: "bob" });
    expect(codeOf(() => decideJoin(state, bob, {}, context, RULES))).toBeUndefined();
  });

  it("requires an invitation after removal, under any id of the actor", () => {
    const state = conversation(bobWith({}));
    for (const entry of decideLeave(state, ann, { participantId: "bob" }, context)) evolve(state, entry);
    expect(codeOf(() => decideJoin(state, bob, {}, context, RULES))).toBe(10003);
    const also = { ...actorOf("bob-2"), identities: new Set(["bob-2", "bob"]) };
    expect(codeOf(() => decideJoin(state, also, {}, context, RULES))).toBe(10003);
    evolve(state, decideInvite(state, ann, { participant: { id: "bob" } }, context));
    for (const entry of decideLeave(state, bob, {}, context)) evolve(state, entry);
    expect(codeOf(() => decideJoin(state, bob, {}, context, RULES))).toBeUndefined();
  });

  it("is allowed after leaving under another id of the same actor", () => {
    const both = { ...actorOf("bob"), identities: new Set(["bob", "bob-2"]) };
    const state = conversation(bobWith({}), joinedEntry("bob-2", "worker"));
    for (const entry of decideLeave(state, both, { participantId: "bob-2" }, context)) evolve(state, entry);
    expect(codeOf(() => decideJoin(state, actorOf("bob-2"), {}, context, RULES))).toBeUndefined();
  });
});

describe("removing a member", () => {
  const state = conversation(bobWith({ canRemove: true }), joinedEntry("cyd", "worker"));
  const leave = (actor: typeof ann, participantId: string) =>
    codeOf(() => decideLeave(state, actor, { participantId }, context));

  it("requires canRemove and an existing member, and excludes the initiator", () => {
    expect(leave(bob, "cyd")).toBeUndefined();
    expect(leave(actorOf("cyd"), "bob")).toBe(10003);
    expect(leave(bob, "nobody")).toBe(10005);
    expect(leave(bob, "ann")).toBe(10003);
    expect(leave(actorOf("cyd"), "cyd")).toBeUndefined();
  });
});

describe("interception", () => {
  const message = { messageId: "m1", payload: { a: 1 }, recipients: ["w1", "w2", "w1"], causedBy: [] };

  it("enrolls directly addressed agents before the turn, with at most the sender's permissions", () => {
    const narrow = bobWith({ canInvite: true, historyAccess: "from-join", canCreateThreads: false });
    const entries = decideInterception(conversation(narrow), bob, message, context, RULES);
    expect(entries.map(({ t }) => t)).toEqual(["joined", "joined", "turn"]);
    expect(entries[0]).toMatchObject({
      participant: {
        id: "w1",
        role: "worker",
        permissions: { canSend: true, canCreateThreads: false, historyAccess: "from-join" },
      },
    });
  });

  it("enrolls no agent without canInvite, when switched off, or that has left", () => {
    const count = (state: ConversationState, rules: ConversationRules = RULES, actor = bob) =>
      decideInterception(state, actor, message, context, rules).length;
    expect(count(conversation(bobWith({})))).toBe(1);
    expect(count(conversation(), { ...RULES, autoEnroll: false }, ann)).toBe(1);
    const gone = conversation(joinedEntry("w1", "worker"), {
      t: "left",
      at: 1,
      participantId: "w1",
      by: "ann",
    });
    expect(count(gone, RULES, ann)).toBe(2);
  });
});

it("timestamps never decrease within a conversation", () => {
  const state = conversation(turnEntryOf("turn-1", "ann", { at: 900 }));
  expect(decideTurn(state, ann, turn, context).turn.timestamp).toBe(900);
});
