/** Mail that is lent to a remote agent. */
import { afterEach, describe, expect, it } from "vitest";
import type { Batch } from "../../src/journal/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import { BridgeHarness, delivery } from "./bridge-harness.js";
import { DirectTransport } from "./direct-transport.js";
import { type RawClient, until } from "./harness.js";

let bridge: BridgeHarness;
afterEach(() => bridge.stop());

const writesRow = (kind: string) => (batch: Batch) => batch.rows?.some((row) => row.kind === kind) === true;

/** Intercepts one commit. */
function onCommit(isIt: (batch: Batch) => boolean, act: () => void): Promise<void> {
  const { store } = bridge;
  const commit = store.commit.bind(store);
  return new Promise((resolve) => {
    store.commit = async (batch) => {
      if (!isIt(batch)) return commit(batch);
      store.commit = commit;
      resolve();
      act();
      return commit(batch);
    };
  });
}

const isLent = ({ appends }: Batch): boolean => appends.some(({ data }) => data.includes('"lent"'));

describe("lent mail", () => {
  it("[MAP-OURS-24] is sent again to a session that is resumed while its old socket is half-open", async () => {
    bridge = await BridgeHarness.start();
    const first = await bridge.coder();
    const { resumeToken } = await first.call("map/connect", { protocolVersion: 1 });
    const posted = await bridge.mailroom.user("ann").post("write a test");
    const lent = await delivery(first, "write a test");
    // The server has not noticed that the first connection is dead.
    const second = await bridge.client("member:coder", { resumeToken });
    const again = await delivery(second, "write a test");
    expect(again.id).toBe(lent.id);
    expect(again.meta._meta.attempt).toBeGreaterThan(lent.meta._meta.attempt);
    // Registering again on the same connection changes nothing.
    await second.call("map/agents/register", { agentId: "coder" });
    await second.call("map/send", {
      to: { agent: "boss" },
      payload: "done",
      meta: { correlationId: again.id },
    });
    expect((await posted.outcome).status).toBe("completed");
  });

  it("[MAP-OURS-24] returns to the engine if the resuming connection is lost before it receives it", async () => {
    bridge = await BridgeHarness.start();
    const first = await bridge.coder();
    const { resumeToken } = await first.call("map/connect", { protocolVersion: 1 });
    await bridge.mailroom.user("ann").post("write a test");
    const lent = await delivery(first, "write a test");
    const second = new DirectTransport(bridge.map, "member:coder");
    const lost = onCommit(writesRow("map_session.put"), () => second.lost());
    second.tell("map/connect", { participantType: "agent", resumeToken });
    await lost;
    const again = await bridge.mailroom.runtime.remote.next("coder");
    expect(again?.message.id).toBe(lent.id);
  });

  it.each(["map_agent.claim", "map_session.put"])(
    "[MAP-OURS-24] is not lent to a connection that was lost while registering (%s)",
    async (kind) => {
      const clock = new VirtualClock();
      bridge = await BridgeHarness.start({ clock });
      const first = await bridge.client("member:coder");
      const [session] = bridge.map.context.sessions.inSpace("");
      const lost = onCommit(writesRow(kind), () => session?.connection?.close(1011, "lost"));
      first.send(
        JSON.stringify({
          jsonrpc: "2.0",
          id: 9,
          method: "map/agents/register",
          params: { agentId: "coder" },
        }),
      );
      await lost;
      // Let running requests finish and all timers fire.
      const ann = await bridge.client("user:ann");
      await ann.call("map/agents/register", { agentId: "ann" });
      clock.advance(1000);
      const posted = await bridge.mailroom.user("ann").post("write a test");
      const conversationId = `conv-${posted.key}`;
      const turns = async () => JSON.stringify((await ann.call("mail/turns/list", { conversationId })).turns);
      await expect.poll(turns).toContain('"to":["coder"]');
      const second = await bridge.coder();
      clock.advance(1000);
      expect((await delivery(second, "write a test")).meta._meta.attempt).toBe(1);
    },
  );

  it("is lent after the store has failed once", async () => {
    const clock = new VirtualClock();
    const disk = new FaultyDisk();
    bridge = await BridgeHarness.start({ clock, store: await openStoreOn(disk) });
    const coder = await bridge.coder();
    clock.advance(1000);
    disk.refuse = (batch) =>
      isLent(batch) && bridge.problems.length === 0 ? new Error("it was refused") : undefined;
    await bridge.mailroom.user("ann").post("first");
    await bridge.mailroom.user("ann").post("second");
    await until(() => bridge.problems.length > 0);
    clock.advance(1000);
    await delivery(coder, "second");
    await delivery(coder, "first");
  });
});

describe("an agent of the swarm", () => {
  const received = async (client: RawClient): Promise<unknown[]> => {
    // All earlier messages have arrived when this is answered.
    await client.call("map/agents/list");
    return client.frames.filter(({ method }) => method === "map/message");
  };

  it.each([
    [{ agents: ["helper", "coder"] }, -32602],
    [{ agents: ["helper", "boss"] }, -32602],
    [{ participant: "member:coder" }, -32602],
    [{ agent: "member:coder" }, -32602],
    ["member:coder", -32602],
    ["agent:coder", -32602],
    [{ broadcast: true }, ["helper"]],
    [{ role: "dev" }, ["helper"]],
    [{ scope: "room" }, ["helper"]],
    [{ participants: "agents" }, ["helper"]],
    [{ participants: "all" }, ["helper", "user:eve"]],
  ])("[MAP-OURS-23] cannot be reached outside its tasks by %j", async (to, outcome) => {
    bridge = await BridgeHarness.start();
    const coder = await bridge.client("member:coder");
    await coder.call("map/agents/register", { agentId: "coder", role: "dev" });
    const eve = await bridge.client("user:eve");
    await eve.call("map/scopes/create", { scopeId: "room" });
    await eve.call("map/agents/register", { agentId: "helper", role: "dev", scopes: ["room"] });
    await coder.call("map/scopes/join", { scopeId: "room", agentId: "coder" });
    const other = await bridge.client("user:eve");
    const { result, error } = await other.request("map/send", { to, payload: { body: "do this" } });
    expect(result?.delivered ?? error?.code).toEqual(outcome);
    expect(await received(coder)).toEqual([]);
  });

  it("[MAP-OURS-23] cannot be reached by its session id", async () => {
    bridge = await BridgeHarness.start();
    const coder = await bridge.coder();
    const { sessionId } = await coder.call("map/connect", { protocolVersion: 1 });
    const eve = await bridge.client("user:eve");
    const { error } = await eve.request("map/send", { to: { participant: sessionId }, payload: "do this" });
    expect(error?.code).toBe(-32602);
    expect(await received(coder)).toEqual([]);
  });

  it("is all that its token serves: it cannot create conversations or scopes, or send messages", async () => {
    bridge = await BridgeHarness.start();
    const ann = await bridge.client("user:ann");
    await ann.call("map/agents/register", { agentId: "helper" });
    const { conversation } = await ann.call("mail/create");
    const { id: conversationId } = conversation as { id: string };
    const coder = await bridge.client("member:coder");
    const refusals: [string, object, number][] = [
      ["mail/create", {}, 10003],
      ["mail/join", { conversationId }, 10003],
      ["map/scopes/create", {}, 1003],
      ["map/send", { to: { agent: "helper" }, payload: "psst" }, 1003],
      ["map/send", { to: { broadcast: true }, payload: "psst" }, 1003],
      ["map/agents/spawn", { agentId: "coder", initialMessage: { payload: "psst" } }, 1003],
    ];
    for (const [method, params, code] of refusals) {
      expect([method, (await coder.request(method, params)).error?.code]).toEqual([method, code]);
    }
    const { agents } = await ann.call("map/agents/list");
    expect(agents).toMatchObject([{ id: "helper" }]);
    await coder.call("map/agents/register");
    // An invited agent participates.
    await ann.call("mail/invite", { conversationId, participant: { id: "coder", role: "worker" } });
    await coder.call("mail/turn", { conversationId, contentType: "text", content: { text: "here" } });
  });
});
