/** Data that clients make the server hold is limited by size as well as by number (law 8). */
import { afterEach, describe, expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { Harness, type ServerOptions, text, until } from "./harness.js";

let map: Harness;
afterEach(() => map.stop());

async function start(options: ServerOptions = {}): Promise<void> {
  map = await Harness.start(options);
}

const LARGE = "x".repeat(100_000);

describe("core events in memory", () => {
  it("are dropped by size, so delivered messages are not held forever", async () => {
    await start({ limits: { eventRingBytes: 1_000_000 } });
    const bob = await map.raw();
    await bob.call("map/agents/register", { agentId: "bob" });
    const ann = await map.raw();
    for (let n = 0; n < 30; n++)
      await ann.call("map/send", { to: { agent: "bob" }, payload: `${n} ${LARGE}` });
    const page = await bob.call("map/replay", { filter: { eventTypes: ["message_sent"] }, limit: 1000 });
    const kept = (page.events as { event: { data: { message: { payload: string } } } }[]).map(({ event }) =>
      Number.parseInt(event.data.message.payload, 10),
    );
    expect(kept.at(-1)).toBe(29);
    expect(JSON.stringify(page).length).toBeLessThan(1_000_000);
  });
});

describe("a peer that is being authenticated", () => {
  it("is not read until then, and requests that arrive anyway are bounded", async () => {
    let judge = (): void => {};
    const judged = new Promise<void>((resolve) => {
      judge = resolve;
    });
    const known = devAuthenticator();
    await start({
      authenticator: {
        authenticate: async (token) => {
          await judged;
          return known.authenticate(token);
        },
      },
      limits: { maxRequestSize: 250_000 },
    });
    let reading = true;
    const answers: { id?: number; error?: { code: number }; result?: object }[] = [];
    const connection = map.map.connect({
      send: (frame) => void answers.push(JSON.parse(frame)),
      buffered: 0,
      close: () => {},
      pause: () => {
        reading = false;
      },
      resume: () => {
        reading = true;
      },
    });
    const ask = (id: number, method: string, params: object) =>
      connection?.receive(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    ask(0, "map/connect", { auth: { method: "bearer", token: "user:ann" } });
    expect(reading).toBe(false);
    // As if the transport could not be paused: five of these exceed twice the limit.
    for (let id = 1; id <= 10; id++) ask(id, "mail/create", { subject: "ok", filler: LARGE });
    await until(() => answers.length >= 5);
    expect(answers.map(({ error }) => error?.code)).toEqual(Array(5).fill(4000));
    judge();
    await until(() => answers.length === 11 && reading);
    expect(answers.filter(({ result }) => result !== undefined)).toHaveLength(6);
    connection?.lost();
  });
});

describe("disconnected sessions", () => {
  it("can be resumed up to a limit per principal, which affects no other principal", async () => {
    await start({ authenticator: devAuthenticator(), limits: { maxLostSessions: 3 } });
    const waiting = () =>
      [...map.map.context.sessions.inSpace("")].filter(({ connection }) => connection === undefined);
    const lose = async (token: string): Promise<unknown> => {
      const raw = await map.raw({ connect: { auth: { method: "bearer", token } } });
      const { resumeToken } = await raw.call("map/connect");
      const before = new Set(waiting());
      raw.socket.terminate();
      await until(() => waiting().some((session) => !before.has(session)));
      return resumeToken;
    };
    const bobs = await lose("user:bob");
    const anns: unknown[] = [];
    for (let n = 0; n < 5; n++) anns.push(await lose("user:ann"));
    expect(waiting()).toHaveLength(4);
    const back = async (token: string, resumeToken: unknown) => {
      const raw = await map.raw({ connect: false });
      const auth = { method: "bearer", token };
      return (await raw.call("map/connect", { auth, resumeToken })).reconnected;
    };
    expect(await back("user:bob", bobs)).toBe(true);
    expect(await back("user:ann", anns[4])).toBe(true);
    expect(await back("user:ann", anns[0])).toBe(false);
  });
});

describe("long-lived values in memory", () => {
  it("an agent's own fields are limited in size, even when they are added in steps", async () => {
    await start();
    const ann = await map.raw();
    for (const field of ["environment", "capabilities", "metadata", "visibility"]) {
      const { error } = await ann.request("map/agents/register", { [field]: { x: LARGE } });
      expect([field, error?.code]).toEqual([field, -32602]);
    }
    expect((await ann.request("map/agents/register", { visibility: LARGE })).error?.code).toBe(-32602);
    await ann.call("map/agents/register", { agentId: "ann", metadata: { a: "x".repeat(10_000) } });
    const grown = { agentId: "ann", state: "busy", metadata: { b: "x".repeat(10_000) } };
    expect((await ann.request("map/agents/update", grown)).error?.code).toBe(-32602);
    const { agent } = await ann.call("map/agents/get", { agentId: "ann" });
    expect(agent).toMatchObject({ state: "registered", metadata: { a: "x".repeat(10_000) } });
    expect(agent).not.toHaveProperty("metadata.b");
  });

  it("content types, subjects and metadata of conversations are limited in length", async () => {
    await start();
    const ann = await map.raw();
    const { conversation } = await ann.call("mail/create", { metadata: { note: "x".repeat(10_000) } });
    const { id: conversationId } = conversation as { id: string };
    const refused = async (method: string, params: object) => (await ann.request(method, params)).error?.code;
    expect(await refused("mail/turn", { conversationId, contentType: `x-${LARGE}`, content: 1 })).toBe(
      -32602,
    );
    expect(await refused("mail/create", { subject: LARGE })).toBe(-32602);
    expect(await refused("mail/create", { metadata: { note: LARGE } })).toBe(-32602);
    const initialTurn = { contentType: `x-${LARGE}`, content: 1 };
    expect(await refused("mail/create", { initialTurn })).toBe(-32602);
    // Contents of turns are on disk and may be as large as a frame.
    await ann.call("mail/turn", { conversationId, ...text(LARGE) });
  });
});
