/** Mail in the hands of a remote agent: it is lent to whoever is there, and nobody else writes to the agent. */
import { afterEach, describe, expect, it } from "vitest";
import type { Batch } from "../../src/engine/ports.js";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import { VirtualClock } from "../kit/virtual-clock.js";
import { BridgeHarness, delivery } from "./bridge-harness.js";
import { type RawClient, until } from "./harness.js";
import { OwnCarrier } from "./own-carrier.js";

let house: BridgeHarness;
afterEach(() => house.stop());

const writesRow = (kind: string) => (batch: Batch) => batch.rows?.some((row) => row.kind === kind) === true;

/** Comes between the store and one commit. */
function onCommit(isIt: (batch: Batch) => boolean, act: () => void): Promise<void> {
  const { store } = house.map;
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

describe("mail that is lent", () => {
  it("[MAP-OURS-24] is sent again to a session that is taken up while its old socket is half-open", async () => {
    house = await BridgeHarness.start();
    const first = await house.coder();
    const { resumeToken } = await first.call("map/connect", { protocolVersion: 1 });
    const posted = await house.mailroom.user("ann").post("write a test");
    const lent = await delivery(first, "write a test");
    // Nobody has told the server that the first one is gone.
    const second = await house.client("member:coder", { resumeToken });
    const again = await delivery(second, "write a test");
    expect(again.id).toBe(lent.id);
    expect(again.meta._meta.attempt).toBeGreaterThan(lent.meta._meta.attempt);
    // Registering once more on the same connection changes nothing.
    await second.call("map/agents/register", { agentId: "coder" });
    await second.call("map/send", {
      to: { agent: "boss" },
      payload: "done",
      meta: { correlationId: again.id },
    });
    expect((await posted.outcome).status).toBe("completed");
  });

  it("[MAP-OURS-24] goes back if whoever takes the session up is lost before it has got it", async () => {
    house = await BridgeHarness.start();
    const first = await house.coder();
    const { resumeToken } = await first.call("map/connect", { protocolVersion: 1 });
    await house.mailroom.user("ann").post("write a test");
    const lent = await delivery(first, "write a test");
    const second = new OwnCarrier(house.map, "member:coder");
    const lost = onCommit(writesRow("map_session.put"), () => second.lost());
    second.tell("map/connect", { participantType: "agent", resumeToken });
    await lost;
    const again = await house.mailroom.runtime.remote.next("coder");
    expect(again?.message.id).toBe(lent.id);
  });

  it.each(["map_agent.claim", "map_session.put"])(
    "[MAP-OURS-24] goes to nobody who was lost while registering (%s)",
    async (kind) => {
      const clock = new VirtualClock();
      house = await BridgeHarness.start({ clock });
      const first = await house.client("member:coder");
      const [session] = house.map.sessions.inSpace("");
      const lost = onCommit(writesRow(kind), () => session?.connection?.lost());
      first.send(
        JSON.stringify({
          jsonrpc: "2.0",
          id: 9,
          method: "map/agents/register",
          params: { agentId: "coder" },
        }),
      );
      await lost;
      // What was begun has come to its end, and whatever it has set the clock for comes to pass.
      const ann = await house.client("user:ann");
      await ann.call("map/agents/register", { agentId: "ann" });
      clock.advance(1000);
      const posted = await house.mailroom.user("ann").post("write a test");
      const conversationId = `conv-${posted.key}`;
      const turns = async () => JSON.stringify((await ann.call("mail/turns/list", { conversationId })).turns);
      await expect.poll(turns).toContain('"to":["coder"]');
      const second = await house.coder();
      clock.advance(1000);
      expect((await delivery(second, "write a test")).meta._meta.attempt).toBe(1);
    },
  );

  it("is lent though the store has failed once", async () => {
    const clock = new VirtualClock();
    const disk = new FaultyDisk();
    house = await BridgeHarness.start({ clock, store: await openStoreOn(disk) });
    const coder = await house.coder();
    clock.advance(1000);
    disk.refuse = (batch) =>
      isLent(batch) && house.problems.length === 0 ? new Error("it was refused") : undefined;
    await house.mailroom.user("ann").post("first");
    await house.mailroom.user("ann").post("second");
    await until(() => house.problems.length > 0);
    clock.advance(1000);
    await delivery(coder, "second");
    await delivery(coder, "first");
  });
});

describe("an agent of the swarm", () => {
  const received = async (client: RawClient): Promise<unknown[]> => {
    // Everything that was sent to it before has come when this is answered.
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
  ])("[MAP-OURS-23] is not reached past its tasks by %j", async (to, outcome) => {
    house = await BridgeHarness.start();
    const coder = await house.client("member:coder");
    await coder.call("map/agents/register", { agentId: "coder", role: "dev" });
    const eve = await house.client("user:eve");
    await eve.call("map/scopes/create", { scopeId: "room" });
    await eve.call("map/agents/register", { agentId: "helper", role: "dev", scopes: ["room"] });
    await coder.call("map/scopes/join", { scopeId: "room", agentId: "coder" });
    const other = await house.client("user:eve");
    const { result, error } = await other.request("map/send", { to, payload: { body: "do this" } });
    expect(result?.delivered ?? error?.code).toEqual(outcome);
    expect(await received(coder)).toEqual([]);
  });

  it("[MAP-OURS-23] is not reached by the id of its process's session", async () => {
    house = await BridgeHarness.start();
    const coder = await house.coder();
    const { sessionId } = await coder.call("map/connect", { protocolVersion: 1 });
    const eve = await house.client("user:eve");
    const { error } = await eve.request("map/send", { to: { participant: sessionId }, payload: "do this" });
    expect(error?.code).toBe(-32602);
    expect(await received(coder)).toEqual([]);
  });

  it("is all that its token serves: no conversations, scopes or messages of its own", async () => {
    house = await BridgeHarness.start();
    const ann = await house.client("user:ann");
    await ann.call("map/agents/register", { agentId: "helper" });
    const { conversation } = await ann.call("mail/create");
    const { id: conversationId } = conversation as { id: string };
    const coder = await house.client("member:coder");
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
    // Where somebody invites the agent, it takes part.
    await ann.call("mail/invite", { conversationId, participant: { id: "coder", role: "worker" } });
    await coder.call("mail/turn", { conversationId, contentType: "text", content: { text: "here" } });
  });
});
