/**
 * The server is killed with SIGKILL during bursts of requests. Every acknowledged turn, member, permission
 * and thread must exist afterwards, in order, and both replays must agree.
 *
 * MAP_KILLS=<number>  number of kills, instead of 50 in CI and 15 elsewhere
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type CompiledChild, compileChild } from "../crash/compile.js";
import { RawClient, text } from "./harness.js";

const KILLS = Number(process.env.MAP_KILLS ?? (process.env.CI === undefined ? 15 : 50));

let child: CompiledChild;
let directory: string;
const processes: ChildProcess[] = [];

beforeAll(() => {
  child = compileChild("map");
  directory = mkdtempSync(join(tmpdir(), "mailroom-map-"));
});
afterAll(() => {
  for (const started of processes) started.kill("SIGKILL");
  child?.remove();
  rmSync(directory, { recursive: true, force: true });
});

interface Life {
  readonly connect: () => Promise<RawClient>;
  readonly kill: () => Promise<void>;
}

function load(): ChildProcess {
  const loaded = spawn(process.execPath, [child.script, directory], { stdio: ["pipe", "pipe", "inherit"] });
  processes.push(loaded);
  return loaded;
}

async function begin(loaded: ChildProcess): Promise<Life> {
  const port = new Promise<string>((resolve, reject) => {
    loaded.stdout?.once("data", (data: Buffer) => resolve(data.toString().trim()));
    loaded.once("exit", () => reject(new Error("the server exited by itself")));
  });
  loaded.stdin?.end("g");
  const url = `ws://127.0.0.1:${await port}/map`;
  return {
    connect: async () => {
      const socket = new WebSocket(url);
      socket.on("error", () => {});
      await new Promise((resolve) => socket.once("open", resolve));
      return new RawClient(socket);
    },
    kill: async () => {
      const gone = new Promise((resolve) => loaded.once("exit", resolve));
      loaded.kill("SIGKILL");
      await gone;
    },
  };
}

/** What one process acknowledged. */
interface Acknowledged {
  readonly conversationId: string;
  readonly turns: Set<string>;
  readonly threads: Set<string>;
  readonly members: Map<string, unknown>;
  /** Turns by writer, in the order of acknowledgment. */
  readonly order: string[][];
  readonly resume: { readonly sessionId: unknown; readonly resumeToken: unknown };
}

async function burst(life: Life, number: number, enough: number): Promise<Acknowledged> {
  const host = await life.connect();
  const session = await host.call("map/connect", { participantType: "agent" });
  await host.call("map/agents/register", { agentId: `host-${number}` });
  const writers = await Promise.all(
    [0, 1, 2].map(async (n) => {
      const raw = await life.connect();
      await raw.call("map/connect", { participantType: "agent" });
      await raw.call("map/agents/register", { agentId: `writer-${number}-${n}` });
      return raw;
    }),
  );
  const created = await host.call("mail/create", {
    initialParticipants: writers.map((_, n) => ({ id: `writer-${number}-${n}`, role: "worker" })),
  });
  const conversationId = (created.conversation as { id: string }).id;
  const seen: Acknowledged = {
    conversationId,
    turns: new Set(),
    threads: new Set(),
    members: new Map(),
    order: writers.map(() => []),
    resume: { sessionId: session.sessionId, resumeToken: session.resumeToken },
  };
  let acknowledged = 0;
  let stop = (): void => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const noted = (): void => {
    acknowledged++;
    if (acknowledged >= enough) stop();
  };
  const write = async (raw: RawClient, n: number): Promise<void> => {
    for (let k = 0; ; k++) {
      const { turn } = await raw.call("mail/turn", { conversationId, ...text(`${n}.${k}`) });
      const { id } = turn as { id: string };
      seen.turns.add(id);
      seen.order[n]?.push(id);
      noted();
      const sent = await raw.call("map/send", {
        to: `host-${number}`,
        payload: k,
        meta: { mail: { conversationId } },
      });
      const { mail } = sent._meta as { mail: { turnId: string } };
      seen.turns.add(mail.turnId);
      seen.order[n]?.push(mail.turnId);
      noted();
      if (k % 3 === 0) {
        const { thread } = await raw.call("mail/thread/create", { conversationId, rootTurnId: id });
        seen.threads.add((thread as { id: string }).id);
        noted();
      }
    }
  };
  const invite = async (): Promise<void> => {
    for (let k = 0; ; k++) {
      const { participant } = await host.call("mail/invite", {
        conversationId,
        participant: {
          id: `guest-${k}`,
          role: "worker",
          permissions: { canSend: k % 2 === 0, historyAccess: "from-join" },
        },
      });
      seen.members.set(`guest-${k}`, participant);
      noted();
    }
  };
  // The writers continue until the server is killed; their last requests get no response.
  for (const [n, raw] of writers.entries()) void write(raw, n).catch(() => {});
  void invite().catch(() => {});
  await stopped;
  return seen;
}

async function verify(life: Life, seen: Acknowledged): Promise<number> {
  const raw = await life.connect();
  const resumed = await raw.call("map/connect", {
    participantType: "agent",
    resumeToken: seen.resume.resumeToken,
  });
  expect(resumed).toMatchObject({ sessionId: seen.resume.sessionId, reconnected: true });
  const { conversationId } = seen;
  const turns: { id: string }[] = [];
  for (let fromTurnId: unknown; ; ) {
    const page = await raw.call("mail/replay", {
      conversationId,
      limit: 500,
      ...(fromTurnId !== undefined && { fromTurnId }),
    });
    turns.push(...(page.turns as { id: string }[]));
    fromTurnId = page.nextCursor;
    if (page.hasMore !== true) break;
  }
  const ids = turns.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect([...seen.turns].filter((id) => !ids.includes(id))).toEqual([]);
  for (const order of seen.order) expect(ids.filter((id) => order.includes(id))).toEqual(order);
  const { participants } = await raw.call("mail/get", { conversationId, include: { participants: true } });
  const members = new Map((participants as { id: string }[]).map((one) => [one.id, one]));
  for (const [id, participant] of seen.members) expect(members.get(id)).toEqual(participant);
  const threads: string[] = [];
  for (let cursor: unknown; ; ) {
    const page = await raw.call("mail/thread/list", {
      conversationId,
      limit: 500,
      ...(cursor !== undefined && { cursor }),
    });
    threads.push(...(page.threads as { id: string }[]).map(({ id }) => id));
    cursor = page.nextCursor;
    if (page.hasMore !== true) break;
  }
  expect([...seen.threads].filter((id) => !threads.includes(id))).toEqual([]);
  const watcher = await life.connect();
  await watcher.call("map/connect", { participantType: "client" });
  const replayed: string[] = [];
  for (let afterEventId: unknown; ; ) {
    const page = await watcher.call("map/replay", {
      limit: 1000,
      filter: { eventTypes: ["mail.turn.added"], mail: { conversationId } },
      ...(afterEventId !== undefined && { afterEventId }),
    });
    const events = page.events as { eventId: string; event: { data: { turn: { id: string } } } }[];
    replayed.push(...events.map(({ event }) => event.data.turn.id));
    afterEventId = events.at(-1)?.eventId;
    if (page.hasMore !== true) break;
  }
  expect(replayed).toEqual(ids);
  return ids.length;
}

describe(`a server that is killed ${KILLS} times`, () => {
  it("[MAP-OURS-01] loses nothing that it acknowledged", { timeout: 60_000 + KILLS * 3000 }, async () => {
    let next = load();
    let last: Acknowledged | undefined;
    const all: Acknowledged[] = [];
    let turns = 0;
    for (let number = 0; number < KILLS; number++) {
      const life = await begin(next);
      next = load();
      if (last !== undefined) turns += await verify(life, last);
      last = await burst(life, number, 5 + Math.floor(Math.random() * 150));
      all.push(last);
      await life.kill();
    }
    const life = await begin(next);
    if (last !== undefined) turns += await verify(life, last);
    // The oldest conversation must also be intact.
    const raw = await life.connect();
    await raw.call("map/connect", { participantType: "client" });
    for (const { conversationId, turns: acknowledged } of all) {
      const { stats } = await raw.call("mail/get", { conversationId, include: { stats: true } });
      expect((stats as { totalTurns: number }).totalTurns).toBeGreaterThanOrEqual(acknowledged.size);
    }
    await life.kill();
    expect(turns).toBeGreaterThan(KILLS);
  });
});
