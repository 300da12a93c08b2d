/** Which messages are removed and when, and which never become tasks. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { operate } from "../../src/mesh/admin/operate.js";
import type { QueueStatus } from "../../src/mesh/messages.js";
import { type Agent, Mesh, textsAt } from "./harness.js";

const DAY = 86_400_000;

let mesh: Mesh;
let alice: Agent;
let bob: Agent;
let lab: string;
beforeEach(async () => {
  mesh = new Mesh();
  alice = await mesh.agent("alice");
  bob = await mesh.agent("bob", { retention: 7 * DAY });
  lab = await mesh.swarm(alice, bob);
});
afterEach(() => mesh.close());

const ask = (name: string, given: object) =>
  operate({ agent: bob.agent, reads: bob.store.mesh, directory: bob.directory }, name, given);

/** Sends a message from alice to bob and returns it. */
async function said(content: string): Promise<string> {
  const message = alice.message({ swarm_id: lab, content });
  expect(await bob.answer(message)).toBe(200);
  return message.message_id;
}

const pending = async () => (await bob.store.mesh.queued("pending", 9)).map(({ content }) => content);

/** Changes the status of a queued message. */
async function moved(content: string, status: QueueStatus): Promise<void> {
  await said(content);
  const waiting = await bob.store.mesh.queued("pending", 99);
  const { id = "" } = waiting.find((message) => message.content === content) ?? {};
  await bob.agent.context.commit([{ kind: "mesh.queue.mark", id, from: ["pending"], status, at: 0 }], "");
}

it("messages are removed some days after they were read, archived or processed; pending messages are kept", async () => {
  await said("read");
  await ask("messages", { limit: 1 });
  await said("unseen");
  await ask("archive", { message_id: await said("archived") });
  await ask("delete", { message_id: await said("deleted") });
  await moved("a task that runs", "processing");
  await moved("a task that has ended", "completed");
  await bob.agent.send({ swarmId: lab, content: "delivered" });
  await mesh.settle();
  mesh.down.add("alice.example.com");
  await bob.agent.send({ swarmId: lab, content: "waits" });

  await mesh.pass(6 * DAY);
  expect(await textsAt(bob)).toHaveLength(5);
  await mesh.pass(2 * DAY);
  expect((await textsAt(bob)).toSorted()).toEqual(["a task that runs", "unseen"]);
  expect(await bob.store.mesh.inboxCounts()).toMatchObject({ archived: 0, deleted: 0 });
  expect((await bob.store.mesh.sent({ limit: 9 })).map(({ content }) => content)).toEqual(["waits"]);
});

it("an old imported message is retained as long as a new one", async () => {
  const message = {
    message_id: crypto.randomUUID(),
    swarm_id: lab,
    sender_id: "alice",
    content: "from long ago",
    received_at: "2020-01-01T00:00:00.000Z",
    status: "unread",
  };
  const state = { ...bob.agent.exportState(), schema_version: "2.0.0", inbox: [message] };
  await bob.agent.importState(JSON.stringify(state), { mode: "merge" });
  await mesh.pass(6 * DAY);
  expect(await textsAt(bob)).toEqual(["from long ago"]);
  await mesh.pass(2 * DAY);
  expect(await textsAt(bob)).toEqual([]);
});

it("messages are kept forever without a retention time", async () => {
  await mesh.pass(400 * DAY);
  expect((await alice.store.mesh.inbox({ limit: 9 })).length).toBeGreaterThan(0);
});

it("purge removes deleted messages, also when the bridge is off", async () => {
  const message_id = await said("not wanted");
  await ask("delete", { message_id });
  mesh.clock.jump(1);
  await ask("purge", { messages: true, retention_hours: 0 });
  expect(await bob.store.mesh.byMessageId(message_id)).toBeUndefined();
});

it("a message that was archived or deleted before it became a task never becomes one", async () => {
  await ask("archive", { message_id: await said("archived") });
  await ask("delete", { message_id: await said("deleted") });
  await said("wanted");
  expect(await pending()).toEqual(["wanted"]);
});
