/** Tasks as conversations (decision F4), and agents of the swarm in other processes (decision F5). */
import { once } from "node:events";
import { AgentConnection } from "@multi-agent-protocol/sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BridgeHarness, delivery, open } from "./bridge-harness.js";
import { type Frame, type RawClient, streamOf, until } from "./harness.js";

let bridge: BridgeHarness;

beforeEach(async () => {
  bridge = await BridgeHarness.start();
});

afterEach(async () => {
  await bridge.stop();
  expect(bridge.problems).toEqual([]);
});

interface TurnView {
  readonly id: string;
  readonly participant: string;
  readonly contentType: string;
  readonly content: Record<string, unknown>;
  readonly inReplyTo?: string;
  readonly source: Record<string, unknown>;
  readonly metadata: Record<string, unknown>;
}

async function turnsOf(client: RawClient, conversationId: string): Promise<TurnView[]> {
  const { turns } = await client.call("mail/turns/list", { conversationId, limit: 500 });
  return turns as TurnView[];
}

/** A completed task of Ann's that ran an action. */
async function finished(): Promise<{ conversationId: string; taskId: string }> {
  const posted = await bridge.mailroom.user("ann").post("look for keys");
  await posted.outcome;
  return { conversationId: `conv-${posted.key}`, taskId: posted.taskId };
}

describe("a task as a conversation", () => {
  it("[MAP-OURS-20] has its user and agents as participants, and its messages and actions as turns", async () => {
    const ann = await bridge.client("user:ann");
    const { conversationId, taskId } = await finished();
    const { conversation, participants, stats } = await ann.call("mail/get", {
      conversationId,
      include: { participants: true, stats: true, threads: true },
    });
    expect(conversation).toMatchObject({
      id: conversationId,
      type: "user-session",
      status: "completed",
      createdBy: "user:ann",
      metadata: { task_id: taskId, task_status: "completed" },
    });
    expect(participants).toMatchObject([
      { id: "user:ann", type: "user", role: "initiator" },
      { id: "boss", type: "agent", role: "assistant" },
    ]);
    const turns = await turnsOf(ann, conversationId);
    expect(stats).toMatchObject({ totalTurns: turns.length });
    expect(turns[0]).toMatchObject({
      participant: "user:ann",
      contentType: "text",
      content: { text: "look for keys" },
      source: { type: "intercepted" },
      metadata: { msg_type: "request", to: ["boss"] },
    });
    expect(turns.find(({ contentType }) => contentType === "x-tool-call")).toMatchObject({
      participant: "boss",
      content: {
        name: "look_up",
        arguments: { what: "look for keys" },
        ok: true,
        result: "in the drawer",
      },
      metadata: { internal: true },
    });
    expect(turns.at(-1)).toMatchObject({ participant: "boss", content: { text: "in the drawer" } });
    expect(turns.filter(({ participant }) => participant === "system")).toSatisfy((system: TurnView[]) =>
      system.every(({ metadata }) => metadata.internal === true),
    );
  });

  it("[MAP-OURS-20] can be paged, replayed and summarized, and its summary omits internal turns", async () => {
    const ann = await bridge.client("user:ann");
    const { conversationId } = await finished();
    const all = await turnsOf(ann, conversationId);
    const ids: string[] = [];
    for (let cursor: unknown; ; ) {
      const page = await ann.call("mail/turns/list", {
        conversationId,
        limit: 1,
        ...(cursor !== undefined && { cursor }),
      });
      ids.push(...(page.turns as TurnView[]).map(({ id }) => id));
      cursor = page.nextCursor;
      if (page.hasMore !== true) break;
    }
    expect(ids).toEqual(all.map(({ id }) => id));
    const replayed = await ann.call("mail/replay", { conversationId, fromTurnId: all[0]?.id });
    expect(replayed).toMatchObject({ missedCount: all.length - 1, turns: all.slice(1) });
    const { summary, participants } = await ann.call("mail/summary", {
      conversationId,
      include: { participants: true },
    });
    expect(summary).toContain("look for keys");
    expect(participants).toEqual(["user:ann", "boss"]);
  });

  it("[MAP-OURS-21] is visible to its owner and admins, and to no one else through any method", async () => {
    const { conversationId } = await finished();
    const ann = await bridge.client("user:ann");
    const root = await bridge.client("admin:root");
    const [first] = await turnsOf(ann, conversationId);
    expect(await turnsOf(root, conversationId)).toEqual(await turnsOf(ann, conversationId));
    // Clients in development mode may watch native conversations, but not tasks. An agent sees only the mail
    // it receives.
    const bob = await bridge.client("user:bob");
    const coder = await bridge.coder();
    const root2 = await bridge.client("user:root");
    for (const stranger of [bob, coder, root2]) {
      const doors: [string, Record<string, unknown>][] = [
        ["mail/get", { include: { recentTurns: 5, participants: true, stats: true } }],
        ["mail/turns/list", {}],
        ["mail/replay", {}],
        ["mail/summary", {}],
        ["mail/join", {}],
        ["mail/leave", {}],
        ["mail/invite", { participant: { id: "user:bob" } }],
        ["mail/thread/list", {}],
        ["mail/thread/create", { rootTurnId: first?.id }],
        ["mail/turn", { contentType: "text", content: { text: "hello" } }],
        ["mail/close", {}],
      ];
      for (const [method, params] of doors) {
        const { error } = await stranger.request(method, { conversationId, ...params });
        expect({ method, code: error?.code }).toEqual({ method, code: 10000 });
      }
      const { error } = await stranger.request("mail/create", { parentConversationId: conversationId });
      // A member token cannot create conversations, with or without a parent.
      expect(error?.code).toBe(stranger === coder ? 10003 : 10000);
      expect(await stranger.call("mail/list")).toMatchObject({ conversations: [] });
      const replayed = await stranger.call("map/replay", { filter: { eventTypes: ["mail.*"] }, limit: 1000 });
      expect(replayed.events).toEqual([]);
      const one = await stranger.call("map/replay", { filter: { mail: { conversationId } } });
      expect(one.events).toEqual([]);
    }
  });

  it("[MAP-OURS-21] sends its owner and admins the same events live and in replay, and others none", async () => {
    const watchers = await Promise.all(
      ["user:ann", "admin:root", "user:bob"].map((who) => bridge.client(who)),
    );
    const [ann, root, bob] = watchers;
    if (ann === undefined || root === undefined || bob === undefined)
      throw new Error("three clients are connected");
    for (const watcher of watchers)
      await watcher.call("map/subscribe", { filter: { eventTypes: ["mail.*"] } });
    const { conversationId } = await finished();
    const typesOf = (client: RawClient) => client.events().map(({ event }) => event.type);
    await until(() => typesOf(ann).includes("mail.closed") && typesOf(root).includes("mail.closed"));
    expect(typesOf(ann).slice(0, 4)).toEqual([
      "mail.created",
      "mail.participant.joined",
      "mail.participant.joined",
      "mail.turn.added",
    ]);
    for (const client of [ann, root]) {
      const { events } = await client.call("map/replay", {
        filter: { mail: { conversationId } },
        limit: 1000,
      });
      const live = client.events().map(({ event }) => event);
      expect((events as { event: unknown }[]).map(({ event }) => event)).toEqual(live);
      expect((await turnsOf(client, conversationId)).length).toBe(
        live.filter(({ type }) => type === "mail.turn.added").length,
      );
    }
    // Bob's own conversation arrives on the same subscription: other events would have come before it.
    await bob.call("mail/create", {});
    await until(() => bob.events().length > 0);
    expect(bob.events().every(({ event }) => event.data.conversationId !== conversationId)).toBe(true);
  });

  it("[MAP-OURS-20] is listed together with native conversations, by creation, in pages", async () => {
    const ann = await bridge.client("user:ann");
    const first = await finished();
    const native = await ann.call("mail/create", { subject: "lunch" });
    const second = await finished();
    await bridge.mailroom.user("bob").ask("look out");
    const wanted = [first.conversationId, (native.conversation as { id: string }).id, second.conversationId];
    const listed: string[] = [];
    for (let cursor: unknown; ; ) {
      const page = await ann.call("mail/list", { limit: 1, ...(cursor !== undefined && { cursor }) });
      listed.push(...(page.conversations as { id: string }[]).map(({ id }) => id));
      cursor = page.nextCursor;
      if (page.hasMore !== true) break;
    }
    expect(listed).toEqual(wanted);
    const filtered = await ann.call("mail/list", {
      filter: { participantId: "boss", status: ["completed"] },
    });
    expect((filtered.conversations as { id: string }[]).map(({ id }) => id)).toEqual([
      first.conversationId,
      second.conversationId,
    ]);
    const root = await bridge.client("admin:root");
    expect((await root.call("mail/list")).conversations).toHaveLength(4);
  });

  it("[MAP-OURS-22] a turn by its owner is a message to the task, which continues", async () => {
    const ann = await bridge.client("user:ann");
    await ann.call("map/subscribe", { filter: { eventTypes: ["mail.closed"] } });
    const { conversationId } = await finished();
    const { turn } = await ann.call("mail/turn", {
      conversationId,
      contentType: "text",
      content: { text: "look again" },
    });
    expect(turn).toMatchObject({ participant: "user:ann", content: { text: "look again" } });
    // Each completion closes the conversation.
    await until(() => ann.events().length >= 2);
    const turns = await turnsOf(ann, conversationId);
    const at = turns.findIndex(({ contentType }) => contentType === "event");
    expect(turns[at]).toMatchObject({ content: { event: "task_resumed" } });
    expect(turns[at + 1]).toEqual(turn);
    const { conversation } = await ann.call("mail/get", { conversationId });
    expect(conversation).toMatchObject({ status: "completed" });
  });

  it("[MAP-OURS-22] accepts turns from its owner only, and only text", async () => {
    const { conversationId } = await finished();
    const root = await bridge.client("admin:root");
    const words = { conversationId, contentType: "text", content: { text: "hm" } };
    expect((await root.request("mail/turn", words)).error?.code).toBe(10003);
    const ann = await bridge.client("user:ann");
    const data = await ann.request("mail/turn", { conversationId, contentType: "data", content: {} });
    expect(data.error?.code).toBe(10008);
    for (const [method, params] of [
      ["mail/join", {}],
      ["mail/leave", {}],
      ["mail/invite", { participant: { id: "user:bob" } }],
      ["mail/thread/create", { rootTurnId: "turn-1" }],
    ] as const) {
      const { error } = await ann.request(method, { conversationId, ...params });
      expect({ method, code: error?.code, details: error?.data?.details }).toMatchObject({
        method,
        code: 10003,
        details: { reason: "task_conversation" },
      });
    }
    // [MAP-F-10] It has no threads, so their list is empty.
    expect(await ann.call("mail/thread/list", { conversationId })).toEqual({ threads: [], hasMore: false });
  });

  it("[MAP-OURS-22] closing it cancels the task", async () => {
    const ann = await bridge.client("user:ann");
    const posted = await bridge.mailroom.user("ann").post("something for the coder");
    const conversationId = `conv-${posted.key}`;
    const before = await ann.call("mail/get", { conversationId });
    expect(before.conversation).toMatchObject({ status: "active", metadata: { task_status: "running" } });
    const { conversation } = await ann.call("mail/close", { conversationId });
    expect(conversation).toMatchObject({ status: "failed", metadata: { task_status: "cancelled" } });
    expect(await posted.outcome).toMatchObject({ status: "cancelled" });
    expect((await ann.request("mail/close", { conversationId })).error?.code).toBe(10001);
  });
});

describe("a remote agent of the swarm", () => {
  it("[MAP-OURS-23] receives its mail as messages, and a plain reply of the SDK answers it", async () => {
    const socket = await open(`${bridge.url.replace("http", "ws")}/map`, "member:coder");
    const agent = new AgentConnection(streamOf(socket), { name: "coder" });
    // The SDK reads nothing while a handler runs, so the handler must not wait for a response.
    agent.onMessage((message) => {
      void agent.reply(message, { text: "done" }, message.meta);
    });
    await agent.connect({ agentId: "coder" });
    const answer = await bridge.mailroom.user("ann").ask("write a test");
    expect(answer.response).toBe("coder says: done");
    const ann = await bridge.client("user:ann");
    const { conversations } = await ann.call("mail/list");
    const [{ id } = { id: "" }] = conversations as { id: string }[];
    const turns = await turnsOf(ann, id);
    const asked = turns.find(({ metadata }) => (metadata.to as string[] | undefined)?.includes("coder"));
    expect(turns.find(({ participant }) => participant === "coder")).toMatchObject({
      content: { text: "done" },
      metadata: { msg_type: "response" },
      inReplyTo: asked?.id,
    });
    await agent.disconnect();
  });

  it("[MAP-OURS-23] receives sender, content and conversation, and learns whether its reply was delivered", async () => {
    const coder = await bridge.coder();
    const posted = await bridge.mailroom.user("ann").post("write a test");
    const message = await delivery(coder, "write a test");
    expect(message).toMatchObject({
      from: "boss",
      payload: { type: "request", subject: "work", body: "write a test" },
      meta: { mail: { conversationId: `conv-${posted.key}` }, _meta: { attempt: 1 } },
    });
    const sent = await coder.call("map/send", {
      to: { agent: "boss" },
      payload: "done",
      meta: { mail: message.meta.mail },
    });
    expect(sent).toMatchObject({ delivered: ["boss"], _meta: { mail: { recorded: true } } });
    expect((await posted.outcome).status).toBe("completed");
  });

  it("[MAP-OURS-23] answers with calls, once, and only for its current attempt", async () => {
    const coder = await bridge.coder();
    const posted = await bridge.mailroom.user("ann").post("write a test");
    const { id: messageId, meta } = await delivery(coder, "write a test");
    const { attempt } = meta._meta;
    const calls = [{ name: "send_request", args: { target: "boss", subject: "hm", body: "which one?" } }];
    const early = await coder.request("mailroom/answer", { messageId, attempt: attempt + 1, calls });
    expect(early.error).toMatchObject({ code: -32602, data: { details: { reason: "stale_attempt" } } });
    const empty = await coder.request("mailroom/answer", { messageId, attempt, calls: [] });
    expect(empty.error?.code).toBe(-32602);
    await coder.call("mailroom/answer", { messageId, attempt, calls });
    expect((await coder.request("mailroom/answer", { messageId, attempt, calls })).error?.code).toBe(-32602);
    expect((await posted.outcome).status).toBe("completed");
    const ann = await bridge.client("user:ann");
    expect((await ann.request("mailroom/answer", { messageId, attempt, calls })).error?.code).toBe(1003);
  });

  it("[MAP-OURS-23] can write to its comm targets only", async () => {
    const coder = await bridge.coder();
    const posted = await bridge.mailroom.user("ann").post("write a test");
    const first = await delivery(coder, "write a test");
    const seen = coder.frames.length;
    const sent = await coder.call("map/send", {
      to: { agent: "quiet" },
      payload: "psst",
      meta: { correlationId: first.id },
    });
    expect(sent).toMatchObject({ delivered: [] });
    const told = await coder.find(
      (frame) => frame.method === "map/message" && coder.frames.indexOf(frame) >= seen,
    );
    expect(told.params?.message).toMatchObject({ from: "system" });
    await bridge.mailroom.runtime.cancel(posted.key, "test");
  });

  it("[MAP-OURS-23] receives no messages outside its tasks, and no other caller can register its name", async () => {
    await bridge.coder();
    const ann = await bridge.client("user:ann");
    const direct = await ann.request("map/send", { to: { agent: "coder" }, payload: "psst" });
    expect(direct.error).toMatchObject({ code: -32602, data: { details: { reason: "not_in_a_task" } } });
    expect((await ann.request("map/agents/register", { agentId: "coder" })).error?.code).toBe(1003);
  });

  it("[MAP-OURS-24] mail waits while the agent is disconnected, and the newest registration receives lent mail again", async () => {
    const posted = await bridge.mailroom.user("ann").post("write a test");
    const first = await bridge.coder();
    const lent = await delivery(first, "write a test");
    const second = await bridge.coder();
    const again = await delivery(second, "write a test");
    expect(again.id).toBe(lent.id);
    expect(again.meta._meta.attempt).toBeGreaterThan(lent.meta._meta.attempt);
    const late: Frame = await first.request("mailroom/answer", {
      messageId: lent.id,
      attempt: lent.meta._meta.attempt,
      calls: [{ name: "send_response", args: { target: "boss", subject: "s", body: "late" } }],
    });
    // The first connection no longer serves the agent.
    expect(late.error?.code).toBe(1003);
    second.socket.terminate();
    const third = await bridge.coder();
    const last = await delivery(third, "write a test");
    await third.call("map/send", {
      to: { agent: "boss" },
      payload: "done",
      meta: { correlationId: last.id },
    });
    expect((await posted.outcome).status).toBe("completed");
  });
});

describe("the endpoint", () => {
  it("[MAP-OURS-25] upgrades from pages of other origins are rejected, and from programs accepted", async () => {
    const url = `${bridge.url.replace("http", "ws")}/map`;
    const refused = async (where: string) => {
      const page = await open(where, "user:ann", { origin: "https://evil.example" });
      let frames = 0;
      page.on("message", () => frames++);
      page.send('{"jsonrpc":"2.0","id":1,"method":"map/connect","params":{"protocolVersion":1}}');
      const [code, reason] = await once(page, "close");
      // A page can read the reason of a close, but not the status of a rejected upgrade.
      return { code, reason: String(reason), frames };
    };
    expect(await refused(url)).toEqual({
      code: 4403,
      reason: "the page's origin is not allowed; add it to cors_origins",
      frames: 0,
    });
    (await open(url, "user:ann", { origin: bridge.url })).terminate();
    const dev = await BridgeHarness.start({ dev: true });
    const devUrl = `${dev.url.replace("http", "ws")}/map`;
    await expect(open(devUrl, "user:ann", { host: "evil.example" })).rejects.toThrow("403");
    expect(await refused(devUrl)).toMatchObject({ code: 4403, frames: 0 });
    (await open(devUrl, "user:ann", { origin: "http://localhost:5173" })).terminate();
    await dev.stop();
  });
});
