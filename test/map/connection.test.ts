/** Connecting, authentication, sessions, live messages, subscriptions and replay. */
import { ClientConnection } from "@multi-agent-protocol/sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AuthResult } from "../../src/auth/result.js";
import { codeOf, gather, Harness, text, until } from "./harness.js";

const authenticator = {
  async authenticate(bearer: string | undefined): Promise<AuthResult> {
    const [role, id] = bearer?.split("-") ?? [];
    return (role === "user" || role === "admin" || role === "member" || role === "agent") && id !== undefined
      ? { ok: true, principal: { role, id, provider: "token" } }
      : { ok: false, reason: "unknown", detail: "invalid API key" };
  },
};

let map: Harness;
beforeEach(async () => {
  map = await Harness.start();
});
afterEach(async () => {
  await map.stop();
  expect(map.problems).toEqual([]);
});

async function secured(): Promise<void> {
  await map.stop();
  map = await Harness.start({ authenticator, dev: false });
}

describe("connection and core", () => {
  it("[MAP-CAPS-01] the SDK's client connects and receives all six mail flags", async () => {
    const client = await map.client({ name: "lab" });
    expect(client.serverCapabilities).toMatchObject({
      mail: {
        enabled: true,
        canCreate: true,
        canJoin: true,
        canInvite: true,
        canViewHistory: true,
        canCreateThreads: true,
      },
    });
    const { client: bare } = await map.bareClient();
    expect((await bare.connect()).protocolVersion).toBe(1);
  });

  it("a request id is returned unchanged", async () => {
    const raw = await map.raw();
    for (const id of ["7", 7, 7.5, ""]) {
      expect((await raw.request("map/agents/list", undefined, id)).id).toBe(id);
    }
  });

  it("invalid JSON is -32700 with id null, and the connection stays open", async () => {
    const raw = await map.raw();
    raw.send("{nonsense");
    const frame = await raw.find(({ error }) => error !== undefined);
    expect(frame).toMatchObject({ id: null, error: { code: -32700 } });
    expect(await raw.call("map/agents/list")).toEqual({ agents: [] });
  });

  it("batches, non-object params and inherited property names are rejected", async () => {
    const raw = await map.raw();
    raw.send('[{"jsonrpc":"2.0","id":1,"method":"map/agents/list"}]');
    expect(await raw.find(({ id }) => id === null)).toMatchObject({ error: { code: -32600 } });
    expect((await raw.request("map/agents/list", [])).error?.code).toBe(-32602);
    for (const method of ["constructor", "toString", "__proto__", "hasOwnProperty", ""]) {
      expect((await raw.request(method, {})).error?.code).toBe(-32601);
    }
  });

  it("every method but map/connect fails before it", async () => {
    const raw = await map.raw({ connect: false });
    expect((await raw.request("mail/create", {})).error).toMatchObject({
      code: 1000,
      data: { category: "auth", details: { name: "AUTH_REQUIRED" } },
    });
    expect((await raw.request("map/connect", { protocolVersion: 2 })).error).toMatchObject({
      code: -32602,
      data: { details: { supportedVersions: [1] } },
    });
  });

  it("a socket that stays silent is closed", async () => {
    await map.stop();
    map = await Harness.start({ limits: { handshakeTimeout: 50 } });
    const socket = await map.socket();
    const code = await new Promise((resolve) => socket.once("close", resolve));
    expect(code).toBe(1008);
  });

  it("both ways in which the SDK sends a credential work", async () => {
    await secured();
    const one = await map.client({ auth: { method: "bearer", token: "user-ann" } });
    expect(await one.listConversations()).toMatchObject({ conversations: [] });
    const { client: other } = await map.bareClient();
    const result = await other.connect({ auth: { method: "api-key", credential: "user-ann" } });
    expect(result.participantId).toBe("user:ann");
    expect(result.principal).toEqual({ id: "user:ann" });
  });

  it("without a credential the server requests authentication, and other methods fail with 1000", async () => {
    await secured();
    const { client } = await map.bareClient();
    expect((await client.connect()).authRequired).toMatchObject({
      required: true,
      methods: ["bearer", "api-key"],
    });
    expect(await codeOf(client.listAgents())).toBe(1000);
    expect(await client.authenticate({ method: "bearer", credential: "wrong" })).toMatchObject({
      success: false,
      error: { code: "invalid_credentials" },
    });
    expect(await client.authenticate({ method: "mtls", credential: "user-ann" })).toMatchObject({
      success: false,
      error: { code: "method_not_supported" },
    });
    expect(await client.authenticate({ method: "bearer", credential: "user-ann" })).toMatchObject({
      success: true,
      participantId: "user:ann",
    });
    expect(await client.listAgents()).toEqual({ agents: [] });
  });

  it("a wrong token rejects the connection with 1001", async () => {
    await secured();
    expect(
      await codeOf(ClientConnection.connect(map.url, { auth: { method: "bearer", token: "bad" } })),
    ).toBe(1001);
    // A remote swarm's token cannot use MAP (decision A5).
    const agent = ClientConnection.connect(map.url, { auth: { method: "bearer", token: "agent-desk" } });
    expect(await codeOf(agent)).toBe(1001);
  });

  it("agents register under the requested id if it is free", async () => {
    const { agent } = await map.bareAgent({ name: "a" });
    await agent.connect({ agentId: "coder" });
    expect(agent.agentId).toBe("coder");
    const { agent: other } = await map.bareAgent({ name: "b" });
    expect(await codeOf(other.connect({ agentId: "coder" }))).toBe(3000);
    const { agent: named } = await map.bareAgent({ name: "c" });
    await named.connect();
    expect(named.agentId).toMatch(/^[0-9a-f-]{36}$/);
    const { agent: liar } = await map.bareAgent();
    expect(await codeOf(liar.connect({ agentId: "user:ann" }))).toBe(1003);
  });

  it("an agent's id belongs to the principal that registered it first", async () => {
    await secured();
    const register = async (token: string, agentId: string) => {
      const raw = await map.raw({ connect: { auth: { method: "bearer", token } } });
      const { error } = await raw.request("map/agents/register", { agentId });
      raw.socket.terminate();
      return error?.code;
    };
    expect(await register("user-ann", "researcher")).toBeUndefined();
    await map.stop({ keepStore: true });
    map = await Harness.start({ authenticator, dev: false, store: map.store });
    expect(await register("user-bob", "researcher")).toBe(3000);
    expect(await register("user-ann", "researcher")).toBeUndefined();
    expect(await register("member-coder", "other")).toBe(1003);
  });

  it("a disconnected session can be resumed once with its token", async () => {
    const { client } = await map.bareClient();
    const { sessionId } = await client.connect();
    const token = (await client.disconnect()) ?? "";
    const { client: back } = await map.bareClient();
    expect(await back.connect({ resumeToken: token })).toMatchObject({ sessionId, reconnected: true });
    const { client: again } = await map.bareClient();
    const second = await again.connect({ resumeToken: token });
    expect(second.reconnected).toBe(false);
    expect(second.sessionId).not.toBe(sessionId);
  });

  it("a session whose socket was killed is resumed with its agents", async () => {
    const { agent, socket } = await map.bareAgent({ name: "a" });
    await agent.connect({ agentId: "coder" });
    const { sessionId } = agent;
    const token = await tokenOf(agent.sessionId);
    socket.terminate();
    const raw = await map.raw({ connect: false });
    const result = await raw.call("map/connect", { participantType: "agent", resumeToken: token });
    expect(result).toMatchObject({
      sessionId,
      reconnected: true,
      ownedAgents: ["coder"],
      reclaimedAgents: [{ id: "coder" }],
    });
    expect(result.resumeToken).not.toBe(token);
  });

  it("the client's last token survives a killed socket, and a restart of the server", async () => {
    const { client, socket } = await map.bareClient();
    const { sessionId } = await client.connect();
    const token = client.getResumeToken();
    socket.terminate();
    await map.stop({ keepStore: true });
    map = await Harness.start({ store: map.store });
    const { client: back } = await map.bareClient();
    expect(await back.connect({ ...(token !== undefined && { resumeToken: token }) })).toMatchObject({
      sessionId,
      reconnected: true,
    });
  });

  it("a session cannot be resumed by another principal", async () => {
    await secured();
    const ann = await map.raw({ connect: false });
    const { resumeToken, sessionId } = await ann.call("map/connect", {
      auth: { method: "bearer", token: "user-ann" },
    });
    const bob = await map.raw({ connect: false });
    const taken = await bob.call("map/connect", {
      resumeToken,
      auth: { method: "bearer", token: "user-bob" },
    });
    expect(taken.reconnected).toBe(false);
    expect(taken.sessionId).not.toBe(sessionId);
  });

  it("a message arrives once, with payload and meta unchanged and a valid sender address", async () => {
    const [a, b] = [await map.agent("a"), await map.agent("b")];
    const received: unknown[] = [];
    b.onMessage((message) => {
      received.push(message);
    });
    const payload = { deep: [{ x: null }, "…"] };
    const meta = {
      priority: "high",
      correlationId: "c1",
      mail: { conversationId: "none", extra: { y: 1 } },
      _meta: { z: 1 },
    };
    const result = await a.send({ agent: "b" }, payload, meta as never);
    expect(result.delivered).toEqual(["b"]);
    await until(() => received.length > 0);
    expect(received).toEqual([
      { id: result.messageId, from: "a", to: { agent: "b" }, timestamp: expect.any(Number), payload, meta },
    ]);
  });

  it("a reply reaches the sender with the correlation id", async () => {
    const [a, b] = [await map.agent("a"), await map.agent("b")];
    b.onMessage((message) => {
      void b.reply(message, { pong: 1 });
    });
    const replies: { meta?: { correlationId?: string }; payload?: unknown }[] = [];
    a.onMessage((message) => {
      replies.push(message);
    });
    const { messageId } = await a.send({ agent: "b" }, { ping: 1 });
    await until(() => replies.length > 0);
    expect(replies).toMatchObject([{ payload: { pong: 1 }, meta: { correlationId: messageId } }]);
  });

  it("unknown agents are 2001; disconnected agents are no error and receive the message on return", async () => {
    const a = await map.agent("a");
    expect(await codeOf(a.send({ agent: "nobody" }, {}))).toBe(2001);
    expect(await codeOf(a.send({ scope: "nowhere" }, {}))).toBe(2002);
    expect(await codeOf(a.send({ nonsense: 1 } as never, {}))).toBe(-32602);
    const b = await map.raw({ connect: false });
    const { resumeToken } = await b.call("map/connect", { participantType: "agent" });
    await b.call("map/agents/register", { agentId: "b" });
    b.socket.terminate();
    await until(() => map.map.context.agents.find("", "b")?.session.connection === undefined);
    expect((await a.send({ agent: "b" }, { held: 1 })).delivered).toEqual([]);
    const back = await map.raw({ connect: false });
    await back.call("map/connect", { participantType: "agent", resumeToken });
    const message = await back.find(({ method }) => method === "map/message");
    expect(message.params).toMatchObject({ message: { payload: { held: 1 } } });
  });

  it("a hundred simultaneous events arrive in order, numbered without a gap", async () => {
    const client = await map.client();
    const gathered = gather(await client.subscribe({ eventTypes: ["mail.turn.added"] }));
    const raw = await map.raw();
    const { conversation } = await raw.call("mail/create", {});
    const { id: conversationId } = conversation as { id: string };
    const watcher = await map.raw({ connect: { participantType: "client" } });
    await watcher.call("map/subscribe", { filter: { eventTypes: ["mail.turn.added"] } });
    for (let n = 0; n < 100; n++) void raw.request("mail/turn", { conversationId, ...text(`${n}`) });
    await gathered.count(100);
    const words = gathered.events.map(
      ({ data }) => (data.turn as { content: { text: string } }).content.text,
    );
    expect(words).toEqual(Array.from({ length: 100 }, (_, n) => `${n}`));
    await until(() => watcher.events().length === 100);
    expect(watcher.events().map(({ sequenceNumber }) => sequenceNumber)).toEqual(
      Array.from({ length: 100 }, (_, n) => n + 1),
    );
    expect(await client.listAgents()).toEqual({ agents: [] });
  });

  it("a subscription without a filter does not affect other clients", async () => {
    const client = await map.client();
    const everything = gather(await client.subscribe());
    const some = gather(await client.subscribe({ eventTypes: ["agent_registered"] }));
    await map.agent("a");
    await map.agent("b");
    await some.count(2);
    expect(everything.types().filter((type) => type === "agent_registered")).toHaveLength(2);
    expect(some.types()).toEqual(["agent_registered", "agent_registered"]);
  });

  it("no event precedes the response that opened its subscription", async () => {
    const talker = await map.raw();
    for (let round = 0; round < 20; round++) {
      const raw = await map.raw({ connect: { participantType: "client" } });
      for (let n = 0; n < 5; n++)
        talker.send(JSON.stringify({ jsonrpc: "2.0", id: `${round}.${n}`, method: "mail/create" }));
      const { subscriptionId } = await raw.call("map/subscribe", {});
      await talker.call("mail/create", {});
      await until(() => raw.events().length > 0);
      const opened = raw.frames.findIndex(({ result }) => result?.subscriptionId === subscriptionId);
      const first = raw.frames.findIndex(({ method }) => method === "map/event");
      expect(first).toBeGreaterThan(opened);
      raw.socket.terminate();
    }
  });

  it("with replayFrom, missed events come first, in one sequence with live ones", async () => {
    const talker = await map.raw();
    const create = () => talker.call("mail/create", {});
    const raw = await map.raw({ connect: { participantType: "client" } });
    await create();
    const { events } = await raw.call("map/replay", { filter: { mail: {} } });
    const first = (events as { eventId: string }[])[0]?.eventId;
    await create();
    const writing = Promise.all([create(), create(), create()]);
    await raw.call("map/subscribe", { filter: { mail: {} }, replayFrom: first });
    await writing;
    await create();
    await until(() => raw.events().length >= 11);
    expect(raw.events().map(({ sequenceNumber }) => sequenceNumber)).toEqual(
      Array.from({ length: 11 }, (_, n) => n + 1),
    );
    expect((await raw.request("map/subscribe", { replayFrom: "evt-nonsense" })).error?.code).toBe(-32602);
  });

  it("replay pages through missed events and shows the same as live delivery", async () => {
    const client = await map.client();
    const live = gather(await client.subscribe());
    const [a, b] = [await map.agent("a"), await map.agent("b")];
    const { conversation } = await a.createConversation({ initialParticipants: [{ id: "b" }] });
    for (let n = 0; n < 5; n++) await b.recordTurn({ conversationId: conversation.id, ...text(`${n}`) });
    await a.recordTurn({
      conversationId: conversation.id,
      ...text("secret"),
      visibility: { type: "private" },
    });
    await b.recordTurn({ conversationId: conversation.id, ...text("last") });
    const isLast = ({ data }: { data: Record<string, unknown> }) =>
      (data.turn as { content?: { text?: string } } | undefined)?.content?.text === "last";
    await until(() => live.events.some(isLast));
    const [first, ...rest] = live.events;
    const replayed: string[] = [];
    let after = first?.id ?? "";
    for (;;) {
      const page = await client.replay({ afterEventId: after, limit: 3 });
      expect(page.events.length).toBeGreaterThan(0);
      replayed.push(...page.events.map(({ eventId }) => eventId));
      after = replayed.at(-1) ?? "";
      if (!page.hasMore) break;
    }
    expect(replayed).toEqual(rest.map(({ id }) => id));
    expect(await codeOf(client.replay({ afterEventId: "evt-zzz" }))).toBe(-32602);
    expect(await codeOf(client.replay({ afterEventId: "evt-00000000zzz-0000" }))).toBe(-32602);
    const since = async (fromTimestamp: number) =>
      (await client.replay({ fromTimestamp, limit: 1000 })).events.map(({ eventId }) => eventId);
    expect(await since(Date.now() + 100_000)).toEqual([]);
    expect(await since(0)).toEqual(expect.arrayContaining(replayed));
  });

  it("core events that are no longer kept are reported as expired", async () => {
    await map.stop();
    map = await Harness.start({ limits: { eventRing: 2 } });
    const client = await map.client();
    const seen = gather(await client.subscribe());
    for (const id of ["a", "b", "c", "d", "e", "f"]) await map.agent(id);
    await seen.count(12);
    const error = await client.replay({ afterEventId: seen.events[0]?.id ?? "" }).catch((caught) => caught);
    expect(error).toMatchObject({ code: -32602, data: { details: { reason: "event_expired" } } });
  });

  it("a session cannot end another session's subscription", async () => {
    const owner = await map.raw({ connect: { participantType: "client" } });
    const { subscriptionId } = await owner.call("map/subscribe", { filter: { mail: {} } });
    const other = await map.raw();
    expect((await other.request("map/unsubscribe", { subscriptionId })).error?.code).toBe(-32602);
    await other.call("mail/create", {});
    await until(() => owner.events().length >= 2);
    expect(await owner.call("map/unsubscribe", { subscriptionId })).toMatchObject({
      unsubscribed: true,
      subscription: { id: subscriptionId },
    });
  });
});

/** The SDK's agent does not expose its token; it is read from the wire. */
async function tokenOf(sessionId: string | null): Promise<string> {
  const session = [...map.map.context.sessions.inSpace("")].find(({ id }) => id === sessionId);
  if (session === undefined) throw new Error("no such session");
  return map.map.context.sessions.renew(session);
}
