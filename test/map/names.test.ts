/** Ownership of agent ids, and parents of agents. */
import { afterEach, describe, expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { openStore } from "../../src/store/index.js";
import { Harness, type RawClient, text } from "./harness.js";

let map: Harness;
afterEach(() => map.stop());

const authenticator = devAuthenticator();
const login = (token: string, more: object = {}): Promise<RawClient> =>
  map.raw({ connect: { auth: { method: "bearer", token }, ...more } });

describe("a parent", () => {
  it("of another principal gets no children, even if they named it before it registered", async () => {
    map = await Harness.start({ authenticator, dev: false });
    const eve = await login("user:eve");
    await eve.call("map/agents/register", { agentId: "spy", parent: "planner" });
    const ann = await login("user:ann");
    // The same principal's child may register first.
    await ann.call("map/agents/register", { agentId: "helper", parent: "planner" });
    const alsoAnn = await login("user:ann");
    await alsoAnn.call("map/agents/register", { agentId: "planner" });
    const { conversation } = await alsoAnn.call("mail/create", { initialTurn: text("the secret") });
    const { id: conversationId } = conversation as { id: string };
    const meta = { mail: { conversationId } };
    for (const to of [{ children: true }, { descendants: true }]) {
      expect(await alsoAnn.call("map/send", { to, payload: "team", meta })).toMatchObject({
        delivered: ["helper"],
      });
    }
    expect(await ann.call("map/send", { to: { siblings: true }, payload: "us" })).toMatchObject({
      delivered: [],
    });
    expect((await eve.request("mail/turns/list", { conversationId })).error?.code).toBe(10002);
    expect((await ann.call("mail/turns/list", { conversationId })).turns).toHaveLength(3);
    const seen = await eve.call("map/agents/get", { agentId: "planner", include: { descendants: true } });
    expect(seen).toMatchObject({ agent: { children: ["helper"] }, descendants: [{ id: "helper" }] });
    const { edges } = await eve.call("map/structure/graph");
    expect(edges).toEqual([{ from: "planner", to: "helper", type: "parent-child" }]);
  });
});

describe("the name of an agent of the swarm", () => {
  it("belongs to its member token, even if another principal had it before", async () => {
    const store = await openStore({ path: ":memory:" });
    map = await Harness.start({ authenticator, store });
    const before = await login("user:eve");
    await before.call("map/agents/register", { agentId: "coder" });
    const { resumeToken } = await before.call("map/connect", { protocolVersion: 1 });
    await map.stop({ keepStore: true });

    map = await Harness.start({ authenticator, store, isReserved: (name) => name === "coder" });
    // She cannot return under it either.
    const eve = await login("user:eve", { resumeToken });
    expect(await eve.call("map/agents/list")).toMatchObject({ agents: [] });
    const coder = await login("member:coder");
    await coder.call("map/agents/register", { agentId: "coder" });
    await map.stop({ keepStore: true });

    map = await Harness.start({ authenticator, store });
    const after = await login("user:eve");
    expect((await after.request("map/agents/register", { agentId: "coder" })).error?.code).toBe(3000);
  });
});
