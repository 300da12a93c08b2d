import { describe, expect, it } from "vitest";
import { decideClose, decideCreate, decideInvite, decideJoin, decideLeave } from "./decide-members.js";
import { decideInterception, decideThread, decideTurn } from "./decide-turns.js";
import type { ConversationEntry } from "./entries.js";
import { MAP_ERRORS, MapError } from "./errors.js";
import { DEFAULT_RULES, type Moment } from "./moment.js";
import { permissionsFor, ROLE_DEFAULTS } from "./roles.js";
import { beginState, type ConversationState, evolve } from "./state.js";
import { callerOf, createdEntry, joinedEntry, turnEntryOf } from "./testing.js";
import { ROLES } from "./types.js";

let made = 0;
const moment: Moment = {
  now: 5,
  id: (prefix) => `${prefix}-${++made}`,
  identify: () => ({ type: "agent" }),
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
const ann = callerOf("ann");
const bob = callerOf("bob");
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

describe("the order of checks: the first that fails is the one that is reported", () => {
  const nothing = { ...turn, contentType: "foo", threadId: "thread-x", inReplyTo: "turn-x" };

  it("of a turn: member, closed, permission, content type, thread, replied turn", () => {
    const muted = bobWith({ canSend: false });
    expect(codeOf(() => decideTurn(conversation(closed), bob, nothing, moment))).toBe(10002);
    expect(codeOf(() => decideTurn(conversation(muted, closed), bob, nothing, moment))).toBe(10001);
    expect(codeOf(() => decideTurn(conversation(muted), bob, nothing, moment))).toBe(10003);
    expect(codeOf(() => decideTurn(conversation(), ann, nothing, moment))).toBe(10008);
    expect(codeOf(() => decideTurn(conversation(), ann, { ...nothing, contentType: "x-a" }, moment))).toBe(
      10007,
    );
    expect(codeOf(() => decideTurn(conversation(), ann, { ...turn, inReplyTo: "turn-x" }, moment))).toBe(
      10006,
    );
    expect(codeOf(() => decideTurn(conversation(), ann, turn, moment))).toBeUndefined();
  });

  it("of a join: capability, closed, member, role", () => {
    const barred = callerOf("bob", { capabilities: { canJoin: false } });
    expect(codeOf(() => decideJoin(conversation(closed), barred, { role: "moderator" }, moment))).toBe(10003);
    expect(codeOf(() => decideJoin(conversation(bobWith({}), closed), bob, {}, moment))).toBe(10001);
    expect(codeOf(() => decideJoin(conversation(bobWith({})), bob, { role: "moderator" }, moment))).toBe(
      10004,
    );
    expect(codeOf(() => decideJoin(conversation(), bob, { role: "initiator" }, moment))).toBe(10003);
    expect(codeOf(() => decideJoin(conversation(), bob, {}, moment))).toBeUndefined();
  });

  it("of a thread: capability, member, closed, permission, parent, root, depth", () => {
    const root = turnEntryOf("turn-1", "ann");
    const rules = { ...DEFAULT_RULES, maxThreadDepth: 0 };
    const at = { rootTurnId: "turn-x", parentThreadId: "thread-x" };
    const barred = callerOf("bob", { capabilities: { canCreateThreads: false } });
    expect(codeOf(() => decideThread(conversation(closed), barred, at, moment, rules))).toBe(10003);
    expect(codeOf(() => decideThread(conversation(closed), bob, at, moment, rules))).toBe(10002);
    expect(codeOf(() => decideThread(conversation(closed), ann, at, moment, rules))).toBe(10001);
    const kept = conversation(bobWith({ canCreateThreads: false }));
    expect(codeOf(() => decideThread(kept, bob, at, moment, rules))).toBe(10003);
    expect(codeOf(() => decideThread(conversation(), ann, at, moment, rules))).toBe(10007);
    expect(codeOf(() => decideThread(conversation(), ann, { rootTurnId: "turn-x" }, moment, rules))).toBe(
      10006,
    );
    const rooted = conversation(root);
    expect(codeOf(() => decideThread(rooted, ann, { rootTurnId: "turn-1" }, moment, rules))).toBe(10009);
    expect(
      codeOf(() => decideThread(rooted, ann, { rootTurnId: "turn-1" }, moment, DEFAULT_RULES)),
    ).toBeUndefined();
  });

  it("of closing: member, closed, role", () => {
    const close = (state: ConversationState, caller = bob) =>
      codeOf(() => decideClose(state, caller, undefined, moment, DEFAULT_RULES));
    expect(close(conversation(closed))).toBe(10002);
    expect(close(conversation(bobWith({}), closed))).toBe(10001);
    expect(close(conversation(bobWith({})))).toBe(10003);
    expect(close(conversation(), ann)).toBeUndefined();
    const paused: ConversationEntry = { t: "status", at: 1, status: "paused", by: "server" };
    expect(codeOf(() => decideTurn(conversation(paused), ann, turn, moment))).toBe(10001);
    expect(close(conversation(paused), ann)).toBeUndefined();
  });
});

describe("what an inviter can grant", () => {
  const invite = (
    inviter: ConversationEntry,
    participant: Parameters<typeof decideInvite>[2]["participant"],
  ) => codeOf(() => decideInvite(conversation(inviter), bob, { participant }, moment));

  it("is at most what it has", () => {
    const inviter = bobWith({ canInvite: true, historyAccess: "from-join" });
    const narrow = { historyAccess: "from-join" as const };
    expect(invite(inviter, { id: "cyd", permissions: narrow })).toBeUndefined();
    expect(invite(inviter, { id: "cyd" })).toBe(10003);
    expect(invite(inviter, { id: "cyd", permissions: { ...narrow, canRemove: true } })).toBe(10003);
    expect(invite(inviter, { id: "cyd", role: "moderator", permissions: narrow })).toBe(10003);
  });

  it("never includes the initiator's role, even for the initiator", () => {
    for (const role of ROLES) {
      const code = codeOf(() =>
        decideInvite(conversation(), ann, { participant: { id: "cyd", role } }, moment),
      );
      expect(code).toBe(role === "initiator" ? 10003 : undefined);
    }
    const again = () =>
      decideCreate("conv-1", ann, { initialParticipants: [{ id: "bob", role: "initiator" }] }, moment);
    expect(codeOf(again)).toBe(10003);
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
    const { participant } = decideJoin(state, bob, { role: "worker" }, moment);
    expect(participant).toMatchObject({ role: "observer", permissions: { canSend: false } });
  });

  it("is refused to a stranger where one must be invited, but open to a former member", () => {
    const state = beginState({
      ...createdEntry(1),
      conversation: { ...createdEntry(1).conversation, metadata: { joinPolicy: "invite" } },
    });
    evolve(state, joinedEntry("ann", "initiator"));
    expect(codeOf(() => decideJoin(state, bob, {}, moment))).toBe(10003);
    evolve(state, bobWith({}));
    evolve(state, { t: "left", at: 1, participantId: "bob", by: "bob" });
    expect(codeOf(() => decideJoin(state, bob, {}, moment))).toBeUndefined();
  });

  it("is by invitation for who was removed, under whichever of their ids, until they are invited again", () => {
    const state = conversation(bobWith({}));
    evolve(state, decideLeave(state, ann, { participantId: "bob" }, moment));
    expect(codeOf(() => decideJoin(state, bob, {}, moment))).toBe(10003);
    const also = { ...callerOf("bob-2"), identities: new Set(["bob-2", "bob"]) };
    expect(codeOf(() => decideJoin(state, also, {}, moment))).toBe(10003);
    evolve(state, decideInvite(state, ann, { participant: { id: "bob" } }, moment));
    evolve(state, decideLeave(state, bob, {}, moment));
    expect(codeOf(() => decideJoin(state, bob, {}, moment))).toBeUndefined();
  });

  it("is open to who left under one of their ids by the hand of another", () => {
    const both = { ...callerOf("bob"), identities: new Set(["bob", "bob-2"]) };
    const state = conversation(bobWith({}), joinedEntry("bob-2", "worker"));
    evolve(state, decideLeave(state, both, { participantId: "bob-2" }, moment));
    expect(codeOf(() => decideJoin(state, callerOf("bob-2"), {}, moment))).toBeUndefined();
  });
});

describe("removing a member", () => {
  const state = conversation(bobWith({ canRemove: true }), joinedEntry("cyd", "worker"));
  const leave = (caller: typeof ann, participantId: string) =>
    codeOf(() => decideLeave(state, caller, { participantId }, moment));

  it("needs canRemove, an existing member, and spares the initiator", () => {
    expect(leave(bob, "cyd")).toBeUndefined();
    expect(leave(callerOf("cyd"), "bob")).toBe(10003);
    expect(leave(bob, "nobody")).toBe(10005);
    expect(leave(bob, "ann")).toBe(10003);
    expect(leave(callerOf("cyd"), "cyd")).toBeUndefined();
  });
});

describe("interception", () => {
  const message = { messageId: "m1", payload: { a: 1 }, recipients: ["w1", "w2", "w1"], causedBy: [] };

  it("enrols directly addressed agents before the turn, within the sender's own rights", () => {
    const narrow = bobWith({ canInvite: true, historyAccess: "from-join", canCreateThreads: false });
    const entries = decideInterception(conversation(narrow), bob, message, moment, DEFAULT_RULES);
    expect(entries.map(({ t }) => t)).toEqual(["joined", "joined", "turn"]);
    expect(entries[0]).toMatchObject({
      participant: {
        id: "w1",
        role: "worker",
        permissions: { canSend: true, canCreateThreads: false, historyAccess: "from-join" },
      },
    });
  });

  it("enrols nobody without canInvite, when switched off, or who has left", () => {
    const count = (state: ConversationState, rules = DEFAULT_RULES, caller = bob) =>
      decideInterception(state, caller, message, moment, rules).length;
    expect(count(conversation(bobWith({})))).toBe(1);
    expect(count(conversation(), { ...DEFAULT_RULES, autoEnrol: false }, ann)).toBe(1);
    const gone = conversation(joinedEntry("w1", "worker"), {
      t: "left",
      at: 1,
      participantId: "w1",
      by: "ann",
    });
    expect(count(gone, DEFAULT_RULES, ann)).toBe(2);
  });
});

it("time never goes backwards inside a conversation", () => {
  const state = conversation(turnEntryOf("turn-1", "ann", { at: 900 }));
  expect(decideTurn(state, ann, turn, moment).turn.timestamp).toBe(900);
});
