/** Ten thousand invalid frames: precise errors, other clients unaffected, the server still running. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { Harness, type RawClient, text, until } from "./harness.js";

let map: Harness;
beforeEach(async () => {
  // Clients that send malformed frames are disconnected; here every frame matters.
  const many = 1_000_000_000;
  map = await Harness.start({
    limits: {
      maxMalformed: many,
      maxMalformedPerAddress: many,
      maxFramesBeforeConnect: many,
      maxBytesBeforeConnect: many,
    },
  });
});
afterEach(async () => {
  await map.stop();
  expect(map.problems).toEqual([]);
});

const METHODS = () => [...map.map.methods.keys()].filter((method) => method !== "map/disconnect");

const odd = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(
    "",
    "conv-x",
    "turn-x",
    "\u0000",
    "__proto__",
    -1,
    1e308,
    null,
    true,
    [],
    {},
    "x".repeat(5000),
  ),
);

const FIELDS = [
  "conversationId",
  "type",
  "role",
  "participant",
  "contentType",
  "content",
  "visibility",
  "filter",
  "limit",
  "cursor",
  "order",
  "catchUp",
  "include",
  "scope",
  "initialParticipants",
  "initialTurn",
  "metadata",
  "permissions",
  "rootTurnId",
  "threadId",
  "fromTurnId",
  "fromTimestamp",
  "to",
  "payload",
  "meta",
  "agentId",
  "scopeId",
  "subscriptionId",
  "afterEventId",
  "replayFrom",
  "auth",
  "resumeToken",
  "protocolVersion",
  "participantType",
  "method",
  "credential",
  "_meta",
  "__proto__",
  "constructor",
];

const params = fc.oneof(odd, fc.dictionary(fc.constantFrom(...FIELDS), odd, { maxKeys: 6 }));

/** All kinds of invalid input, from bytes that are not JSON to well-formed requests without meaning. */
const frame = () =>
  fc.oneof(
    fc.string({ maxLength: 60, unit: "binary" }),
    fc.json({ maxDepth: 3 }),
    fc.json({ maxDepth: 3 }).map((json) => json.slice(0, -1)),
    fc
      .array(fc.constant({ jsonrpc: "2.0", id: 1, method: "mail/list" }))
      .map((batch) => JSON.stringify(batch)),
    fc
      .record({ jsonrpc: odd, id: odd, method: odd, params: odd }, { requiredKeys: [] })
      .map((one) => JSON.stringify(one)),
    fc
      .record({
        id: fc.oneof(fc.string(), fc.integer()),
        method: fc.constantFrom(...METHODS(), "toString", "mail/none"),
        params,
      })
      .map((one) => JSON.stringify({ jsonrpc: "2.0", ...one })),
    fc
      .record({ method: fc.constantFrom(...METHODS(), "map/subscribe.ack", "constructor"), params })
      .map((one) => JSON.stringify({ jsonrpc: "2.0", ...one })),
  );

/** The expected reaction: a response with this id, a response without an id, or none. */
function owed(text_: string): { readonly id: unknown } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text_);
  } catch {
    return { id: null };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { id: null };
  const fields = new Map<string, unknown>(Object.entries(value));
  const id = fields.get("id");
  const exact = typeof id === "number" && (!Number.isInteger(id) || Number.isSafeInteger(id));
  const known = typeof id === "string" || exact || id === null ? id : null;
  if (fields.get("jsonrpc") !== "2.0") return { id: known };
  if (fields.has("method") === false && (fields.has("result") || fields.has("error"))) return undefined;
  if (typeof fields.get("method") !== "string") return { id: known };
  if (!fields.has("id")) return undefined;
  return { id: known };
}

const ALLOWED = new Set([
  -32700, -32600, -32601, -32602, 1000, 1001, 1003, 2000, 2001, 2002, 3000, 3001, 4002, 5000, 10000, 10001,
  10002, 10003, 10004, 10005, 10006, 10007, 10008, 10009,
]);

async function assertUndisturbed(good: RawClient, conversationId: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await good.call("mail/turn", { conversationId, ...text(`${n}`) });
}

describe("malformed frames", () => {
  it("[MAP-OURS-04] 10,000 generated frames each get the right response", async () => {
    const good = await map.raw();
    const { conversation } = await good.call("mail/create", {});
    const { id: conversationId } = conversation as { id: string };
    const frames = fc.sample(frame(), { numRuns: 10_000 });
    let answered = 0;
    for (let from = 0; from < frames.length; from += 1000) {
      const bad = await map.raw({ connect: from % 2000 === 0 ? {} : false });
      const before = bad.answered;
      const part = frames.slice(from, from + 1000).filter((one) => !closes(one));
      const undisturbed = assertUndisturbed(good, conversationId, 20);
      for (const one of part) bad.send(one);
      const expected = part.flatMap((one) => owed(one) ?? []);
      await until(() => bad.socket.readyState !== WebSocket.OPEN || bad.answered >= expected.length + before);
      expect(bad.socket.readyState).toBe(WebSocket.OPEN);
      const answers = answersOf(bad, before);
      expect(answers.map(({ id }) => JSON.stringify(id)).toSorted()).toEqual(
        expected.map(({ id }) => JSON.stringify(id)).toSorted(),
      );
      for (const { error } of answers) {
        if (error !== undefined) expect(ALLOWED, JSON.stringify(error)).toContain(error.code);
      }
      answered += answers.length;
      await undisturbed;
      bad.socket.terminate();
    }
    expect(answered).toBeGreaterThan(5000);
    const { turns } = await good.call("mail/turns/list", { conversationId, limit: 500 });
    expect(turns).toHaveLength(200);
  });

  it("frames that break the transport close their own connection only", async () => {
    const good = await map.raw();
    const { conversation } = await good.call("mail/create", {});
    const { id } = conversation as { id: string };
    const closed = (bad: RawClient) => new Promise<number>((resolve) => bad.socket.once("close", resolve));
    const large = await map.raw();
    const tooLarge = closed(large);
    large.send(
      JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "mail/create",
        params: { subject: "x".repeat(1_100_000) },
      }),
    );
    expect(await tooLarge).toBe(1009);
    const broken = await map.raw();
    const notText = closed(broken);
    broken.socket.send(Buffer.from([0xff, 0xfe, 0xc0]), { binary: false });
    expect(await notText).toBe(1007);
    const binary = await map.raw();
    binary.socket.send(Buffer.from("{}"), { binary: true });
    expect(await binary.find(({ error }) => error !== undefined)).toMatchObject({
      id: null,
      error: { code: -32600 },
    });
    const deep = await map.raw();
    deep.send(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);
    expect(await deep.find(({ error }) => error !== undefined)).toMatchObject({ error: { code: -32600 } });
    await assertUndisturbed(good, id, 5);
  });
});

function answersOf(raw: RawClient, after: number) {
  return raw.frames.slice(after).filter(({ method }) => method === undefined);
}

/** Five failed authentication attempts would close the connection, as intended. */
function closes(one: string): boolean {
  return one.includes('"map/authenticate"') || one.includes('"map/auth/refresh"');
}
