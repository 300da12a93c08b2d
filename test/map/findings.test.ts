/** Smaller faults that were found in MAP. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Authenticator, devAuthenticator } from "../../src/auth/index.js";
import { systemClock } from "../../src/base/index.js";
import { capabilitiesOf } from "../../src/doors/map/settings.js";
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

async function restart(options: ServerOptions): Promise<void> {
  await map.stop();
  await start(options);
}

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

describe("the expiry of a credential", () => {
  it("[MAP-F-9] is in the response, and told a minute before", async () => {
    let now = 1_000_000;
    const waiting: { at: number; act: () => void }[] = [];
    const clock = {
      now: () => now,
      after: (delay: number, act: () => void) => {
        const entry = { at: now + delay, act };
        waiting.push(entry);
        return () => {
          const index = waiting.indexOf(entry);
          if (index >= 0) waiting.splice(index, 1);
        };
      },
    };
    const pass = (time: number) => {
      now += time;
      for (const entry of waiting.filter(({ at }) => at <= now)) {
        waiting.splice(waiting.indexOf(entry), 1);
        entry.act();
      }
    };
    const authenticator: Authenticator = {
      authenticate: async (token = "") => {
        const expiresAt = Number(token);
        if (expiresAt <= now) return { ok: false, reason: "expired", detail: "too old" };
        return { ok: true, principal: { role: "user", id: "ann", provider: "jwt", expiresAt } };
      },
    };
    await restart({ authenticator, clock: { ...systemClock, ...clock } });
    const expiresAt = now + 90_000;
    const raw = await map.raw({ connect: false });
    const auth = { method: "bearer", token: String(expiresAt) };
    const connected = await raw.call("map/connect", { protocolVersion: 1, auth });
    expect(connected).toMatchObject({ principal: { id: "user:ann", expiresAt } });
    pass(30_000);
    const { params } = await raw.find(({ method }) => method === "map/auth/expiring");
    expect(params).toEqual({ expiresAt, expiresInMs: 60_000 });
    const fresh = { method: "bearer", credential: String(expiresAt + 600_000) };
    expect(await raw.call("map/auth/refresh", fresh)).toMatchObject({
      success: true,
      principal: { expiresAt: expiresAt + 600_000 },
    });
    for (let minute = 0; minute < 20; minute++) {
      pass(30_000);
      await raw.call("mail/list").catch(() => {});
      if (raw.socket.readyState !== raw.socket.OPEN) break;
    }
    expect(raw.frames.filter(({ method }) => method === "map/auth/expiring")).toHaveLength(2);
  });
});

describe("[MAP-F-10]", () => {
  it("a thread whose first turn is hidden shows nothing", async () => {
    const [ann, bob] = [await login("user:ann"), await login("user:bob")];
    const conversationId = await create(ann, { initialParticipants: [{ id: "user:bob" }] });
    await bob.call("map/subscribe", { filter: { mail: { conversationId } } });
    const rootTurnId = await say(ann, conversationId, "root", { visibility: { type: "private" } });
    const { thread } = await ann.call("mail/thread/create", { conversationId, rootTurnId });
    const { id: threadId } = thread as { id: string };
    await say(ann, conversationId, "inside", { threadId });
    await say(ann, conversationId, "outside");
    const { turns } = await bob.call("mail/turns/list", { conversationId });
    expect(turns).toMatchObject([{ content: { text: "outside" } }]);
    await bob.find(({ params }) => JSON.stringify(params)?.includes("outside") === true);
    expect(JSON.stringify(bob.frames)).not.toContain("inside");
    expect(JSON.stringify(await bob.call("map/replay", { filter: { mail: {} } }))).not.toContain("inside");
    expect(JSON.stringify(await bob.call("mail/summary", { conversationId }))).not.toContain("inside");
    expect((await ann.call("mail/turns/list", { conversationId })).turns).toHaveLength(3);
  });

  it("only observers learn who connects", async () => {
    const [eve, root] = [await login("user:eve"), await login("admin:root")];
    for (const who of [eve, root]) await who.call("map/subscribe", {});
    await login("user:ann");
    await root.find(({ params }) => JSON.stringify(params)?.includes("user:ann") === true);
    await eve.call("map/agents/list");
    expect(JSON.stringify(eve.frames)).not.toContain("user:ann");
    expect(JSON.stringify(await eve.call("map/replay"))).not.toContain("user:ann");
  });

  it("the answer to an event id does not tell whether there is such an event", async () => {
    const [ann, eve] = [await login("user:ann"), await login("user:eve")];
    const conversationId = await create(ann);
    await say(ann, conversationId, "secret");
    const { events } = await ann.call("map/replay", { filter: { mail: {} } });
    const { eventId } = (events as { eventId: string }[])[1] ?? { eventId: "" };
    const other = eventId.replace(/-[0-9a-z]{4}$/, "-00zz");
    expect(await eve.call("map/replay", { afterEventId: eventId })).toEqual(
      await eve.call("map/replay", { afterEventId: other }),
    );
    expect(await codeOf(eve, "map/replay", { afterEventId: "evt-00000zzzzzz-0000" })).toBe(-32602);
  });

  it("a member token spawns no agents", async () => {
    await restart({ isReserved: (id) => id === "coder" });
    const coder = await login("member:coder");
    await coder.call("map/agents/register", { agentId: "coder" });
    expect(await codeOf(coder, "map/agents/spawn", {})).toBe(1003);
  });

  it("with map.isolate admins still observe every conversation, and users only their own space", async () => {
    await restart({ isolate: true });
    const [ann, eve, root] = [await login("user:ann"), await login("user:eve"), await login("admin:root")];
    await root.call("map/agents/register", { agentId: "twin" });
    const conversationId = await create(ann, {
      initialParticipants: [{ id: "twin" }],
      initialTurn: text("public"),
    });
    await say(ann, conversationId, "private", { visibility: { type: "private" } });
    await say(ann, conversationId, "for twin", { visibility: { type: "participants", ids: ["twin"] } });
    expect(await root.call("mail/list")).toMatchObject({ conversations: [{ id: conversationId }] });
    const { turns } = await root.call("mail/turns/list", { conversationId });
    expect(turns).toMatchObject([{ content: { text: "public" } }]);
    expect(turns).toHaveLength(1);
    expect(await codeOf(root, "mail/turn", { conversationId, ...text("no") })).toBe(10000);
    expect(JSON.stringify(await root.call("map/replay", { filter: { mail: {} } }))).toContain("public");
    expect(await eve.call("mail/list")).toMatchObject({ conversations: [] });
    expect(await codeOf(eve, "mail/get", { conversationId })).toBe(10000);
  });

  it("the id of a request goes back exactly or not at all", async () => {
    const ann = await login("user:ann");
    for (const id of ["9007199254740993", "1e400"]) {
      ann.send(`{"jsonrpc":"2.0","id":${id},"method":"mail/list"}`);
    }
    ann.send('{"jsonrpc":"2.0","id":1.5,"method":"mail/list"}');
    expect(await ann.find((frame) => frame.id === 1.5)).toHaveProperty("result");
    const refused = ann.frames.filter(({ error }) => error !== undefined);
    expect(refused).toMatchObject([
      { id: null, error: { code: -32600 } },
      { id: null, error: { code: -32600 } },
    ]);
  });

  it("mail/get says that recent turns were left out", async () => {
    const ann = await login("user:ann");
    const conversationId = await create(ann);
    for (let n = 0; n < 6; n++) await say(ann, conversationId, "x".repeat(900_000));
    const got = await ann.call("mail/get", { conversationId, include: { recentTurns: 6 } });
    expect(got).toMatchObject({ _meta: { truncated: ["recentTurns"] } });
    const few = await ann.call("mail/get", { conversationId, include: { recentTurns: 2 } });
    expect(few).not.toHaveProperty("_meta");
  });

  it("a message to an agent of the swarm is refused with the way that works", async () => {
    await restart({ isReserved: (id) => id === "coder" });
    const ann = await login("user:ann");
    const { error } = await ann.request("map/send", {
      to: "coder",
      meta: { mail: { conversationId: "conv-x" } },
    });
    expect(error?.message).toContain("mail/turn in the task's conversation");
  });
});

describe("differences from the protocol", () => {
  it("unknown fields of filters are errors, and stopped and resumed agents have the protocol's states", async () => {
    const ann = await login("user:ann");
    await ann.call("map/agents/register", { agentId: "a" });
    expect(await codeOf(ann, "map/agents/list", { filter: { capabilityId: "x" } })).toBe(-32602);
    expect(await codeOf(ann, "map/scopes/list", { filter: { name: "x" } })).toBe(-32602);
    expect(await codeOf(ann, "mail/list", { filter: { subject: "x" } })).toBe(-32602);
    const conversationId = await create(ann);
    expect(await codeOf(ann, "mail/turns/list", { conversationId, filter: { text: "x" } })).toBe(-32602);
    const states = [];
    for (const act of ["suspend", "resume", "stop"]) {
      const { agent } = await ann.call(`map/agents/${act}`, { agentId: "a" });
      states.push((agent as { state: string }).state);
    }
    expect(states).toEqual(["suspended", "idle", "stopped"]);
  });
});

it("[MAP-G-1] the capabilities of participants are a setting", async () => {
  await restart({ mail: { capabilities: capabilitiesOf(["canJoin", "canViewHistory"]) } });
  const raw = await map.raw({ connect: false });
  const auth = { method: "bearer", token: "user:ann" };
  expect(await raw.call("map/connect", { protocolVersion: 1, auth })).toMatchObject({
    capabilities: {
      mail: {
        canCreate: false,
        canJoin: true,
        canInvite: false,
        canViewHistory: true,
        canCreateThreads: false,
      },
    },
  });
  expect(await codeOf(raw, "mail/create")).toBe(10003);
});
