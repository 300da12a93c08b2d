/** Values that are nested deeply: refused on arrival, and readable if an earlier build has stored them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { MAX_JSON_DEPTH } from "../../src/base/index.js";
import { Harness, type RawClient, until } from "./harness.js";

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

/** Counts without recursion. */
function levelsOf(value: unknown): number {
  let levels = 0;
  for (let inner = value; Array.isArray(inner); inner = inner[0]) levels++;
  return levels;
}

let map: Harness;
let ann: RawClient;
let conversationId: string;

beforeEach(async () => {
  map = await Harness.start();
  ann = await map.raw({ connect: { participantType: "client" } });
  const { conversation } = await ann.call("mail/create");
  conversationId = (conversation as { id: string }).id;
});
afterEach(() => map.stop());

async function requestNested(method: string, params: object, levels: number) {
  const id = `${method}-${levels}`;
  const text = JSON.stringify({ jsonrpc: "2.0", id, method, params });
  ann.send(text.replace('"HOLE"', nested(levels)));
  return ann.find((frame) => frame.id === id);
}

it("[MAP-F-7] a frame that is nested too deeply is refused with the limit, and changes nothing", async () => {
  const turn = { conversationId, contentType: "x-deep", content: "HOLE" };
  // The frame and its params are two levels.
  for (const levels of [MAX_JSON_DEPTH - 1, 1_000, 4_109, 20_000, 200_000]) {
    expect(await requestNested("mail/turn", turn, levels)).toMatchObject({
      error: {
        code: -32602,
        message: "the frame is nested more than 64 levels deep",
        data: { details: { reason: "too_deep", limit: MAX_JSON_DEPTH } },
      },
    });
    expect(
      await requestNested("map/send", { to: { broadcast: true }, payload: "HOLE" }, levels),
    ).toMatchObject({ error: { code: -32602, data: { details: { reason: "too_deep" } } } });
  }
  expect((await ann.call("mail/turns/list", { conversationId })).turns).toEqual([]);
  await requestNested("mail/turn", turn, MAX_JSON_DEPTH - 2);
  const { turns } = await ann.call("mail/turns/list", { conversationId });
  expect((turns as { content: unknown }[]).map(({ content }) => levelsOf(content))).toEqual([
    MAX_JSON_DEPTH - 2,
  ]);
  expect(map.problems).toEqual([]);
});

it("[MAP-F-7] a deep turn of an earlier build can be read by every method, live and in replays", async () => {
  await map.stop();
  const directory = await mkdtemp(join(tmpdir(), "mailroom-nested-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  map = await Harness.start({ directory });
  ann = await map.raw({ connect: { participantType: "client" } });
  const { conversation } = await ann.call("mail/create");
  ({ id: conversationId } = conversation as { id: string });
  await ann.call("mail/turn", { conversationId, contentType: "x-deep", content: "HOLE" });
  await ann.call("mail/turn", { conversationId, contentType: "text", content: "after" });
  await map.stop();
  const levels = 20_000;
  const database = new Database(join(directory, "mailroom.db"));
  const changed = database
    .prepare("UPDATE journal SET data = replace(data, '\"HOLE\"', ?) WHERE data LIKE '%HOLE%'")
    .run(nested(levels));
  expect(changed.changes).toBe(1);
  database.close();

  map = await Harness.start({ directory });
  ann = await map.raw({ connect: { participantType: "client" } });
  const contentsOf = async (method: string, params: object, field = "turns") => {
    const found = (await ann.call(method, params))[field];
    return (found as { content: unknown }[]).map(({ content }) => levelsOf(content));
  };
  expect(await contentsOf("mail/turns/list", { conversationId })).toEqual([levels, 0]);
  expect(await contentsOf("mail/replay", { conversationId })).toEqual([levels, 0]);
  const recent = { conversationId, include: { recentTurns: 5 } };
  expect(await contentsOf("mail/get", recent, "recentTurns")).toEqual([0, levels]);
  const filter = { eventTypes: ["mail.turn.added"] };
  const { events } = await ann.call("map/replay", { filter });
  const replayed = events as { event: { data: { turn: { content: unknown } } } }[];
  expect(replayed.map(({ event }) => levelsOf(event.data.turn.content))).toEqual([levels, 0]);
  await ann.call("map/subscribe", { filter, replayFrom: 0 });
  await until(() => ann.events().length >= 2);
  const followed = ann.events().map(({ event }) => event.data.turn as { content: unknown });
  expect(followed.map(({ content }) => levelsOf(content))).toEqual([levels, 0]);
  await ann.call("mail/summary", { conversationId });
  expect(map.problems).toEqual([]);
});
