/** Reading methods under attack: bounded memory, no work for clients that do not read, and fair turns for the others. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { type FullStore, openStore } from "../../src/store/index.js";
import { Harness, type RawClient, until } from "./harness.js";

const MB = 1024 * 1024;
const TURNS = 12;
const WORDS = "x".repeat(900_000);
const PIPELINED = 64;

let store: FullStore;
let map: Harness;
let ann: RawClient;
let conversationId: string;
/** Characters of rows that the store has returned, and the most that one read returned. */
let read = 0;
let largest = 0;

beforeEach(async () => {
  store = await openStore({ path: ":memory:" });
  const plain = store.read.bind(store);
  store.read = async (...asked) => {
    const rows = await plain(...asked);
    const size = rows.reduce((sum, { data }) => sum + data.length, 0);
    read += size;
    largest = Math.max(largest, size);
    return rows;
  };
  map = await Harness.start({ store, authenticator: devAuthenticator() });
  ann = await connected("user:ann");
  const { conversation } = await ann.call("mail/create");
  conversationId = (conversation as { id: string }).id;
  for (let n = 0; n < TURNS; n++) {
    await ann.call("mail/turn", { conversationId, contentType: "x-n", content: `${n} ${WORDS}` });
  }
  read = 0;
  largest = 0;
});
afterEach(() => map.stop());

const connected = (token: string) => map.raw({ connect: { auth: { method: "bearer", token } } });

const ask = (method: string, params: object, id: unknown) =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params });

const READS = [
  ["mail/turns/list", () => ({ conversationId, limit: 500 })],
  ["mail/turns/list", () => ({ conversationId, limit: 500, order: "desc" })],
  ["mail/replay", () => ({ conversationId, limit: 500 })],
  ["mail/get", () => ({ conversationId, include: { recentTurns: 500 } })],
  ["map/replay", () => ({ limit: 1000 })],
] as const;

describe.each(READS)("%s, many at once", (method, params) => {
  it("[MAP-F-1] is not read for a client that does not read its answers, and is read when it does", async () => {
    ann.socket.pause();
    for (let n = 0; n < PIPELINED; n++) ann.send(ask(method, params(), n));
    // Another client of the same server is answered meanwhile.
    const bob = await connected("user:bob");
    for (let n = 0; n < 20; n++) await bob.call("mail/list");
    await until(() => map.map.memory.total > MB);
    for (let n = 0; n < 20; n++) await bob.call("mail/list");
    expect(map.map.memory.total).toBeLessThan(8 * MB);
    expect(read).toBeLessThan(16 * MB);
    expect(largest).toBeLessThan(3 * MB);
    ann.socket.resume();
    await until(() => ann.answered > PIPELINED);
    expect(ann.socket.readyState).toBe(ann.socket.OPEN);
    expect(largest).toBeLessThan(3 * MB);
  });

  it("[MAP-F-1] ends with its connection", async () => {
    ann.socket.pause();
    for (let n = 0; n < PIPELINED; n++) ann.send(ask(method, params(), n));
    await until(() => map.map.memory.total > MB);
    ann.socket.terminate();
    await until(() => map.map.memory.total === 0);
    const bob = await connected("user:bob");
    for (let n = 0; n < 20; n++) await bob.call("mail/list");
    expect(read).toBeLessThan(16 * MB);
  });
});

it("[MAP-F-1] one caller's connections together hold a limited amount, and lose the largest first", async () => {
  await map.stop();
  const limit = 4 * MB;
  map = await Harness.start({ authenticator: devAuthenticator(), limits: { maxMemoryPerCaller: limit } });
  const bob = await connected("user:bob");
  ann = await connected("user:ann");
  const { conversation } = await ann.call("mail/create");
  const { id } = conversation as { id: string };
  const others = await Promise.all(Array.from({ length: 5 }, () => connected("user:ann")));
  for (const one of others) {
    await one.call("map/subscribe");
    one.socket.pause();
  }
  const isLost = () =>
    [...map.map.context.sessions.inSpace("")].some(({ connection }) => connection === undefined);
  for (let n = 0; n < 100 && !isLost(); n++) {
    ann.send(ask("mail/turn", { conversationId: id, contentType: "x-n", content: WORDS }, n));
    await bob.call("mail/list");
    expect(map.map.memory.total).toBeLessThan(limit + others.length * MB);
  }
  expect(isLost()).toBe(true);
  await bob.call("mail/list");
});

it("[MAP-F-1] a caller that pipelines cheap requests leaves others their turn", async () => {
  const bob = await connected("user:bob");
  const before = ann.answered;
  const flood = ask("map/agents/list", {}, "f");
  for (let n = 0; n < 20_000; n++) ann.send(flood);
  await bob.call("map/agents/list");
  // Without turns, everything that has arrived is processed first.
  expect(ann.answered - before).toBeLessThan(15_000);
  await until(() => ann.answered - before === 20_000);
});

describe("one caller's reads leave others their turn", () => {
  it.each([
    ["map/agents/get", () => ({ agentId: "kid", include: { siblings: true } })],
    ["map/agents/list", () => ({})],
    ["map/structure/graph", () => ({})],
    ["mail/get", () => ({ conversationId, include: { stats: true } })],
    ["mail/turns/list", () => ({ conversationId, limit: 1, filter: { participantId: "nobody" } })],
    ["mail/summary", () => ({ conversationId })],
    ["mail/presence", () => ({ conversationId })],
    ["mailroom/unread", () => ({ conversationIds: [conversationId] })],
  ] as const)("[MAP-F-1, MAP-F-8] %s", async (method, params) => {
    const bob = await connected("user:bob");
    for (const agentId of ["parent", "kid", "sibling"]) {
      await ann.call("map/agents/register", { agentId, ...(agentId !== "parent" && { parent: "parent" }) });
    }
    await ann.call("mail/summary", { conversationId });
    const before = ann.answered;
    const asked = ask(method, params(), "f");
    for (let n = 0; n < PIPELINED; n++) ann.send(asked);
    await bob.call("map/agents/list");
    // Without turns, all of them are answered in the same turn of the event loop.
    expect(ann.answered - before).toBeLessThan(PIPELINED / 2);
    await until(() => ann.answered - before === PIPELINED);
  });
});

it("[MAP-F-8] related agents in one answer are limited in bytes, and the cut lists are named", async () => {
  await ann.call("map/agents/register", { agentId: "parent" });
  for (let n = 0; n < 100; n++) {
    const metadata = { text: "x".repeat(15_000) };
    await ann.call("map/agents/register", { agentId: `kid-${n}`, parent: "parent", metadata });
  }
  const include = { children: true, descendants: true };
  const answer = await ann.call("map/agents/get", { agentId: "parent", include });
  expect(JSON.stringify(answer).length).toBeLessThan(1.2 * MB);
  expect(answer).toMatchObject({ _meta: { cut: ["children", "descendants"] } });
});
