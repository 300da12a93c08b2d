/** Remote agents: a server that is killed while it serves them, and isolation between tasks. */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { systemIds } from "../../src/base/node.js";
import { MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { folder, type Started, serve } from "../cli/cli.js";
import { requestFrom } from "../kit/foreign-mail.js";
import { BridgeHarness, type Delivered, delivery, open } from "./bridge-harness.js";
import { RawClient, until } from "./harness.js";

const answerTo = ({ id, meta }: Delivered, body: string) => ({
  messageId: id,
  attempt: meta._meta.attempt,
  conversationId: meta.mail.conversationId,
  calls: [{ name: "send_response", args: { target: "desk", subject: "done", body } }],
});

async function clerkOf(server: Started): Promise<RawClient> {
  const clerk = new RawClient(await open(`${server.url.replace("http", "ws")}/map`, "member:clerk"));
  await clerk.call("map/connect", { protocolVersion: 1, participantType: "agent" });
  await clerk.call("map/agents/register", { agentId: "clerk" });
  return clerk;
}

describe("a server that is killed while mail is lent", () => {
  it("[MAP-OURS-24] lends it again after a restart, accepts one answer, and keeps accepted answers", async () => {
    await using here = await folder();
    const cwd = here.path;
    await writeFile(join(cwd, "swarms.json"), ASKING_SWARM);
    const first = await serve(["--dev"], { cwd });
    const answered = new MailClient(first.url, { token: "user:ann" });
    await answered.postMessage("wait", { taskId: "answered", wait: false });
    const before = await clerkOf(first);
    const taken = await delivery(before, "take your time");
    await before.call("mailroom/answer", answerTo(taken, "first"));
    await answered.postMessage("wait", { taskId: "lent", wait: false });
    const inHand = (client: RawClient): Delivered[] =>
      client.frames
        .filter(({ method }) => method === "map/message")
        .map(({ params }) => params?.message as Delivered);
    const lent = await until(() => inHand(before).find(({ id }) => id !== taken.id));
    await first[Symbol.asyncDispose]();

    await using second = await serve(["--dev"], { cwd });
    const clerk = await clerkOf(second);
    const again = await delivery(clerk, "take your time");
    expect(again.id).toBe(lent.id);
    expect(again.meta.mail).toEqual(lent.meta.mail);
    expect(again.meta._meta.attempt).toBeGreaterThan(lent.meta._meta.attempt);
    const late = await clerk.request("mailroom/answer", answerTo(lent, "late"));
    expect(late.error).toMatchObject({ code: -32602, data: { details: { reason: "stale_attempt" } } });
    await clerk.call("mailroom/answer", answerTo(again, "second"));
    const twice = await clerk.request("mailroom/answer", answerTo(again, "twice"));
    expect(twice.error?.code).toBe(-32602);

    const ann = new RawClient(await open(`${second.url.replace("http", "ws")}/map`, "user:ann"));
    await ann.call("map/connect", { protocolVersion: 1, participantType: "client" });
    for (const [message, words] of [
      [taken, "first"],
      [again, "second"],
    ] as const) {
      const { conversationId } = message.meta.mail;
      const turns = async () => {
        const listed = await ann.call("mail/turns/list", { conversationId, limit: 500 });
        return listed.turns as { participant: string; content: { text: string } }[];
      };
      const status = async () =>
        ((await ann.call("mail/get", { conversationId })).conversation as { status: string }).status;
      await expect.poll(status).toBe("completed");
      const said = (await turns()).filter(({ participant }) => participant === "clerk");
      expect(said.map(({ content }) => content.text)).toEqual([words]);
    }
    // Nothing else was lent to the clerk after it returned.
    expect(inHand(clerk).map(({ id }) => id)).toEqual([again.id]);
    for (const { socket } of [before, clerk, ann]) socket.terminate();
  }, 60_000);
});

describe("tasks of different owners that one remote agent serves", () => {
  it("[MAP-OURS-28] are isolated from each other, even with the same task id", async () => {
    const bridge = await BridgeHarness.start();
    try {
      const coder = await bridge.coder();
      const [ann, bob] = await Promise.all(
        ["ann", "bob"].map((name) => bridge.mailroom.user(name).post(`for ${name}`, { taskId: "same" })),
      );
      const [toAnn, toBob] = [await delivery(coder, "for ann"), await delivery(coder, "for bob")];
      expect(toAnn.meta.mail.conversationId).toBe(`conv-${ann?.key}`);
      expect(toBob.meta.mail.conversationId).toBe(`conv-${bob?.key}`);
      const reply = (payload: string, meta: object) =>
        coder.call("map/send", { to: { agent: "boss" }, payload, meta });
      await reply("b", { mail: toBob.meta.mail });
      // The agent holds no message of that conversation, and no other message is used instead.
      const after = await coder.request("map/send", {
        to: { agent: "boss" },
        payload: "b again",
        meta: { mail: toBob.meta.mail },
      });
      expect(after.error).toMatchObject({ code: -32602, data: { details: { reason: "not_in_a_task" } } });
      await reply("a", { correlationId: toAnn.id });
      expect(await ann?.outcome).toMatchObject({ status: "completed" });
      for (const [posted, wanted, unwanted] of [
        [ann, "coder says: a", "for bob"],
        [bob, "coder says: b", "for ann"],
      ] as const) {
        await posted?.outcome;
        const words: string[] = [];
        for await (const { entry } of posted?.task.journal() ?? []) words.push(JSON.stringify(entry));
        expect(words.join()).toContain(wanted);
        expect(words.join()).not.toContain(unwanted);
      }
      // An agent does not see the conversations of tasks it works on; they belong to their owners.
      for (const { conversationId } of [toAnn.meta.mail, toBob.meta.mail]) {
        expect((await coder.request("mail/turns/list", { conversationId })).error?.code).toBe(10000);
      }
    } finally {
      await bridge.stop();
    }
    expect(bridge.problems).toEqual([]);
  });

  it("[MAP-OURS-28] are kept apart when their senders choose the same message id", async () => {
    const bridge = await BridgeHarness.start();
    try {
      const { runtime } = bridge.mailroom;
      const id = systemIds.uuid();
      const from = (swarm: string) => requestFrom(swarm, runtime, { id, to: "coder" });
      const [north, south] = [await from("north"), await from("south")];
      const coder = await bridge.coder();
      const [one, two] = [await delivery(coder, "from north"), await delivery(coder, "from south")];
      expect([one.id, two.id]).toEqual([id, id]);
      const calls = [{ name: "send_request", args: { target: "boss", subject: "s", body: "look south" } }];
      const named = { messageId: id, attempt: two.meta._meta.attempt };
      const unclear = await coder.request("mailroom/answer", { ...named, calls });
      expect(unclear.error).toMatchObject({
        code: -32602,
        data: { details: { reason: "ambiguous_message" } },
      });
      const { conversationId } = two.meta.mail;
      await coder.call("mailroom/answer", { ...named, conversationId, calls });
      // Repeated, as by a client that missed the response, it must not reach the other task.
      expect(
        (await coder.request("mailroom/answer", { ...named, conversationId, calls })).error,
      ).toMatchObject({
        code: -32602,
        data: { details: { reason: "stale_attempt" } },
      });
      const wordsOf = async (key: string) =>
        JSON.stringify((await bridge.mailroom.store.read(key)).map(({ data }) => data));
      expect(await wordsOf(south.key)).toContain("look south");
      expect(await wordsOf(north.key)).not.toContain("look south");
      // The other message is still lent, and returns with the connection.
      coder.socket.terminate();
      const next = await bridge.coder();
      expect((await delivery(next, "from north")).meta._meta.attempt).toBeGreaterThan(one.meta._meta.attempt);
    } finally {
      await bridge.stop();
    }
    expect(bridge.problems).toEqual([]);
  });
});

describe("a client without a credential in development mode", () => {
  it("[MAP-OURS-29] is the same caller in MAP as over HTTP", async () => {
    await using here = await folder();
    await using server = await serve(["--dev"], { cwd: here.path });
    await new MailClient(server.url).postMessage("hello", { wait: false });
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/map`);
    await once(socket, "open");
    const nobody = new RawClient(socket);
    const connected = await nobody.call("map/connect", { protocolVersion: 1, participantType: "client" });
    expect(connected.participantId).toBe("user:dev");
    const { conversations } = await nobody.call("mail/list");
    expect(conversations).toMatchObject([{ type: "user-session", createdBy: "user:dev" }]);
    nobody.socket.terminate();
  }, 60_000);
});
