/** Sessions that are lost and taken up again: what waits for them, what ends with them, and which token is good. */
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { VirtualClock } from "../kit/virtual-clock.js";
import { Harness, type ServerOptions, until } from "./harness.js";
import { OwnCarrier } from "./own-carrier.js";

let map: Harness;
afterEach(() => map.stop());

async function start(options: ServerOptions = {}): Promise<void> {
  map = await Harness.start(options);
}

describe("agents with a time of grace", () => {
  it("have all of it after each loss, and are gone when it is over", async () => {
    const clock = new VirtualClock();
    await start({ clock });
    const policy = { disconnectPolicy: { agentBehavior: "grace-period", gracePeriodMs: 60_000 } };
    const connect = { participantType: "agent", ...policy };
    const first = new OwnCarrier(map.map);
    const { result } = await first.ask("map/connect", connect);
    await first.ask("map/agents/register", { agentId: "a" });
    first.lost();
    clock.advance(10_000);
    const second = new OwnCarrier(map.map);
    const again = await second.ask("map/connect", { ...connect, resumeToken: result?.resumeToken });
    expect(again.result?.reconnected).toBe(true);
    clock.advance(55_000);
    expect(map.map.agents.find("", "a")).toBeDefined();
    second.lost();
    clock.advance(10_000);
    expect(map.map.agents.find("", "a")).toBeDefined();
    clock.advance(50_000);
    expect(map.map.agents.find("", "a")).toBeUndefined();
  });
});

describe("an agent", () => {
  it("that is being registered when its connection is lost leaves nobody behind", async () => {
    await start({ authenticator: devAuthenticator() });
    const lost = new OwnCarrier(map.map, "user:ann");
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

describe("a session that is taken up while its old connection is lost", () => {
  it("keeps its new token, and the old one stays worthless", async () => {
    await start();
    const first = new OwnCarrier(map.map);
    const { result } = await first.ask("map/connect", { participantType: "client" });
    const { store } = map;
    const commit = store.commit.bind(store);
    store.commit = (batch) => {
      const done = commit(batch);
      // Between the use of the token and its answer.
      first.lost();
      return done;
    };
    const connect = (resumeToken: unknown) =>
      new OwnCarrier(map.map).ask("map/connect", { participantType: "client", resumeToken });
    const second = await connect(result?.resumeToken);
    store.commit = commit;
    expect(second.result).toMatchObject({ reconnected: true, sessionId: result?.sessionId });
    expect((await connect(result?.resumeToken)).result?.reconnected).toBe(false);
    const third = await connect(second.result?.resumeToken);
    expect(third.result).toMatchObject({ reconnected: true, sessionId: result?.sessionId });
  });

  it("ends the subscriptions of the old connection, which may not know yet that it is dead", async () => {
    await start();
    const first = await map.raw();
    const { resumeToken } = await first.call("map/connect", { protocolVersion: 1 });
    await first.call("map/subscribe", {});
    const second = await map.raw({ connect: { resumeToken } });
    const { subscriptionId } = await second.call("map/subscribe", {});
    await second.call("map/agents/register", { agentId: "a" });
    await until(() => second.events().some(({ event }) => event.type === "agent_registered"));
    const told = second.frames.filter(({ method }) => method === "map/event");
    expect(told.every(({ params }) => params?.subscriptionId === subscriptionId)).toBe(true);
  });
});

describe("scopes", () => {
  it("end with the session that made them", async () => {
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

  it("are counted for each principal, over all its connections, and are not large", async () => {
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
