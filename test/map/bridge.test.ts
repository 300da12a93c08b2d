/** Tasks as conversations, and agents of the swarm in other processes (decisions F4, F5). */
import { AgentConnection } from "@multi-agent-protocol/sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BridgeHarness, delivery, open } from "./bridge-harness.js";
import { type Frame, type RawClient, streamOf, until } from "./harness.js";

let house: BridgeHarness;

beforeEach(async () => {
  house = await BridgeHarness.start();
});

afterEach(async () => {
  await house.stop();
  expect(house.problems).toEqual([]);
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

/** A task of Ann's that has looked something up and is complete. */
async function finished(): Promise<{ conversationId: string; taskId: string }> {
  const posted = await house.mailroom.user("ann").post("look for keys");
  await posted.outcome;
  return { conversationId: `conv-${posted.key}`, taskId: posted.taskId };
}

describe("a task as a conversation", () => {
  it("[MAP-OURS-20] has its user and agents as participants, and its messages and actions as turns", async () => {
    const ann = await house.client("user:ann");
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

  it("[MAP-OURS-20] pages, replays and is summarised like any other, without what is internal", async () => {
    const ann = await house.client("user:ann");
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

  it("[MAP-OURS-21] exists for its owner and for admins, and for nobody else by any door", async () => {
    const { conversationId } = await finished();
    const ann = await house.client("user:ann");
    const root = await house.client("admin:root");
    const [first] = await turnsOf(ann, conversationId);
    expect(await turnsOf(root, conversationId)).toEqual(await turnsOf(ann, conversationId));
    // Clients of a server in development may watch, but not this; and an agent sees what it is sent, no more.
    const bob = await house.client("user:bob");
    const coder = await house.coder();
    const root2 = await house.client("user:root");
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
      // A member creates no conversations at all, whatever they begin at.
      expect(error?.code).toBe(stranger === coder ? 10003 : 10000);
      expect(await stranger.call("mail/list")).toMatchObject({ conversations: [] });
      const replayed = await stranger.call("map/replay", { filter: { eventTypes: ["mail.*"] }, limit: 1000 });
      expect(replayed.events).toEqual([]);
      const one = await stranger.call("map/replay", { filter: { mail: { conversationId } } });
      expect(one.events).toEqual([]);
    }
  });

  it("[MAP-OURS-21] tells its owner and admins live what it tells them in replay, and others nothing", async () => {
    const watchers = await Promise.all(
      ["user:ann", "admin:root", "user:bob"].map((who) => house.client(who)),
    );
    const [ann, root, bob] = watchers;
    if (ann === undefined || root === undefined || bob === undefined) throw new Error("three are connected");
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
    // Bob's own conversation comes through the same subscription: had there been more, it had come first.
    await bob.call("mail/create", {});
    await until(() => bob.events().length > 0);
    expect(bob.events().every(({ event }) => event.data.conversationId !== conversationId)).toBe(true);
  });

  it("[MAP-OURS-20] stands in one list with native conversations, in the order of creation, in pages", async () => {
    const ann = await house.client("user:ann");
    const first = await finished();
    const native = await ann.call("mail/create", { subject: "lunch" });
    const second = await finished();
    await house.mailroom.user("bob").ask("look out");
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
    const root = await house.client("admin:root");
    expect((await root.call("mail/list")).conversations).toHaveLength(4);
  });

  it("[MAP-OURS-22] what its owner says in it is a message to the task, which goes on", async () => {
    const ann = await house.client("user:ann");
    await ann.call("map/subscribe", { filter: { eventTypes: ["mail.closed"] } });
    const { conversationId } = await finished();
    const { turn } = await ann.call("mail/turn", {
      conversationId,
      contentType: "text",
      content: { text: "look again" },
    });
    expect(turn).toMatchObject({ participant: "user:ann", content: { text: "look again" } });
    // Each completion closes it.
    await until(() => ann.events().length >= 2);
    const turns = await turnsOf(ann, conversationId);
    const at = turns.findIndex(({ contentType }) => contentType === "event");
    expect(turns[at]).toMatchObject({ content: { event: "task_resumed" } });
    expect(turns[at + 1]).toEqual(turn);
    const { conversation } = await ann.call("mail/get", { conversationId });
    expect(conversation).toMatchObject({ status: "completed" });
  });

  it("[MAP-OURS-22] nobody but its owner writes into it, and only text", async () => {
    const { conversationId } = await finished();
    const root = await house.client("admin:root");
    const words = { conversationId, contentType: "text", content: { text: "hm" } };
    expect((await root.request("mail/turn", words)).error?.code).toBe(10003);
    const ann = await house.client("user:ann");
    const data = await ann.request("mail/turn", { conversationId, contentType: "data", content: {} });
    expect(data.error?.code).toBe(10008);
    for (const [method, params] of [
      ["mail/join", {}],
      ["mail/leave", {}],
      ["mail/invite", { participant: { id: "user:bob" } }],
      ["mail/thread/list", {}],
      ["mail/thread/create", { rootTurnId: "turn-1" }],
    ] as const) {
      const { error } = await ann.request(method, { conversationId, ...params });
      expect({ method, code: error?.code, details: error?.data?.details }).toMatchObject({
        method,
        code: 10003,
        details: { reason: "task_conversation" },
      });
    }
  });

  it("[MAP-OURS-22] closing it cancels the task", async () => {
    const ann = await house.client("user:ann");
    const posted = await house.mailroom.user("ann").post("something for the coder");
    const conversationId = `conv-${posted.key}`;
    const before = await ann.call("mail/get", { conversationId });
    expect(before.conversation).toMatchObject({ status: "active", metadata: { task_status: "running" } });
    const { conversation } = await ann.call("mail/close", { conversationId });
    expect(conversation).toMatchObject({ status: "failed", metadata: { task_status: "cancelled" } });
    expect(await posted.outcome).toMatchObject({ status: "cancelled" });
    expect((await ann.request("mail/close", { conversationId })).error?.code).toBe(10001);
  });
});

describe("an agent of the swarm in another process", () => {
  it("[MAP-OURS-23] gets its mail as messages, and a plain reply of the SDK is its answer", async () => {
    const socket = await open(`${house.url.replace("http", "ws")}/map`, "member:coder");
    const agent = new AgentConnection(streamOf(socket), { name: "coder" });
    // The SDK reads nothing while a handler is under way, so that one must not wait for an answer.
    agent.onMessage((message) => {
      void agent.reply(message, { text: "done" }, message.meta);
    });
    await agent.connect({ agentId: "coder" });
    const answer = await house.mailroom.user("ann").ask("write a test");
    expect(answer.response).toBe("coder says: done");
    const ann = await house.client("user:ann");
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

  it("[MAP-OURS-23] is told who writes, what, and where, and learns what became of its reply", async () => {
    const coder = await house.coder();
    const posted = await house.mailroom.user("ann").post("write a test");
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

  it("[MAP-OURS-23] answers with calls, once, for the attempt it was given", async () => {
    const coder = await house.coder();
    const posted = await house.mailroom.user("ann").post("write a test");
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
    const ann = await house.client("user:ann");
    expect((await ann.request("mailroom/answer", { messageId, attempt, calls })).error?.code).toBe(1003);
  });

  it("[MAP-OURS-23] writes to its comm targets only", async () => {
    const coder = await house.coder();
    const posted = await house.mailroom.user("ann").post("write a test");
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
    await house.mailroom.runtime.cancel(posted.key, "test");
  });

  it("[MAP-OURS-23] is not reached past its tasks, nor by others under its name", async () => {
    await house.coder();
    const ann = await house.client("user:ann");
    const direct = await ann.request("map/send", { to: { agent: "coder" }, payload: "psst" });
    expect(direct.error).toMatchObject({ code: -32602, data: { details: { reason: "not_in_a_task" } } });
    expect((await ann.request("map/agents/register", { agentId: "coder" })).error?.code).toBe(1003);
  });

  it("[MAP-OURS-24] mail waits while it is away, and the newest registration takes over what was lent", async () => {
    const posted = await house.mailroom.user("ann").post("write a test");
    const first = await house.coder();
    const lent = await delivery(first, "write a test");
    const second = await house.coder();
    const again = await delivery(second, "write a test");
    expect(again.id).toBe(lent.id);
    expect(again.meta._meta.attempt).toBeGreaterThan(lent.meta._meta.attempt);
    const late: Frame = await first.request("mailroom/answer", {
      messageId: lent.id,
      attempt: lent.meta._meta.attempt,
      calls: [{ name: "send_response", args: { target: "boss", subject: "s", body: "late" } }],
    });
    // It serves the agent no longer.
    expect(late.error?.code).toBe(1003);
    second.socket.terminate();
    const third = await house.coder();
    const last = await delivery(third, "write a test");
    await third.call("map/send", {
      to: { agent: "boss" },
      payload: "done",
      meta: { correlationId: last.id },
    });
    expect((await posted.outcome).status).toBe("completed");
  });
});

describe("the door", () => {
  it("[MAP-OURS-25] turns foreign pages away, and lets programs in", async () => {
    const url = `${house.url.replace("http", "ws")}/map`;
    await expect(open(url, "user:ann", { origin: "https://evil.example" })).rejects.toThrow("403");
    (await open(url, "user:ann", { origin: house.url })).terminate();
    const dev = await BridgeHarness.start({ dev: true });
    const devUrl = `${dev.url.replace("http", "ws")}/map`;
    await expect(open(devUrl, "user:ann", { host: "evil.example" })).rejects.toThrow("403");
    await expect(open(devUrl, "user:ann", { origin: "https://evil.example" })).rejects.toThrow("403");
    (await open(devUrl, "user:ann", { origin: "http://localhost:5173" })).terminate();
    await dev.stop();
  });
});
