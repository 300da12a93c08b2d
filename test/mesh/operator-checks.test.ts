/** Errors of the operator's operations, and operations on messages with unusual ids. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { operate } from "../../src/mesh/admin/operate.js";
import { type Agent, Mesh, operatorOf } from "./harness.js";

let mesh: Mesh;
let alice: Agent;
let bob: Agent;
let lab: string;
beforeEach(async () => {
  mesh = new Mesh();
  alice = await mesh.agent("alice");
  bob = await mesh.agent("bob");
  lab = await mesh.swarm(alice, bob);
});
afterEach(() => mesh.close());

const ask = ({ agent, store, directory }: Agent, name: string, given: object) =>
  operate({ agent, reads: store.mesh, directory }, name, given);

describe("sending a message that every peer would refuse", () => {
  const send = (extras: object) => ask(alice, "send", { swarm: lab, message: "x", extras });
  const halves = (bytes: number) => {
    const content = Buffer.alloc(bytes / 2).toString("base64");
    return { attachments: [1, 2].map(() => ({ type: "inline", mime_type: "x/y", content })) };
  };

  it.each([
    ["a priority that the protocol does not have", { priority: "urgent" }, "priority"],
    ["metadata that is not an object", { metadata: "abc" }, "metadata"],
    ["a list instead of an id", { in_reply_to: [crypto.randomUUID()] }, "in_reply_to"],
    ["a list instead of a time", { expires_at: ["2030-01-01T00:00:00Z"] }, "expires_at"],
    ["attachments that exceed the limit together", halves(2 * 1024 * 1024), "exceeds"],
  ])("sending is refused for %s", async (_what, extras, named) => {
    await expect(send(extras)).rejects.toMatchObject({
      code: "invalid_message",
      message: expect.stringContaining(named),
    });
    expect(await alice.store.mesh.sent({ limit: 9 })).toEqual([]);
  });

  it("a message just within the limits arrives, and null counts as absent", async () => {
    await send({ ...halves(1_560_000), priority: "high", references: null, metadata: null });
    await mesh.settle();
    expect((await ask(alice, "sent", {})).messages).toMatchObject([{ status: "delivered" }]);
  });
});

describe("messages with unusual ids", () => {
  const odd = "11111111-1111-1111-1111-1111111111aA";
  const imported = "Msg 1?";

  beforeEach(async () => {
    await bob.answer(alice.message({ swarm_id: lab, message_id: odd.toLowerCase() }));
    const inbox = [
      {
        message_id: imported,
        swarm_id: lab,
        sender_id: "alice",
        message_type: "message",
        content: "old",
        received_at: "2026-01-01T00:00:00.000Z",
        status: "unread",
      },
    ];
    const state = { ...bob.agent.exportState(), schema_version: "2.0.0", inbox };
    await bob.agent.importState(JSON.stringify(state), { mode: "merge" });
  });

  it.each([odd, imported])("operations can archive and answer the message %s", async (message_id) => {
    await ask(bob, "send", { reply_to: message_id, message: "and you" });
    await mesh.settle();
    expect((await alice.store.mesh.inbox({ limit: 1 }))[0]).toMatchObject({ content: "and you" });
    expect(await ask(bob, "archive", { message_id })).toMatchObject({ status: "archived" });
    expect(await ask(bob, "delete", { message_id })).toMatchObject({ status: "deleted" });
  });

  it("routes can move messages with unusual ids", async () => {
    const operator = operatorOf(bob);
    for (const id of [odd, imported]) {
      const path = `/api/inbox/${encodeURIComponent(id)}`;
      expect((await operator("GET", path)).status).toBe(200);
      expect((await operator("POST", `${path}/archive`)).body.status).toBe("archived");
    }
    const batch = { message_ids: [odd, imported], action: "delete" };
    expect((await operator("POST", "/api/inbox/batch", batch)).body.updated).toBe(2);
    expect((await operator("GET", "/api/inbox/nothing")).status).toBe(404);
  });
});

it("an invite that expires too late is refused with a reason", async () => {
  for (const expires of [1e13, 1e300, 100_000_000]) {
    await expect(ask(alice, "invite", { swarm: lab, expires })).rejects.toMatchObject({
      code: "invalid_invite",
      message: expect.stringContaining("never expires"),
    });
  }
});

it("unbanning an agent that is not banned fails; other members than the master are referred to the master", async () => {
  const unban = (agent: Agent) => ask(agent, "unban", { swarm: lab, agent: "bob" });
  await expect(unban(alice)).rejects.toMatchObject({ code: "member_not_found" });
  await expect(unban(bob)).rejects.toMatchObject({ code: "not_master" });
  await alice.agent.kick(lab, "bob");
  expect(await unban(alice)).toMatchObject({ status: "unbanned" });
});
