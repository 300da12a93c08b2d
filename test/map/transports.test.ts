/** Streams of lines, slow readers, dead peers, and limits. */
import { PassThrough, Readable, Writable } from "node:stream";
import { ClientConnection, ndJsonStream } from "@multi-agent-protocol/sdk";
import { afterEach, describe, expect, it } from "vitest";
import { serveMapStream } from "../../src/doors/map/index.js";
import { codeOf, gather, Harness, type ServerOptions, text, until } from "./harness.js";

let map: Harness;
afterEach(() => map.stop());

async function start(options: ServerOptions = {}): Promise<void> {
  map = await Harness.start(options);
}

interface Pipe {
  readonly write: (chunk: string | Buffer) => void;
  readonly end: () => void;
  readonly lines: () => Record<string, unknown>[];
  readonly served: Promise<void>;
}

function pipe(): Pipe {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let received = "";
  output.on("data", (chunk: Buffer) => {
    received += chunk.toString();
  });
  const served = serveMapStream(map.map, { input, output });
  return {
    write: (chunk) => void input.write(chunk),
    end: () => void input.end(),
    lines: () =>
      received
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    served,
  };
}

const connect = '{"jsonrpc":"2.0","id":1,"method":"map/connect","params":{"participantType":"agent"}}';

describe("newline-delimited streams", () => {
  it("serve the SDK's client", async () => {
    await start();
    const [input, output] = [new PassThrough(), new PassThrough()];
    const served = serveMapStream(map.map, { input, output });
    const stream = ndJsonStream(Readable.toWeb(output) as never, Writable.toWeb(input) as never);
    const client = new ClientConnection(stream);
    await client.connect();
    const { conversation } = await client.createConversation({ subject: "ü ✓" });
    const seen = gather(await client.subscribe({ mail: {} }));
    await client.recordTurn({ conversationId: conversation.id, ...text("über 🚀") });
    await seen.count(1);
    expect(seen.events[0]?.data).toMatchObject({ turn: { content: { text: "über 🚀" } } });
    await client.disconnect();
    input.end();
    await served;
  });

  it("join split characters, skip blank lines, and read a last line without a line break", async () => {
    await start();
    const { write, end, lines, served } = pipe();
    write("\n\r\n");
    const bytes = Buffer.from(`${connect}\n{"jsonrpc":"2.0","id":"ü","method":"mail/create"}`);
    const middle = bytes.indexOf(Buffer.from("ü")) + 1;
    write(bytes.subarray(0, middle));
    write(bytes.subarray(middle));
    await until(() => lines().length === 1);
    end();
    await served;
    expect(lines()).toMatchObject([{ id: 1, result: { protocolVersion: 1 } }]);
  });

  it("report a line that is too long once, and continue with the next", async () => {
    await start({ limits: { maxFrame: 200 } });
    const { write, lines } = pipe();
    write(`${"x".repeat(500)}`);
    write(`${"x".repeat(500)}\n`);
    write(`${connect}\n`);
    await until(() => lines().length === 2);
    expect(lines()).toMatchObject([
      { id: null, error: { code: 4000 } },
      { id: 1, result: {} },
    ]);
  });
});

describe("limits", () => {
  it("a reader that falls too far behind is disconnected, and can replay everything it missed", async () => {
    await start({ limits: { maxBuffered: 200_000 } });
    const slow = await map.raw({ connect: { participantType: "client" } });
    await slow.call("map/subscribe", { filter: { eventTypes: ["mail.turn.added"] } });
    const closed = new Promise<number>((resolve) => slow.socket.once("close", resolve));
    slow.socket.pause();
    const writer = await map.raw();
    const { conversation } = await writer.call("mail/create", {});
    const { id: conversationId } = conversation as { id: string };
    const words = "x".repeat(50_000);
    const cut = until(() => map.map.context.subscriptions.size === 0);
    let sent = 0;
    let stop = false;
    const writing = (async () => {
      while (!stop) {
        await writer.call("mail/turn", { conversationId, ...text(words) });
        sent++;
      }
    })();
    await cut;
    stop = true;
    await writing;
    slow.socket.resume();
    expect(await closed).toBe(1013);
    const again = await map.raw({ connect: { participantType: "client" } });
    const replayed: unknown[] = [];
    for (let after: string | undefined, more = true; more; ) {
      const page = await again.call("map/replay", {
        filter: { eventTypes: ["mail.turn.added"] },
        limit: 1000,
        ...(after !== undefined && { afterEventId: after }),
      });
      const events = page.events as { eventId: string }[];
      replayed.push(...events);
      after = events.at(-1)?.eventId;
      more = page.hasMore === true;
    }
    expect(replayed).toHaveLength(sent);
  });

  it("a peer that answers no ping is dropped, and its session can be resumed", async () => {
    await start({ limits: { pingInterval: 20 } });
    const dead = await map.raw();
    dead.socket.pause();
    await until(() =>
      [...map.map.context.sessions.inSpace("")].every(({ connection }) => connection === undefined),
    );
    expect([...map.map.context.sessions.inSpace("")]).toHaveLength(1);
  });

  it("subscriptions, agents, scopes and requests per second are limited", async () => {
    await start({ limits: { maxSubscriptions: 2, maxAgents: 2, maxScopes: 1, requestsPerSecond: 20 } });
    const raw = await map.raw();
    const codes = async (method: string, params: (n: number) => object) =>
      (await Promise.all([0, 1, 2].map((n) => raw.request(method, params(n))))).map(
        ({ error }) => error?.code,
      );
    expect(await codes("map/subscribe", () => ({}))).toEqual([undefined, undefined, 4002]);
    expect(await codes("map/agents/register", (n) => ({ agentId: `a${n}` }))).toEqual([
      undefined,
      undefined,
      4002,
    ]);
    expect(await codes("map/scopes/create", (n) => ({ scopeId: `s${n}` }))).toEqual([undefined, 4002, 4002]);
    const many = await Promise.all(Array.from({ length: 60 }, () => raw.request("map/agents/list")));
    const refused = many.filter(({ error }) => error?.code === 4001);
    expect(refused.length).toBeGreaterThan(10);
    expect(refused[0]?.error?.data).toMatchObject({ retryable: true, details: { name: "RATE_LIMITED" } });
  });

  it("a thousand requests at once are all served", async () => {
    await start({ limits: { maxInFlight: 8 } });
    const raw = await map.raw();
    const { conversation } = await raw.call("mail/create", {});
    const { id: conversationId } = conversation as { id: string };
    const answers = await Promise.all(
      Array.from({ length: 1000 }, (_, n) => raw.request("mail/turn", { conversationId, ...text(`${n}`) })),
    );
    expect(answers.filter(({ error }) => error !== undefined)).toEqual([]);
    const { turns } = await raw.call("mail/turns/list", { conversationId, limit: 500 });
    expect((turns as { content: { text: string } }[]).map(({ content }) => content.text)).toEqual(
      Array.from({ length: 500 }, (_, n) => `${n}`),
    );
  });

  it("connections beyond the limit are rejected", async () => {
    await start({ limits: { maxConnections: 1 } });
    await map.raw();
    const socket = await map.socket();
    expect(await new Promise((resolve) => socket.once("close", resolve))).toBe(1013);
  });

  it("five wrong credentials close the connection", async () => {
    await start({
      authenticator: { authenticate: async () => ({ ok: false, reason: "unknown", detail: "no" }) },
    });
    const raw = await map.raw({ connect: false });
    const closed = new Promise<number>((resolve) => raw.socket.once("close", resolve));
    for (let n = 0; n < 5; n++)
      raw.send(
        `{"jsonrpc":"2.0","id":${n},"method":"map/authenticate","params":{"method":"bearer","credential":"x"}}`,
      );
    expect(await closed).toBe(1008);
    expect(raw.frames).toHaveLength(5);
  });
});

describe("addresses", () => {
  it("reach the named recipients", async () => {
    await start();
    const root = await map.raw();
    await root.call("map/agents/register", { agentId: "root", role: "lead" });
    for (const agentId of ["kid1", "kid2"]) await root.call("map/agents/spawn", { agentId, role: "worker" });
    const other = await map.raw();
    await other.call("map/agents/register", { agentId: "other", role: "worker" });
    const client = await map.raw({ connect: { participantType: "client" } });
    await other.call("map/scopes/create", { scopeId: "room" });
    await other.call("map/scopes/join", { scopeId: "room", agentId: "other" });
    const delivered = async (to: unknown) => {
      const { result, error } = await root.request("map/send", { to, payload: {} });
      return result?.delivered ?? error?.code;
    };
    expect(await delivered("other")).toEqual(["other"]);
    expect(await delivered("agent:other")).toEqual(["other"]);
    expect(await delivered("scope:room")).toEqual(["other"]);
    expect(await delivered({ scope: "room" })).toEqual(["other"]);
    expect(await delivered({ agents: ["kid1", "other"] })).toEqual(["kid1", "other"]);
    expect(await delivered({ agents: ["kid1", "nobody"] })).toBe(2001);
    expect(await delivered({ role: "worker" })).toEqual(["kid1", "kid2", "other"]);
    expect(await delivered({ role: "worker", within: "room" })).toEqual(["other"]);
    expect(await delivered({ children: true })).toEqual(["kid1", "kid2"]);
    expect(await delivered({ descendants: true })).toEqual(["kid1", "kid2"]);
    expect(await delivered({ parent: true })).toEqual([]);
    expect(await delivered({ broadcast: true })).toEqual(["kid1", "kid2", "other"]);
    expect(await delivered({ participants: "clients" })).toHaveLength(1);
    expect(await delivered({ participants: "all" })).toHaveLength(4);
    expect(await delivered({ system: true })).toEqual([]);
    expect(await delivered({ system: "elsewhere", agent: "x" })).toBe(5000);
    expect(await delivered({ participant: "nobody" })).toBe(2000);
    const { sessionId } = await client.call("map/connect", {});
    expect(await delivered({ agent: sessionId })).toEqual([sessionId]);
    expect(await codeOf((await map.agent("late")).send({ siblings: true }, {}))).toBeUndefined();
  });

  it("of non-public agents are known to their owner only", async () => {
    await start();
    const owner = await map.raw();
    await owner.call("map/agents/register", { agentId: "hidden", visibility: "private" });
    const other = await map.raw();
    expect(await other.call("map/agents/list")).toEqual({ agents: [] });
    expect((await other.request("map/agents/get", { agentId: "hidden" })).error?.code).toBe(2001);
    expect((await owner.call("map/agents/list")).agents).toHaveLength(1);
    await owner.call("map/agents/register", { agentId: "public" });
    expect((await other.request("map/agents/update", { agentId: "public", state: "busy" })).error?.code).toBe(
      1003,
    );
    expect(
      (await owner.request("map/agents/update", { agentId: "public", state: "sleepy" })).error?.code,
    ).toBe(3001);
    expect(await owner.call("map/agents/update", { agentId: "public", state: "x-sleepy" })).toMatchObject({
      agent: { state: "x-sleepy" },
    });
  });

  it("of another principal's space do not exist when spaces are isolated", async () => {
    await start({
      isolate: true,
      dev: false,
      authenticator: {
        authenticate: async (bearer = "") => ({
          ok: true,
          principal: { role: "user", id: bearer, provider: "token" },
        }),
      },
    });
    const join = async (token: string, agentId: string) => {
      const raw = await map.raw({ connect: { auth: { method: "bearer", token } } });
      await raw.call("map/agents/register", { agentId });
      return raw;
    };
    const [ann, bob] = [await join("ann", "helper"), await join("bob", "helper")];
    expect((await ann.call("map/agents/list")).agents).toHaveLength(1);
    const { conversation } = await ann.call("mail/create", { initialParticipants: [{ id: "user:bob" }] });
    const { id } = conversation as { id: string };
    expect((await bob.request("mail/get", { conversationId: id })).error?.code).toBe(10000);
    expect(await bob.call("mail/list")).toMatchObject({ conversations: [] });
  });
});

describe("a custom transport", () => {
  it("that fails to send loses its own connection only", async () => {
    await start();
    const closed: number[] = [];
    const connection = map.map.connect({
      send: () => {
        throw new Error("the line is cut");
      },
      buffered: 0,
      close: (code) => void closed.push(code),
    });
    connection?.receive(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "map/connect", params: {} }));
    await until(() => connection?.isClosed);
    expect(closed).toEqual([1011]);
    expect(map.problems.map(String)).toEqual(["Error: sending a frame failed"]);
    const other = await map.raw();
    expect(await other.call("map/agents/list")).toEqual({ agents: [] });
  });
});
