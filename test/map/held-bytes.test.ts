/** What callers make the server hold for them is limited in bytes. */
import { afterEach, describe, expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { type Clock, systemClock } from "../../src/base/index.js";
import { openStore } from "../../src/store/index.js";
import { Harness, type RawClient, type ServerOptions, until } from "./harness.js";

let map: Harness;
afterEach(() => map.stop());

const start = async (options: ServerOptions = {}) => {
  map = await Harness.start({ authenticator: devAuthenticator(), ...options });
};
const connected = (token: string, more: object = {}) =>
  map.raw({ connect: { auth: { method: "bearer", token }, ...more } });

const KB = 1024;
const MB = KB * KB;

/** An agent of this caller whose session is disconnected. Returns its id and the token that resumes it. */
async function away(token: string): Promise<{ readonly agent: string; readonly resumeToken: unknown }> {
  const raw = await connected(token);
  const { agent } = await raw.call("map/agents/register");
  const { resumeToken, sessionId } = await raw.call("map/connect");
  raw.socket.terminate();
  await until(() => map.map.context.sessions.byId("", String(sessionId))?.connection === undefined);
  return { agent: (agent as { id: string }).id, resumeToken };
}

describe("messages for disconnected agents", () => {
  it("[MAP-F-2] are limited in bytes per session, per caller and in total; the oldest are dropped", async () => {
    await start({
      limits: { maxHeldSize: MB, maxHeldSizePerCaller: 2 * MB, maxHeldSizeTotal: 3 * MB },
    });
    const ann = await connected("user:ann");
    const send = (agent: string, n: number) =>
      ann.call("map/send", { to: { agent }, payload: `${n} ${"x".repeat(200 * KB)}` });
    const { held } = map.map.context.messages;
    const first = await away("user:bob");
    for (let n = 0; n < 10; n++) await send(first.agent, n);
    expect(held.size).toBeLessThanOrEqual(MB);
    for (let agents = 0; agents < 5; agents++) {
      const { agent } = await away("user:bob");
      for (let n = 0; n < 10; n++) await send(agent, n);
    }
    expect(held.size).toBeLessThanOrEqual(2 * MB);
    let last = first;
    for (let callers = 0; callers < 5; callers++) {
      last = await away(`user:carol-${callers}`);
      for (let n = 0; n < 10; n++) await send(last.agent, n);
    }
    expect(held.size).toBeLessThanOrEqual(3 * MB);
    // The newest are still delivered, in order.
    const back = await connected("user:carol-4", { resumeToken: last.resumeToken });
    await back.find(({ method, params }) => method === "map/message" && payloadOf(params).startsWith("9 "));
    const numbers = back.frames
      .filter(({ method }) => method === "map/message")
      .map(({ params }) => Number.parseInt(payloadOf(params), 10));
    expect(numbers).toEqual([5, 6, 7, 8, 9].slice(5 - numbers.length));
    expect(numbers.length).toBeGreaterThan(2);
  });

  it("[MAP-F-2] are released when they expire, also without a request", async () => {
    const clock = new SlowClock();
    await start({ clock, limits: { heldFor: 60_000, resumeWindow: 600_000, pingInterval: 600_000 } });
    const ann = await connected("user:ann");
    const { agent } = await away("user:bob");
    const { held } = map.map.context.messages;
    for (let n = 0; n < 5; n++) await ann.call("map/send", { to: { agent }, payload: "x".repeat(100 * KB) });
    expect(held.size).toBeGreaterThan(400 * KB);
    clock.advance(30_000);
    await ann.call("map/send", { to: { agent }, payload: "later" });
    clock.advance(31_000);
    expect(held.size).toBeLessThan(KB);
    clock.advance(30_000);
    expect(held.size).toBe(0);
  });
});

describe("agents, scopes and filters", () => {
  it("[MAP-F-8] of one caller are limited in bytes, over all of its sessions", async () => {
    await start({ limits: { maxRegistered: 200 * KB } });
    const [one, two] = [await connected("user:ann"), await connected("user:ann")];
    const metadata = { x: "x".repeat(15 * KB) };
    const results = [];
    for (let n = 0; n < 20; n++) {
      results.push(await (n % 2 === 0 ? one : two).request("map/agents/register", { metadata }));
    }
    const accepted = results.filter(({ error }) => error === undefined).length;
    expect(accepted).toBeGreaterThan(10);
    expect(accepted).toBeLessThan(14);
    expect(results.at(-1)?.error).toMatchObject({
      code: 4002,
      message: expect.stringContaining("of one caller can take 204800 bytes; remove some"),
    });
    expect((await two.request("map/scopes/create", { extra: metadata.x })).error?.code).toBe(4002);
    const filter = { eventTypes: ["x".repeat(15 * KB)] };
    expect((await two.request("map/subscribe", { filter })).error?.code).toBe(4002);
    const { agents } = await one.call("map/agents/list");
    const [first] = agents as { id: string }[];
    expect((await one.request("map/agents/update", { agentId: first?.id, metadata: { y: "y" } })).error).toBe(
      undefined,
    );
    // Others are not affected, and what is removed counts no longer.
    await (await connected("user:bob")).call("map/agents/register", { metadata });
    await one.call("map/agents/unregister", { agentId: first?.id });
    await two.call("map/agents/register", { metadata });
  });

  it("[MAP-F-8] of disconnected sessions make room for the caller's new ones", async () => {
    await start({ limits: { maxRegistered: 100 * KB } });
    const metadata = { x: "x".repeat(15 * KB) };
    for (let rounds = 0; rounds < 5; rounds++) {
      const raw = await connected("user:ann");
      for (let n = 0; n < 3; n++) await raw.call("map/agents/register", { metadata });
      const { sessionId } = await raw.call("map/connect");
      raw.socket.terminate();
      await until(() => map.map.context.sessions.byId("", String(sessionId))?.connection === undefined);
    }
    expect(map.map.context.registrations.of("user:ann")).toBeLessThanOrEqual(100 * KB);
    expect([...map.map.context.sessions.inSpace("")].length).toBeLessThanOrEqual(2);
  });

  it("[MAP-F-8] a registration stores one agent, not all agents of the session", async () => {
    const store = await openStore({ path: ":memory:" });
    const plain = store.commit.bind(store);
    let written = 0;
    store.commit = (batch, kind) => {
      written = Math.max(written, JSON.stringify(batch.rows ?? []).length);
      return plain(batch, kind);
    };
    await start({ store });
    const ann = await connected("user:ann");
    const metadata = { x: "x".repeat(15 * KB) };
    for (let n = 0; n < 50; n++) await ann.call("map/agents/register", { agentId: `a${n}`, metadata });
    expect(written).toBeLessThan(20 * KB);
    await ann.call("map/agents/update", { agentId: "a7", metadata: { z: "new" } });
    await ann.call("map/agents/unregister", { agentId: "a3" });
    const { resumeToken } = await ann.call("map/connect");
    await map.stop({ keepStore: true });
    await start({ store });
    // As after a restart: all of them, in order, as they were last.
    const back = await connected("user:ann", { resumeToken });
    const { ownedAgents } = await back.call("map/connect");
    const ids = Array.from({ length: 50 }, (_, n) => `a${n}`).filter((id) => id !== "a3");
    expect(ownedAgents).toEqual(ids);
    const { agent } = await back.call("map/agents/get", { agentId: "a7" });
    expect(agent).toMatchObject({ metadata: { z: "new" } });
  });

  it("[MAP-F-8] a filter is limited in size, and a caller's subscriptions in number", async () => {
    await start({ limits: { maxSubscriptionsPerCaller: 5 } });
    const [one, two] = [await connected("user:ann"), await connected("user:ann")];
    const eventTypes = Array.from({ length: 1_000 }, (_, n) => `x${n}.${"y".repeat(100)}.*`);
    for (const method of ["map/subscribe", "map/replay"]) {
      expect((await one.request(method, { filter: { eventTypes } })).error).toMatchObject({
        code: -32602,
        message: "filter: is larger than 65536 bytes",
      });
    }
    for (let n = 0; n < 5; n++) await (n % 2 === 0 ? one : two).call("map/subscribe");
    expect((await one.request("map/subscribe")).error?.message).toBe("a caller can have 5 subscriptions");
    await (await connected("user:bob")).call("map/subscribe");
  });
});

describe("lists", () => {
  const large = { x: "x".repeat(15 * KB) };

  async function crowd(token: string, count: number): Promise<RawClient> {
    const raw = await connected(token);
    for (let n = 0; n < count; n++)
      await raw.call("map/agents/register", { agentId: `${token.slice(5)}-${n}`, metadata: large });
    return raw;
  }

  it.each(["map/structure/graph", "map/agents/list"])(
    "[MAP-F-8] %s comes in pages of about 1 MB, so another caller's agents close no connection",
    async (method) => {
      await start();
      await crowd("user:bob", 200);
      const ann = await connected("user:ann");
      const seen: string[] = [];
      let cursor: unknown;
      do {
        const page = await ann.call(method, { limit: 100_000, ...(cursor !== undefined && { cursor }) });
        expect(JSON.stringify(page).length).toBeLessThan(1.2 * MB);
        const found = (page.nodes ?? page.agents) as { id: string }[];
        seen.push(...found.map(({ id }) => id));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      expect(seen).toEqual(Array.from({ length: 200 }, (_, n) => `bob-${n}`));
    },
  );

  it("[MAP-F-8] participants and threads of mail/get are bounded and can be continued", async () => {
    await start();
    const ann = await connected("user:ann");
    const id = (n: number) => `${String(n).padStart(4, "0")}${"x".repeat(240)}`;
    const initialParticipants = Array.from({ length: 1_000 }, (_, n) => ({ id: id(n) }));
    const { conversation } = await ann.call("mail/create", { initialParticipants });
    const { id: conversationId } = conversation as { id: string };
    for (let more = 1_000; more < 2_500; more++) {
      ann.send(
        JSON.stringify({
          jsonrpc: "2.0",
          id: more,
          method: "mail/invite",
          params: { conversationId, participant: { id: id(more) } },
        }),
      );
    }
    await ann.find((frame) => frame.id === 2_499);
    const { turn } = await ann.call("mail/turn", { conversationId, contentType: "text", content: "root" });
    const rootTurnId = (turn as { id: string }).id;
    const subject = "s".repeat(10_000);
    for (let n = 0; n < 150; n++)
      await ann.call("mail/thread/create", { conversationId, rootTurnId, subject });
    const first = await ann.call("mail/get", {
      conversationId,
      include: { participants: true, threads: true },
    });
    expect(JSON.stringify(first).length).toBeLessThan(3 * MB);
    const people = (first.participants as { id: string }[]).length;
    const presence = await ann.call("mail/presence", { conversationId });
    expect(presence).toMatchObject({ _meta: { cut: ["participants"] } });
    expect(presence.participants).toHaveLength(people);
    const next = await ann.call("mail/get", {
      conversationId,
      include: { participants: true, participantsAfter: first.participantsCursor },
    });
    expect(people + (next.participants as { id: string }[]).length).toBe(2_501);
    const threads = (first.threads as { id: string }[]).length;
    const rest = await ann.call("mail/thread/list", {
      conversationId,
      limit: 500,
      cursor: first.threadsCursor,
    });
    expect(threads + (rest.threads as { id: string }[]).length).toBe(150);
    const all = await ann.call("mail/thread/list", { conversationId, limit: 500 });
    expect(JSON.stringify(all).length).toBeLessThan(1.2 * MB);
  });

  it("[MAP-F-8] mail/list ends a page by its size", async () => {
    await start();
    const ann = await connected("user:ann");
    for (let n = 0; n < 100; n++)
      await ann.call("mail/create", { subject: "s".repeat(9_000), metadata: { x: "x".repeat(10_000) } });
    const seen = new Set<string>();
    for (let cursor: unknown, more = true; more; ) {
      const page = await ann.call("mail/list", { limit: 500, ...(cursor !== undefined && { cursor }) });
      expect(JSON.stringify(page).length).toBeLessThan(1.2 * MB);
      for (const { id } of page.conversations as { id: string }[]) seen.add(id);
      cursor = page.nextCursor;
      more = page.hasMore === true;
    }
    expect(seen.size).toBe(100);
  });
});

function payloadOf(params: Record<string, unknown> | undefined): string {
  return String((params?.message as { payload?: unknown } | undefined)?.payload);
}

/** Time advances only on request. Timers with short delays still run. */
class SlowClock implements Clock {
  #now = Date.now();
  readonly #timers = new Set<{ readonly at: number; readonly act: () => void }>();

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, act: () => void): () => void {
    if (milliseconds < 1_000) return systemClock.after(milliseconds, act);
    const timer = { at: this.#now + milliseconds, act };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds;
    for (const timer of [...this.#timers]) {
      if (timer.at > this.#now || !this.#timers.delete(timer)) continue;
      timer.act();
    }
  }
}
