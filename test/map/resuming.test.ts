/**
 * Disconnected and resumed sessions: what is kept for them, what ends with them, and which token is valid.
 */
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { DirectTransport } from "./direct-transport.js";
import { Harness, type ServerOptions, until } from "./harness.js";

let map: Harness;
afterEach(() => map.stop());

async function start(options: ServerOptions = {}): Promise<void> {
  map = await Harness.start(options);
}

describe("agents with a grace period", () => {
  it("get the full period after each disconnection, and are removed when it ends", async () => {
    const clock = new VirtualClock();
    await start({ clock });
    const policy = { disconnectPolicy: { agentBehavior: "grace-period", gracePeriodMs: 60_000 } };
    const connect = { participantType: "agent", ...policy };
    const first = new DirectTransport(map.map);
    const { result } = await first.ask("map/connect", connect);
    await first.ask("map/agents/register", { agentId: "a" });
    first.lost();
    clock.advance(10_000);
    const second = new DirectTransport(map.map);
    const again = await second.ask("map/connect", { ...connect, resumeToken: result?.resumeToken });
    expect(again.result?.reconnected).toBe(true);
    clock.advance(55_000);
    expect(map.map.context.agents.find("", "a")).toBeDefined();
    second.lost();
    clock.advance(10_000);
    expect(map.map.context.agents.find("", "a")).toBeDefined();
    clock.advance(50_000);
    expect(map.map.context.agents.find("", "a")).toBeUndefined();
  });
});

describe("an agent", () => {
  it("that is registering when its connection is lost is not left behind", async () => {
    await start({ authenticator: devAuthenticator() });
    const lost = new DirectTransport(map.map, "user:ann");
    await lost.ask("map/connect", { disconnectPolicy: { agentBehavior: "unregister" } });
    const { store } = map;
    const commit = store.commit.bind(store);
    store.commit = (batch) => {
      store.commit = commit;
      lost.lost();
      return commit(batch);
    };
    lost.tell("map/agents/register", { agentId: "a" });
    const ann = await map.raw({ connect: { auth: { method: "bearer", token: "user:ann" } } });
    await ann.call("map/agents/register", { agentId: "b" });
    expect(await ann.call("map/agents/list")).toMatchObject({ agents: [{ id: "b" }] });
  });
});

describe("a session that is resumed while its old connection is lost", () => {
  it("keeps its new token, and the old one stays invalid", async () => {
    await start();
    const first = new DirectTransport(map.map);
    const { result } = await first.ask("map/connect", { participantType: "client" });
    const { store } = map;
    const commit = store.commit.bind(store);
    store.commit = (batch) => {
      const done = commit(batch);
      // Between the use of the token and the response.
      first.lost();
      return done;
    };
    const connect = (resumeToken: unknown) =>
      new DirectTransport(map.map).ask("map/connect", { participantType: "client", resumeToken });
    const second = await connect(result?.resumeToken);
    store.commit = commit;
    expect(second.result).toMatchObject({ reconnected: true, sessionId: result?.sessionId });
    expect((await connect(result?.resumeToken)).result?.reconnected).toBe(false);
    const third = await connect(second.result?.resumeToken);
    expect(third.result).toMatchObject({ reconnected: true, sessionId: result?.sessionId });
  });

  it("moves the subscriptions of the old connection, even if that is still open", async () => {
    await start();
    const first = await map.raw();
    const { resumeToken } = await first.call("map/connect", { protocolVersion: 1 });
    const { subscriptionId } = await first.call("map/subscribe", {});
    const before = first.events().length;
    const second = await map.raw({ connect: { resumeToken } });
    await second.call("map/agents/register", { agentId: "a" });
    await until(() => second.events().some(({ event }) => event.type === "agent_registered"));
    const told = second.frames.filter(({ method }) => method === "map/event");
    expect(told.every(({ params }) => params?.subscriptionId === subscriptionId)).toBe(true);
    expect(first.events()).toHaveLength(before);
  });
});

describe("scopes", () => {
  it("end with the session that created them", async () => {
    await start({ limits: { maxScopes: 2, resumeWindow: 1 } });
    const eve = await map.raw();
    for (const scopeId of ["one", "two"]) await eve.call("map/scopes/create", { scopeId });
    const ann = await map.raw();
    await ann.call("map/subscribe", { filter: { eventTypes: ["scope_deleted"] } });
    expect((await ann.request("map/scopes/create", {})).error?.code).toBe(4002);
    eve.socket.terminate();
    await once(eve.socket, "close");
    await until(() => ann.events().length === 2);
    await ann.call("map/scopes/create", { scopeId: "one" });
  });

  it("are limited per principal over all its connections, and in size", async () => {
    await start({ authenticator: devAuthenticator(), limits: { maxScopesEach: 1 } });
    const login = (token: string) => map.raw({ connect: { auth: { method: "bearer", token } } });
    const [eve, alsoEve, ann] = [await login("user:eve"), await login("user:eve"), await login("user:ann")];
    const large = await eve.request("map/scopes/create", { anything: "x".repeat(100_000) });
    expect(large.error?.code).toBe(-32602);
    await eve.call("map/scopes/create", {});
    expect((await alsoEve.request("map/scopes/create", {})).error?.code).toBe(4002);
    await ann.call("map/scopes/create", {});
  });
});

describe("subscriptions", () => {
  it("continue on the resumed session with the events in between, without repeating any", async () => {
    await start({ authenticator: devAuthenticator() });
    const bearer = { protocolVersion: 1, auth: { method: "bearer", token: "user:ann" } };
    const first = await map.raw({ connect: false });
    const { resumeToken } = await first.call("map/connect", bearer);
    const ann = await map.raw({ connect: bearer });
    const { conversation } = await ann.call("mail/create");
    const { id: conversationId } = conversation as { id: string };
    const say = (words: string) =>
      ann.call("mail/turn", { conversationId, contentType: "text", content: { text: words } });
    await first.call("mail/join", { conversationId }).catch(() => {});
    const { subscriptionId } = await first.call("map/subscribe", {
      filter: { eventTypes: ["mail.turn.added"] },
    });
    await first.call("map/subscribe", { options: { turnReceived: true } });
    await say("one");
    await first.find(({ method }) => method === "mail/turn.received");
    await first.find(({ method }) => method === "map/event");
    const closed = once(first.socket, "close");
    first.socket.close();
    await closed;
    await until(() => [...map.map.context.sessions.all()].some(({ connection }) => connection === undefined));
    await say("two");
    await say("three");
    const second = await map.raw({ connect: false });
    const again = await second.call("map/connect", { ...bearer, resumeToken });
    expect(again).toMatchObject({ reconnected: true, subscriptions: [subscriptionId, expect.any(String)] });
    await say("four");
    const wordsOf = (name: string): unknown[] =>
      second.frames
        .filter(({ method }) => method === name)
        .map(({ params }) => JSON.stringify(params).match(/"text":"(\w+)"/)?.[1]);
    await second.find(() => wordsOf("map/event").length >= 3 && wordsOf("mail/turn.received").length >= 3);
    expect(wordsOf("map/event")).toEqual(["two", "three", "four"]);
    expect(wordsOf("mail/turn.received")).toEqual(["two", "three", "four"]);
    expect(second.events().map(({ sequenceNumber }) => sequenceNumber)).toEqual([2, 3, 4]);
    const received = second.frames.find(({ method }) => method === "mail/turn.received");
    expect(received?.params).toMatchObject({ conversationId, turn: { content: { text: "two" } } });
  });
});
