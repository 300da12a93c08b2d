/**
 * Conversations: durable turns per second and events per second to 1, 10 and 100 subscribers, compared with the SDK's
 * own server, which keeps everything in memory. Servers and clients share one process in both cases.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { websocketStream } from "@multi-agent-protocol/sdk";
import { MAPServer } from "@multi-agent-protocol/sdk/server";
import { WebSocket, WebSocketServer } from "ws";
import { systemClock } from "../src/base/index.js";
import { systemIds } from "../src/base/node.js";
import { attachMap, MapServer } from "../src/doors/map/index.js";
import { openStore } from "../src/store/index.js";
import { Report } from "./report.js";

// The SDK uses the global class, which Node 20 does not have.
Object.assign(globalThis, { WebSocket });

const report = new Report("map");
const QUICK = process.argv.includes("--quick");
const DURATION = QUICK ? 1000 : 3000;
/** For every server, before the measurement: cold code is slow. */
const WARM_UP = QUICK ? 500 : 1000;
/** A server without an answer for this long counts as dead. */
const PATIENCE = 2000;

interface Running {
  readonly url: string;
  readonly name: string;
  readonly store: string;
  readonly durability: string;
  stop(): Promise<void>;
}

async function mailroom(durability: "fsync" | "fast"): Promise<Running> {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const store = await openStore({ directory, durability });
  const map = await MapServer.open({
    store,
    index: store.conversations,
    clock: systemClock,
    ids: systemIds,
    dev: true,
  });
  const http = createServer();
  const door = attachMap(http, map);
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `ws://127.0.0.1:${(http.address() as AddressInfo).port}/map`,
    name: "Mailroom",
    store: "sqlite",
    durability,
    async stop() {
      await map.close();
      door.close();
      http.close();
      await store.close();
      rmSync(directory, { recursive: true });
    },
  };
}

async function sdk(): Promise<Running> {
  const server = new MAPServer({ name: "sdk", mail: { enabled: true } } as ConstructorParameters<
    typeof MAPServer
  >[0]);
  const sockets = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  sockets.on("connection", (ws) => {
    ws.on("error", () => {});
    server.accept(websocketStream(ws as unknown as Parameters<typeof websocketStream>[0])).start();
  });
  await new Promise((resolve) => sockets.once("listening", resolve));
  return {
    url: `ws://127.0.0.1:${(sockets.address() as AddressInfo).port}`,
    name: "SDK server",
    store: "memory",
    durability: "none",
    async stop() {
      for (const ws of sockets.clients) ws.terminate();
      sockets.close();
    },
  };
}

/** A minimal client, because the server is measured. */
class Client {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<
    number,
    (frame: { result?: Record<string, unknown>; error?: unknown }) => void
  >();
  events = 0;
  #next = 1;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data) => {
      const frame = JSON.parse(String(data));
      if (frame.method === "map/event") this.events++;
      const resolve = this.#waiting.get(frame.id);
      if (resolve === undefined) return;
      this.#waiting.delete(frame.id);
      resolve(frame);
    });
  }

  static async connect(url: string, participantType: string): Promise<Client> {
    const socket = new WebSocket(url);
    await new Promise((resolve) => socket.once("open", resolve));
    const client = new Client(socket);
    await client.call("map/connect", { protocolVersion: 1, participantType });
    return client;
  }

  call(method: string, params: object): Promise<Record<string, unknown>> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) => (result === undefined ? reject(error) : resolve(result)));
      this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  close(): void {
    this.#socket.terminate();
  }
}

interface Load {
  readonly writers: number;
  /** Concurrent requests per writer. */
  readonly depth: number;
  readonly subscribers: number;
}

interface Measured {
  readonly turns: number;
  readonly events: number;
  readonly seconds: number;
  readonly survived: boolean;
}

/** The upper bound for a single request: a turn is answered after its commit. */
async function bareCommits(durability: "fsync" | "fast"): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const store = await openStore({ directory, durability });
  const data = JSON.stringify([{ t: "turn", at: 0, text: "x".repeat(500) }]);
  let expected = 0;
  const commitFor = async (milliseconds: number): Promise<number> => {
    const started = performance.now();
    const first = expected;
    while (performance.now() - started < milliseconds) {
      await store.commit({ appends: [{ journal: "conv-bench", expected, count: 1, data }] });
      expected++;
    }
    return ((expected - first) / (performance.now() - started)) * 1000;
  };
  await commitFor(WARM_UP);
  report.add({
    what: "bare commits of the store, one at a time: the limit for one connection",
    store: "sqlite",
    durability,
    value: await commitFor(DURATION),
    unit: "commits/s",
  });
  await store.close();
  rmSync(directory, { recursive: true });
}

async function measure({ url }: Running, { writers, depth, subscribers }: Load): Promise<Measured> {
  const clients = await Promise.all(Array.from({ length: writers }, () => Client.connect(url, "agent")));
  const conversations = await Promise.all(
    clients.map(async (client): Promise<string> => {
      const { conversation } = await client.call("mail/create", {});
      return (conversation as { id: string }).id;
    }),
  );
  const watching = await Promise.all(
    Array.from({ length: subscribers }, () => Client.connect(url, "client")),
  );
  for (const client of watching)
    await client.call("map/subscribe", { filter: { eventTypes: ["mail.turn.added"] } });
  let turns = 0;
  let lastAnswer = performance.now();
  let running = true;
  const content = { text: "x".repeat(200) };
  const write = async (client: Client, conversationId: string): Promise<void> => {
    while (running) {
      await client.call("mail/turn", { conversationId, contentType: "text", content });
      turns++;
      lastAnswer = performance.now();
    }
  };
  for (const [n, client] of clients.entries()) {
    for (let k = 0; k < depth; k++) void write(client, conversations[n] ?? "").catch(() => {});
  }
  const eventsOf = () => watching.reduce((sum, client) => sum + client.events, 0);
  await new Promise((resolve) => setTimeout(resolve, WARM_UP));
  const before = { turns, events: eventsOf() };
  const started = performance.now();
  let survived = true;
  while (performance.now() - started < DURATION) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (performance.now() - lastAnswer > PATIENCE) {
      survived = false;
      break;
    }
  }
  running = false;
  const seconds = (lastAnswer - started) / 1000;
  // Acknowledged turns must also arrive.
  const waited = performance.now();
  while (eventsOf() < turns * subscribers && performance.now() - waited < PATIENCE) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const total = (performance.now() - started) / 1000;
  if (subscribers > 0 && eventsOf() < turns * subscribers) survived = false;
  const result = {
    turns: turns - before.turns,
    events: eventsOf() - before.events,
    seconds: subscribers === 0 ? seconds : total,
    survived,
  };
  for (const client of [...clients, ...watching]) client.close();
  return result;
}

async function line(start: () => Promise<Running>, what: string, load: Load): Promise<void> {
  const server = await start();
  try {
    const { turns, events, seconds, survived } = await measure(server, load);
    const count = load.subscribers > 0 ? events : turns;
    report.add({
      what: `${what}: ${server.name}`,
      store: server.store,
      durability: server.durability,
      value: count / seconds,
      unit: load.subscribers > 0 ? "events/s" : "turns/s",
      ...(!survived && { note: `did not survive: stopped answering or lost events after ${turns} turns` }),
    });
  } finally {
    await server.stop();
  }
}

const turnLoads: [string, Load][] = [
  ["turns, 1 connection, one at a time", { writers: 1, depth: 1, subscribers: 0 }],
  ["turns, 8 connections, one at a time", { writers: 8, depth: 1, subscribers: 0 }],
  ["turns, 8 connections, 32 concurrent each", { writers: 8, depth: 32, subscribers: 0 }],
];
const eventLoads: [string, Load][] = [1, 10, 100].map((subscribers) => [
  `events to ${subscribers} subscribers, 4 connections, 8 concurrent each`,
  { writers: 4, depth: 8, subscribers },
]);

for (const durability of ["fsync", "fast"] as const) await bareCommits(durability);
for (const [what, load] of [...turnLoads, ...eventLoads]) {
  await line(() => mailroom("fsync"), what, load);
  await line(() => mailroom("fast"), what, load);
  await line(sdk, what, load);
}
report.write();
process.exit(0);
