/** Statuses of conversations and turns, roles that change, deletion, retention, and what version 1.1 and we add. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { systemClock } from "../../src/base/index.js";
import { Harness, type RawClient, type ServerOptions, text } from "./harness.js";

let map: Harness;
async function start(options: ServerOptions = {}): Promise<void> {
  map = await Harness.start({ authenticator: devAuthenticator(), dev: false, ...options });
}
beforeEach(() => start());
afterEach(async () => {
  await map.stop();
  expect(map.problems).toEqual([]);
});

const login = (token: string): Promise<RawClient> =>
  map.raw({ connect: { participantType: "client", auth: { method: "bearer", token } } });

async function create(by: RawClient, params: Record<string, unknown> = {}): Promise<string> {
  const { conversation } = await by.call("mail/create", params);
  return (conversation as { id: string }).id;
}

const codeOf = async (by: RawClient, method: string, params: Record<string, unknown> = {}) =>
  (await by.request(method, params)).error?.code;

async function say(by: RawClient, conversationId: string, words: string, more: object = {}): Promise<string> {
  const { turn } = await by.call("mail/turn", { conversationId, ...text(words), ...more });
  return (turn as { id: string }).id;
}

const statusOf = ({ conversation }: Record<string, unknown>) => (conversation as { status: string }).status;
const idsOf = (result: Record<string, unknown>) =>
  (result.conversations as { id: string }[]).map(({ id }) => id);
const wordsOf = (result: Record<string, unknown>) =>
  (result.turns as { content: { text: string } }[]).map(({ content }) => content.text);

describe("the status of a conversation", () => {
  it("[MAP-CONV-01] leaders pause, reopen, fail and archive it, and members are notified", async () => {
    const [ann, bob] = [await login("user:ann"), await login("user:bob")];
    const conversationId = await create(ann, { initialParticipants: [{ id: "user:bob" }] });
    await bob.call("map/subscribe", { filter: { mail: { conversationId } } });
    expect(await codeOf(bob, "mailroom/pause", { conversationId })).toBe(10003);
    expect(statusOf(await ann.call("mailroom/pause", { conversationId, reason: "lunch" }))).toBe("paused");
    expect((await bob.request("mail/turn", { conversationId, ...text("x") })).error).toMatchObject({
      code: 10001,
      data: { details: { status: "paused" } },
    });
    expect(await codeOf(ann, "mailroom/pause", { conversationId })).toBe(10001);
    expect(statusOf(await ann.call("mail/reopen", { conversationId }))).toBe("active");
    await say(bob, conversationId, "again");
    const failed = await ann.call("mail/close", { conversationId, status: "failed", reason: "no" });
    expect(failed).toMatchObject({ conversation: { status: "failed", closedAt: expect.any(Number) } });
    expect(await ann.call("mail/list", { filter: { status: ["failed"] } })).toMatchObject({
      conversations: [{ id: conversationId }],
    });
    expect(statusOf(await ann.call("mailroom/archive", { conversationId }))).toBe("archived");
    expect(wordsOf(await bob.call("mail/turns/list", { conversationId }))).toEqual(["again"]);
    expect(statusOf(await ann.call("mail/reopen", { conversationId }))).toBe("active");
    expect(await codeOf(ann, "mail/reopen", { conversationId })).toBe(10001);
    const statuses = (): unknown[] =>
      bob
        .events()
        .filter(({ event }) => event.type === "mailroom.conversation.status")
        .map(({ event }) => event.data.status);
    await bob.find(() => statuses().length === 5);
    expect(statuses()).toEqual(["paused", "active", "failed", "archived", "active"]);
    expect(bob.events().map(({ event }) => event.type)).toContain("mail.closed");
  });

  it("an admin archives and deletes conversations, and so does the initiator, but no other member", async () => {
    const [ann, bob, root] = [await login("user:ann"), await login("user:bob"), await login("admin:root")];
    const first = await create(ann, { initialParticipants: [{ id: "user:bob", role: "moderator" }] });
    const second = await create(ann, { initialTurn: text("secret words") });
    await bob.call("map/subscribe", { filter: { eventTypes: ["mailroom.conversation.deleted"] } });
    expect(statusOf(await root.call("mailroom/archive", { conversationId: first }))).toBe("archived");
    expect(await codeOf(bob, "mailroom/delete", { conversationId: first })).toBe(10003);
    expect(await ann.call("mailroom/delete", { conversationId: first })).toEqual({ deleted: true });
    expect(await root.call("mailroom/delete", { conversationId: second })).toEqual({ deleted: true });
    await bob.find(({ method }) => method === "map/event");
    for (const conversationId of [first, second]) {
      expect(await codeOf(ann, "mail/get", { conversationId })).toBe(10000);
    }
    expect(idsOf(await root.call("mail/list"))).toEqual([]);
    expect(JSON.stringify(await root.call("map/replay", { filter: { mail: {} } }))).not.toContain("secret");
    await map.stop({ keepStore: true });
    await start({ store: map.store });
    expect(await codeOf(await login("user:ann"), "mail/get", { conversationId: second })).toBe(10000);
  });

  it("retention archives and deletes closed conversations after the times of the settings", async () => {
    await map.stop();
    let now = Date.now();
    const rules = { archiveAfter: 1_000, deleteAfter: 10_000 };
    await start({ mail: { rules }, clock: { ...systemClock, now: () => now } });
    const ann = await login("user:ann");
    const [closed, open] = [await create(ann), await create(ann)];
    await ann.call("mail/close", { conversationId: closed });
    const sweep = () => map.map.context.conversations?.applyRetention();
    expect(await sweep()).toEqual({ archived: 0, deleted: 0 });
    now += 2_000;
    expect(await sweep()).toEqual({ archived: 1, deleted: 0 });
    expect(statusOf(await ann.call("mail/get", { conversationId: closed }))).toBe("archived");
    now += 11_000;
    expect(await sweep()).toEqual({ archived: 0, deleted: 1 });
    expect(idsOf(await ann.call("mail/list"))).toEqual([open]);
  });
});

it("[MAP-EVNT-01] the author of a turn reports its progress", async () => {
  const [ann, bob] = [await login("user:ann"), await login("user:bob")];
  const conversationId = await create(ann, { initialParticipants: [{ id: "user:bob" }] });
  await bob.call("map/subscribe", { filter: { eventTypes: ["mail.turn.updated"] } });
  const turnId = await say(ann, conversationId, "wait", { status: "pending" });
  const update = (by: RawClient, status: string) =>
    codeOf(by, "mailroom/turn/update", { conversationId, turnId, status });
  expect(await update(bob, "complete")).toBe(10003);
  expect(await update(ann, "streaming")).toBeUndefined();
  expect(await update(ann, "complete")).toBeUndefined();
  expect(await update(ann, "failed")).toBe(-32602);
  await bob.find(() => bob.events().length === 2);
  expect(bob.events().map(({ event }) => event.data)).toEqual([
    { conversationId, turnId, status: "streaming" },
    { conversationId, turnId, status: "complete" },
  ]);
  expect(await bob.call("mail/turns/list", { conversationId })).toMatchObject({
    turns: [{ id: turnId, status: "complete" }],
  });
});

it("[MAP-CONV-06] leaders change roles and permissions of members, as far as they have them", async () => {
  const [ann, bob, cyd] = [await login("user:ann"), await login("user:bob"), await login("user:cyd")];
  const conversationId = await create(ann, {
    initialParticipants: [{ id: "user:bob" }, { id: "user:cyd" }],
    initialTurn: text("old"),
  });
  const change = (by: RawClient, participantId: string, more: object) =>
    by.request("mailroom/member", { conversationId, participantId, ...more });
  expect((await change(bob, "user:cyd", { role: "observer" })).error?.code).toBe(10003);
  expect((await change(ann, "user:eve", { role: "worker" })).error?.code).toBe(10005);
  expect((await change(ann, "user:cyd", { role: "initiator" })).error?.code).toBe(10003);
  expect((await change(ann, "user:ann", { role: "worker" })).error?.code).toBe(10003);
  await change(ann, "user:bob", { role: "moderator" });
  const muted = await change(bob, "user:cyd", {
    permissions: { canSend: false, historyAccess: "from-join" },
  });
  expect(muted.result).toMatchObject({
    participant: { role: "assistant", permissions: { canSend: false, canCreateThreads: true } },
  });
  expect(await codeOf(cyd, "mail/turn", { conversationId, ...text("x") })).toBe(10003);
  await say(ann, conversationId, "new", { visibility: { type: "role", roles: ["moderator"] } });
  expect(wordsOf(await bob.call("mail/turns/list", { conversationId }))).toEqual(["old", "new"]);
  expect(wordsOf(await cyd.call("mail/turns/list", { conversationId }))).toEqual(["old"]);
  // Leaving and joining again sheds nothing.
  await cyd.call("mail/leave", { conversationId });
  expect(await cyd.call("mail/join", { conversationId })).toMatchObject({
    participant: { permissions: { canSend: false, historyAccess: "from-join" } },
  });
  await map.stop({ keepStore: true });
  await start({ store: map.store });
  const again = await login("user:bob");
  expect(await again.call("mail/get", { conversationId, include: { participants: true } })).toMatchObject({
    participants: [{}, { id: "user:bob", role: "moderator" }, { id: "user:cyd" }],
  });
});

describe("lists", () => {
  it("[MAP-METH-03] begin with the newest on request, page by page", async () => {
    const ann = await login("user:ann");
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.push(await create(ann));
    const seen: string[] = [];
    for (let cursor: unknown; ; ) {
      const page = await ann.call("mail/list", {
        order: "desc",
        limit: 2,
        ...(cursor !== undefined && { cursor }),
      });
      seen.push(...idsOf(page));
      cursor = page.nextCursor;
      if (page.hasMore !== true) break;
    }
    expect(seen).toEqual(ids.toReversed());
    expect(idsOf(await (await login("admin:root")).call("mail/list", { order: "desc", limit: 1 }))).toEqual([
      ids[4],
    ]);
  });
});

it("[MAP-LEVL-05] an admin lets a user observe conversations without being a member, and takes it back", async () => {
  const [ann, eve, root] = [await login("user:ann"), await login("user:eve"), await login("admin:root")];
  const conversationId = await create(ann, { initialTurn: text("public") });
  await say(ann, conversationId, "private", { visibility: { type: "private" } });
  expect(await codeOf(eve, "mailroom/observers/grant", { principal: "user:eve" })).toBe(1003);
  expect(await codeOf(root, "mailroom/observers/grant", { principal: "member:coder" })).toBe(-32602);
  expect(await codeOf(eve, "mail/turns/list", { conversationId })).toBe(10002);
  expect(await root.call("mailroom/observers/grant", { principal: "user:eve" })).toEqual({
    observers: ["user:eve"],
  });
  expect(wordsOf(await eve.call("mail/turns/list", { conversationId }))).toEqual(["public"]);
  expect(await codeOf(eve, "mail/turn", { conversationId, ...text("x") })).toBe(10002);
  await map.stop({ keepStore: true });
  await start({ store: map.store });
  const [again, admin] = [await login("user:eve"), await login("admin:root")];
  expect(idsOf(await again.call("mail/list"))).toEqual([conversationId]);
  await admin.call("mailroom/observers/revoke", { principal: "user:eve" });
  expect(await codeOf(again, "mail/turns/list", { conversationId })).toBe(10002);
});

it("extensions are announced, and mail/presence says who is connected", async () => {
  const raw = await map.raw({ connect: false });
  const auth = { method: "bearer", token: "user:ann" };
  const { capabilities } = await raw.call("map/connect", { protocolVersion: 1, auth });
  expect(capabilities).toMatchObject({
    extensions: [
      { uri: "urn:map:ext:mail:1", version: "1.1.0" },
      { uri: "urn:mailroom:ext:conversations:1", version: "1.0.0" },
    ],
  });
  const bob = await login("user:bob");
  const conversationId = await create(raw, { initialParticipants: [{ id: "user:bob" }, { id: "user:cyd" }] });
  const { participants, _meta } = await bob.call("mail/presence", { conversationId });
  expect(_meta).toBeUndefined();
  expect(participants).toMatchObject([
    { participantId: "user:ann", role: "initiator", presence: "online" },
    { participantId: "user:bob", presence: "online" },
    { participantId: "user:cyd", presence: "offline" },
  ]);
  expect(await codeOf(await login("user:eve"), "mail/presence", { conversationId })).toBe(10002);
});

it("read cursors count the turns of others that are newer, under any id of the caller", async () => {
  const [ann, bob] = [await login("user:ann"), await login("user:bob")];
  const conversationId = await create(ann, { initialParticipants: [{ id: "user:bob" }] });
  const ids: string[] = [];
  for (const words of ["one", "two", "three"]) ids.push(await say(ann, conversationId, words));
  await say(ann, conversationId, "private", { visibility: { type: "private" } });
  await say(bob, conversationId, "mine");
  expect(await bob.call("mailroom/unread")).toEqual({ unread: [{ conversationId, unread: 3 }] });
  expect(await bob.call("mailroom/read", { conversationId, turnId: ids[1] })).toEqual({
    conversationId,
    unread: 1,
  });
  // A cursor never moves back.
  expect(await bob.call("mailroom/read", { conversationId, turnId: ids[0] })).toMatchObject({ unread: 1 });
  const other = await login("user:bob");
  expect(await other.call("mailroom/unread", { conversationIds: [conversationId] })).toMatchObject({
    unread: [{ unread: 1 }],
  });
  expect(await codeOf(await login("user:eve"), "mailroom/read", { conversationId, turnId: ids[0] })).toBe(
    10002,
  );
  expect(await codeOf(bob, "mailroom/read", { conversationId, turnId: "turn-x" })).toBe(10006);
});

it("search finds what the caller may see, newest first, in one or in all of its conversations", async () => {
  const [ann, bob, eve] = [await login("user:ann"), await login("user:bob"), await login("user:eve")];
  const first = await create(ann, { initialParticipants: [{ id: "user:bob" }] });
  const second = await create(ann);
  for (let n = 0; n < 150; n++) await say(ann, first, n % 50 === 0 ? `Zebra ${n}` : `horse ${n}`);
  await say(ann, first, "zebra private", { visibility: { type: "private" } });
  await ann.call("mail/turn", { conversationId: second, contentType: "data", content: { animal: "ZEBRA" } });
  const search = async (by: RawClient, more: object = {}): Promise<string[]> => {
    const found: string[] = [];
    for (let cursor: unknown; ; ) {
      const page = await by.call("mailroom/search", {
        query: "zebra",
        ...more,
        ...(cursor !== undefined && { cursor }),
      });
      found.push(...(page.turns as { content: unknown }[]).map(({ content }) => JSON.stringify(content)));
      cursor = page.nextCursor;
      if (page.hasMore !== true) return found;
    }
  };
  const own = ["Zebra 100", "Zebra 50", "Zebra 0"].map((words) => JSON.stringify({ text: words }));
  expect(await search(bob)).toEqual(own);
  expect(await search(bob, { limit: 1 })).toEqual(own);
  expect(await search(bob, { conversationId: first, limit: 2 })).toEqual(own);
  expect(await search(ann, { limit: 2 })).toEqual(['{"animal":"ZEBRA"}', '{"text":"zebra private"}', ...own]);
  expect(await search(eve)).toEqual([]);
  expect(await codeOf(eve, "mailroom/search", { query: "zebra", conversationId: first })).toBe(10002);
  expect(await codeOf(ann, "mailroom/search", { query: "zebra", cursor: "x" })).toBe(-32602);
});

it("[MAP-EVNT-02] fromRoles matches the role of the author, and to may be an array", async () => {
  const [ann, bob, cyd] = [await login("user:ann"), await login("user:bob"), await login("user:cyd")];
  await bob.call("map/agents/register", { agentId: "b", role: "tester" });
  await cyd.call("map/agents/register", { agentId: "c" });
  const conversationId = await create(ann, {
    initialParticipants: [{ id: "b" }, { id: "c", role: "worker" }],
  });
  await ann.call("map/subscribe", {
    filter: { eventTypes: ["mail.turn.added"], fromRoles: ["tester", "worker"] },
  });
  await say(ann, conversationId, "no");
  await say(bob, conversationId, "tester");
  await say(cyd, conversationId, "worker");
  await ann.find(() => ann.events().length === 2);
  expect(ann.events().map(({ event }) => (event.data.turn as { participant: string }).participant)).toEqual([
    "b",
    "c",
  ]);
  expect(
    await ann.call("map/send", { to: [{ agent: "b" }, "c", { agents: ["b"] }], payload: 1 }),
  ).toMatchObject({
    delivered: ["b", "c"],
  });
  const { error } = await ann.request("map/send", { to: 5 });
  expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("an array of these") });
});
