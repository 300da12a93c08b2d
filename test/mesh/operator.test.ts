/** The routes on which the operator reads and sorts incoming messages. */
import { beforeEach, describe, expect, it } from "vitest";
import { operate } from "../../src/mesh/admin/operate.js";
import { alice, bob, forEachTest, mesh, operatorOf } from "./harness.js";

forEachTest();
let lab: string;
let operator: ReturnType<typeof operatorOf>;
beforeEach(async () => {
  lab = await mesh.swarm(alice, bob);
  operator = operatorOf(bob);
});

const operation = (name: "messages" | "archive_all", args: object = {}) =>
  operate({ agent: bob.agent, reads: bob.store.mesh, directory: bob.directory }, name, args);

/** Sends a message from alice to bob and returns it. */
async function said(content: string): Promise<string> {
  const message = alice.message({ swarm_id: lab, content });
  expect(await bob.answer(message)).toBe(200);
  return message.message_id;
}

describe("the operator's routes", () => {
  it("the operator's routes show the extras of a message; lists omit the contents of attachments", async () => {
    const extras = {
      priority: "high",
      attachments: [{ type: "inline", mime_type: "text/plain", content: "aGVsbG8=" }],
      references: [{ type: "github_issue", repo: "octo/cat", number: 7, action: "claimed" }],
      metadata: { topic: "lunch" },
    } as const;
    const message = alice.message({ swarm_id: lab, extras });
    await bob.answer(message);
    expect((await operator("GET", `/api/inbox/${message.message_id}`)).body.extras).toEqual(extras);
    const { messages } = await operation("messages");
    expect(messages).toContainEqual(
      expect.objectContaining({
        message_id: message.message_id,
        extras: { ...extras, attachments: [{ type: "inline", mime_type: "text/plain", bytes: 5 }] },
      }),
    );
  });

  it("the operator's routes find a message by its id although another member used the same id later", async () => {
    const aaron = await mesh.agent("aaron");
    await aaron.agent.join(await alice.agent.invite(lab));
    const message_id = await said("the original");
    const shadow = aaron.message({ swarm_id: lab, message_id, content: "a shadow" });
    expect(await bob.answer(shadow)).toBe(200);
    expect((await operator("GET", `/api/inbox/${message_id}`)).body).toMatchObject({ sender_id: "alice" });
  });

  it("the operator's routes show and archive messages imported from other software, whatever their senders", async () => {
    const state = {
      ...JSON.parse(JSON.stringify(bob.agent.exportState())),
      schema_version: "2.0.0",
      inbox: ["a/b", "carol"].map((sender_id) => ({
        message_id: crypto.randomUUID(),
        swarm_id: lab,
        sender_id,
        recipient_id: "bob",
        message_type: "message",
        content: '{"priority":"urgent","attachments":[{"type":"inline","content":{"toString":1}}]}',
        received_at: "2026-01-01T00:00:00.000Z",
        status: "unread",
      })),
    };
    await bob.agent.importState(JSON.stringify(state), { mode: "merge" });
    // The content only looks like a message with extras.
    expect((await operation("messages")).messages).toContainEqual(
      expect.objectContaining({ sender_id: "a/b", extras: {} }),
    );
    await operation("archive_all");
    expect(await operation("messages", { status: "read" })).toMatchObject({ count: 0 });
    const { messages } = await operation("messages", { status: "archived" });
    for (const sender_id of ["a/b", "carol"]) {
      expect(messages).toContainEqual(expect.objectContaining({ sender_id }));
    }
  });

  it("the operator's routes list, show, count and move messages", async () => {
    const [first, second, third] = [await said("one"), await said("two"), await said("three")];
    const list = await operator("GET", "/api/inbox?limit=2");
    expect(list.body.messages).toMatchObject([{ content_preview: "three" }, { content_preview: "two" }]);
    expect((await operator("GET", "/api/inbox?limit=0")).status).toBe(400);
    expect((await operator("GET", "/api/inbox?status=odd")).status).toBe(400);
    expect((await operator("GET", `/api/inbox/${first}`)).body).toMatchObject({
      status: "read",
      content_preview: "one",
    });
    expect((await operator("POST", `/api/inbox/${second}/archive`)).body).toEqual({
      status: "archived",
      message_id: second,
    });
    expect((await operator("POST", `/api/inbox/${second}/read`)).status).toBe(400);
    const batch = { message_ids: [first, third], action: "delete" };
    expect((await operator("POST", "/api/inbox/batch", batch)).body).toEqual({
      action: "delete",
      updated: 2,
      total: 2,
    });
    expect((await operator("GET", `/api/inbox/count?swarm_id=${lab}`)).body).toMatchObject({
      archived: 1,
      deleted: 2,
    });
    expect((await operator("GET", `/api/inbox/${crypto.randomUUID()}`)).status).toBe(404);
  });

  it("the operator's routes list and count sent messages", async () => {
    await bob.agent.send({ swarmId: lab, content: "out" });
    await mesh.settle();
    expect((await operator("GET", "/api/outbox")).body.messages).toMatchObject([
      { recipient_id: "alice", status: "delivered" },
    ]);
    expect((await operator("GET", "/api/outbox/count")).body).toMatchObject({ delivered: 1, total: 1 });
  });
});

it("deleted messages are purged, except those of a running task", async () => {
  const [waiting, begun] = [await said("waiting"), await said("begun")];
  const { id = "" } = (await bob.store.mesh.byMessageId(begun)) ?? {};
  const begin = { kind: "mesh.queue.mark", id, from: ["pending"], status: "processing", at: 0 };
  await bob.store.commit({ appends: [], rows: [begin] });
  for (const messageId of [waiting, begun]) await operator("POST", `/api/inbox/${messageId}/delete`);
  mesh.clock.jump(1);
  await bob.agent.purge({ deletedBefore: mesh.clock.now() });
  expect(await bob.store.mesh.byMessageId(waiting)).toBeUndefined();
  expect(await bob.store.mesh.byMessageId(begun)).toMatchObject({ box: "deleted" });
});
