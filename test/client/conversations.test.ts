/** Tests the conversation client against a real server. */
import { type AddressInfo, createServer } from "node:net";
import { afterEach, beforeEach, expect, expectTypeOf, it } from "vitest";
import { WebSocket } from "ws";
import type { z } from "zod";
import { devAuthenticator } from "../../src/auth/index.js";
import type { Summary, SummaryOptions } from "../../src/client/conversations-wire.js";
import {
  type Conversation,
  ConversationClient,
  type ConversationClientOptions,
  type ConversationEvent,
  type ConversationTurn,
  type MapMethods,
  type Participant,
  type Thread,
} from "../../src/client/index.js";
import type { MailEvent } from "../../src/conversations/rules/events.js";
import type * as params from "../../src/conversations/rules/params.js";
import type { SummaryParams } from "../../src/conversations/rules/params.js";
import type * as server from "../../src/conversations/rules/types.js";
import type { ConversationService } from "../../src/conversations/service/conversation-service.js";
import type { SummaryResult } from "../../src/conversations/service/summary-range.js";
import { BridgeHarness } from "../map/bridge-harness.js";
import { Harness } from "../map/harness.js";

/** The server's types are those of parsed JSON; the client also accepts lists that it may not change. */
type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;

let house: BridgeHarness;

beforeEach(async () => {
  house = await BridgeHarness.start();
});

afterEach(() => house.stop());

const connect = (token: string, options: ConversationClientOptions = {}) =>
  ConversationClient.connect(house.url, { token, ...options });

it("lists, reads, posts to and closes conversations, page by page", async () => {
  const ann = await connect("user:ann");
  const created: string[] = [];
  for (let n = 0; n < 55; n++) created.push((await ann.create({ subject: `${n}` })).id);
  const listed: string[] = [];
  for await (const { id } of ann.list()) listed.push(id);
  expect(listed).toEqual(created);
  const [first = ""] = created;
  for (let n = 0; n < 55; n++) await ann.say(first, `word ${n}`);
  const words: unknown[] = [];
  for await (const { content } of ann.turns(first)) words.push(content);
  expect(words).toEqual(Array.from({ length: 55 }, (_, n) => ({ text: `word ${n}` })));
  const newest: unknown[] = [];
  for await (const { content } of ann.turns(first, { order: "desc", pageSize: 10 })) newest.push(content);
  expect(newest).toEqual(words.toReversed());
  const latest: string[] = [];
  for await (const { id } of ann.list({ status: ["active"] }, { order: "desc", pageSize: 7 }))
    latest.push(id);
  expect(latest).toEqual(created.toReversed());
  expect(await ann.closeConversation(first)).toMatchObject({ status: "completed" });
  await expect(ann.say(first, "more")).rejects.toMatchObject({ code: "refused", number: 10001 });
  ann.close();
});

it("follows a task to its end, makes calls meanwhile, and continues after the last event", async () => {
  const ann = await connect("user:ann");
  const events = await ann.follow();
  await house.mailroom.user("ann").ask("look");
  let last = "";
  let turns = 0;
  for await (const { id, type, data } of events) {
    if (type === "mail.turn.added") {
      turns++;
      // Calls while following do not stop the events.
      expect((await ann.get(String(data.conversationId))).conversation.type).toBe("user-session");
    }
    last = id;
    if (type === "mail.closed") break;
  }
  expect(turns).toBeGreaterThan(1);
  ann.close();
  const { id } = await (await connect("user:ann")).create();
  const again = await connect("user:ann");
  const next = await (await again.follow({ after: last })).next();
  expect(next.value).toMatchObject({ type: "mail.created", data: { conversationId: id } });
});

it("without reconnects fails when the connection is lost, and says with which code", async () => {
  const ann = await connect("user:ann", { reconnects: 0 });
  const events = await ann.follow();
  await house.map.close();
  const lost = { code: "connection_lost", closing: { code: expect.any(Number) } };
  await expect(events.next()).rejects.toMatchObject(lost);
  await expect(ann.get("conv-1")).rejects.toMatchObject(lost);
  await expect(ann.finished).rejects.toMatchObject(lost);
  expect(ann.state).toMatchObject({ status: "closed", error: lost });
});

it("closes everything at once: calls fail, iterations end, and nothing stays open", async () => {
  const states: string[] = [];
  const ann = await connect("user:ann", { onState: ({ status }) => states.push(status) });
  const { id } = await ann.create();
  const events = await ann.follow();
  const next = events.next();
  const call = ann.get(id);
  ann.close();
  expect(await next).toEqual({ done: true, value: undefined });
  await expect(call).rejects.toMatchObject({ code: "closed" });
  await expect(ann.get(id)).rejects.toMatchObject({ code: "closed" });
  await expect(ann.follow()).rejects.toMatchObject({ code: "closed" });
  await ann.finished;
  expect(states).toEqual(["connecting", "open", "closed"]);
});

it("stops waiting when a signal aborts: connecting, calling, following", async () => {
  const reason = new Error("enough");
  const aborted = AbortSignal.abort(reason);
  await expect(connect("user:ann", { signal: aborted })).rejects.toBe(reason);
  const stop = new AbortController();
  const ann = await connect("user:ann", { signal: stop.signal });
  await expect(ann.get("conv-1", { signal: aborted })).rejects.toBe(reason);
  await expect(ann.follow({ signal: aborted })).rejects.toBe(reason);
  const one = new AbortController();
  const events = await ann.follow({ signal: one.signal });
  const next = events.next();
  one.abort(reason);
  expect(await next).toEqual({ done: true, value: undefined });
  stop.abort(reason);
  await ann.finished;
  expect(ann.state).toMatchObject({ status: "closed" });
});

it("has a typed method for the whole life of a conversation", async () => {
  const ann = await connect("user:ann");
  const bob = await connect("user:bob");
  const { id } = await ann.create({ subject: "Lunch" });
  expect(await ann.invite(id, { id: "user:bob" }, { message: "come" })).toMatchObject({
    participant: { id: "user:bob", role: "assistant" },
  });
  expect(await ann.invite(id, { id: "cook" })).toMatchObject({ invitation: expect.any(String) });
  const soup = await ann.say(id, "Soup?");
  expect(await bob.unread([id])).toMatchObject([{ conversationId: id, unread: 1 }]);
  expect(await bob.markRead(id, soup.id)).toMatchObject({ unread: 0 });
  const found: string[] = [];
  for await (const turn of bob.search("soup")) found.push(turn.id);
  expect(found).toEqual([soup.id]);
  expect(await ann.presence(id)).toContainEqual(
    expect.objectContaining({ participantId: "user:bob", presence: "online" }),
  );
  const thread = await bob.createThread(id, soup.id, { subject: "which" });
  const threads: string[] = [];
  for await (const one of bob.threads(id)) threads.push(one.id);
  expect(threads).toEqual([thread.id]);
  const draft = await bob.addTurn(id, {
    contentType: "data",
    content: { price: 12 },
    threadId: thread.id,
    status: "streaming",
  });
  await bob.updateTurn(id, draft.id, "complete");
  expect(await ann.setMember(id, "user:bob", { role: "moderator" })).toMatchObject({ role: "moderator" });
  expect(await bob.pause(id, "lunch break")).toMatchObject({ status: "paused" });
  expect(await bob.reopen(id)).toMatchObject({ status: "active" });
  await bob.leave(id);
  expect(await bob.join(id)).toMatchObject({ participant: { id: "user:bob" } });
  expect(await ann.closeConversation(id, "done", { status: "failed" })).toMatchObject({ status: "failed" });
  expect(await ann.archive(id)).toMatchObject({ status: "archived" });
  await ann.deleteConversation(id);
  await expect(ann.get(id)).rejects.toMatchObject({ number: 10000 });
  for (const client of [ann, bob]) client.close();
});

it("has the server's types of a summary, which it cannot import", () => {
  expectTypeOf<Summary>().toEqualTypeOf<SummaryResult>();
  expectTypeOf<SummaryOptions & { conversationId: string }>().toExtend<SummaryParams>();
});

it("has the server's types of parameters and results, which it cannot import", () => {
  type Params<Method extends keyof MapMethods> = Mutable<MapMethods[Method]["params"]>;
  type Result<Method extends keyof MapMethods> = MapMethods[Method]["result"];
  expectTypeOf<Params<"mail/create">>().toExtend<z.input<typeof params.createParams>>();
  expectTypeOf<Params<"mail/list">>().toExtend<params.ListParams>();
  expectTypeOf<Params<"mail/get">>().toExtend<z.input<typeof params.getParams>>();
  expectTypeOf<Params<"mail/close">>().toExtend<params.CloseParams>();
  expectTypeOf<Params<"mail/join">>().toExtend<params.JoinParams>();
  expectTypeOf<Params<"mail/leave">>().toExtend<params.LeaveParams>();
  expectTypeOf<Params<"mail/invite">>().toExtend<params.InviteParams>();
  expectTypeOf<Omit<Params<"mail/turn">, "content">>().toExtend<Omit<params.TurnParams, "content">>();
  expectTypeOf<Params<"mail/turns/list">>().toExtend<params.TurnsListParams>();
  expectTypeOf<Params<"mail/thread/create">>().toExtend<params.ThreadCreateParams>();
  expectTypeOf<Params<"mail/thread/list">>().toExtend<params.ThreadListParams>();
  expectTypeOf<Params<"mail/summary">>().toExtend<params.SummaryParams>();
  expectTypeOf<Params<"mail/replay">>().toExtend<params.ReplayParams>();
  expectTypeOf<Params<"mailroom/member">>().toExtend<params.MemberParams>();
  expectTypeOf<Params<"mailroom/turn/update">>().toExtend<params.TurnUpdateParams>();
  expectTypeOf<Conversation>().toEqualTypeOf<server.Conversation>();
  expectTypeOf<ConversationTurn>().toEqualTypeOf<server.Turn>();
  expectTypeOf<server.Participant>().toExtend<Participant>();
  expectTypeOf<Participant>().toExtend<server.Participant>();
  expectTypeOf<Thread>().toEqualTypeOf<server.Thread>();
  type Service = InstanceType<typeof ConversationService>;
  expectTypeOf<Awaited<ReturnType<Service["create"]>>>().toExtend<Result<"mail/create">>();
  expectTypeOf<Awaited<ReturnType<Service["get"]>>>().toExtend<Result<"mail/get">>();
  expectTypeOf<keyof Awaited<ReturnType<Service["get"]>>>().toEqualTypeOf<keyof Result<"mail/get">>();
  expectTypeOf<Awaited<ReturnType<Service["listTurns"]>>>().toExtend<Result<"mail/turns/list">>();
  expectTypeOf<Awaited<ReturnType<Service["listThreads"]>>>().toExtend<Result<"mail/thread/list">>();
  expectTypeOf<Awaited<ReturnType<Service["replay"]>>>().toExtend<Result<"mail/replay">>();
  expectTypeOf<Awaited<ReturnType<Service["join"]>>>().toExtend<Result<"mail/join">>();
  expectTypeOf<Awaited<ReturnType<Service["invite"]>>>().toExtend<Result<"mail/invite">>();
  expectTypeOf<MailEvent["type"]>().toExtend<ConversationEvent["type"]>();
});

it("does not connect without a required token, and leaves nothing open", async () => {
  const strict = await Harness.start({ authenticator: devAuthenticator(), authRequired: true });
  try {
    for (const token of [undefined, "nobody"]) {
      let socket: WebSocket | undefined;
      const connecting = ConversationClient.connect(strict.url, {
        ...(token !== undefined && { token }),
        open: (url) => {
          socket = new WebSocket(url);
          return socket;
        },
      });
      await expect(connecting).rejects.toMatchObject({
        code: "refused",
        number: token === undefined ? 1000 : 1001,
      });
      expect(socket?.readyState).toBeGreaterThanOrEqual(WebSocket.CLOSING);
    }
  } finally {
    await strict.stop();
  }
});

it("does not wait forever for a server that accepts connections and never answers", async () => {
  const silent = createServer((socket) => void socket.on("error", () => {}).resume());
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as AddressInfo;
  const connecting = ConversationClient.connect(`http://127.0.0.1:${port}`, {
    timeout: 50,
  });
  await expect(connecting).rejects.toMatchObject({ code: "unreachable" });
  // It does not close while a client is connected.
  await new Promise((resolve) => silent.close(resolve));
});

it("gives every event to a slow reader, with a bounded queue", async () => {
  const ann = await connect("user:ann");
  const { id } = await ann.create();
  let subscriptions = 0;
  const slow = await connect("user:ann", {
    open: (url) => {
      const socket = new WebSocket(url);
      const send = socket.send.bind(socket);
      socket.send = (text: string) => {
        if (text.includes('"map/subscribe"')) subscriptions++;
        send(text);
      };
      return socket;
    },
  });
  const events = await slow.follow({ conversationId: id });
  // More than the queue holds, while the consumer does not read.
  const wanted: string[] = [];
  for (let n = 0; n < 25; n++) {
    const turns = await Promise.all(Array.from({ length: 500 }, () => ann.say(id, "x")));
    wanted.push(...turns.map((turn) => turn.id));
  }
  const seen: string[] = [];
  for await (const event of events) {
    if (event.type === "mail.turn.added") seen.push(event.data.turn.id);
    if (seen.length === wanted.length) break;
  }
  expect(seen).toEqual(wanted.toSorted());
  expect(subscriptions).toBeGreaterThan(1);
  ann.close();
  slow.close();
}, 60_000);
