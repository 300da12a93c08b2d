/** Tests the conversation client against a real server. */
import { type AddressInfo, createServer } from "node:net";
import { afterEach, beforeEach, expect, expectTypeOf, it } from "vitest";
import { WebSocket } from "ws";
import { devAuthenticator } from "../../src/auth/index.js";
import type { Summary, SummaryOptions } from "../../src/client/conversations-wire.js";
import { ConversationClient } from "../../src/client/index.js";
import type { SummaryParams } from "../../src/conversations/rules/params.js";
import type { SummaryResult } from "../../src/conversations/service/summary-range.js";
import { BridgeHarness } from "../map/bridge-harness.js";
import { Harness } from "../map/harness.js";

let house: BridgeHarness;

beforeEach(async () => {
  house = await BridgeHarness.start();
});

afterEach(() => house.stop());

const connect = (token: string) =>
  ConversationClient.connect(house.url, { token, open: (url) => new WebSocket(url) });

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

it("fails when the connection is lost", async () => {
  const ann = await connect("user:ann");
  const events = await ann.follow();
  await house.map.close();
  await expect(events.next()).rejects.toMatchObject({ code: "connection_lost" });
  await expect(ann.get("conv-1")).rejects.toMatchObject({ code: "connection_lost" });
});

it("has the server's types of a summary, which it cannot import", () => {
  expectTypeOf<Summary>().toEqualTypeOf<SummaryResult>();
  expectTypeOf<SummaryOptions & { conversationId: string }>().toExtend<SummaryParams>();
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
    open: (url) => new WebSocket(url),
  });
  await expect(connecting).rejects.toMatchObject({ code: "unreachable" });
  // It does not close while a client is connected.
  await new Promise((resolve) => silent.close(resolve));
});

it("yields no event to a slow reader after events were dropped", async () => {
  const ann = await connect("user:ann");
  const { id } = await ann.create();
  const events = await ann.follow({ conversationId: id });
  const bob = await connect("user:ann");
  // More than the queue holds.
  for (let n = 0; n < 21; n++) await Promise.all(Array.from({ length: 500 }, () => bob.say(id, "x")));
  await ann.say(id, "the last one");
  await expect(events.next()).rejects.toMatchObject({ code: "too_slow" });
  ann.close();
  bob.close();
});
