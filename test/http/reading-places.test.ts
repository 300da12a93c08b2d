/** Places for requests that read contents of tasks: who holds one, who waits, and who does not. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Mount, NO_INPUT } from "../../src/extension/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { type Harness, startServer } from "./harness.js";

const ANN = "user-token-ann";
const BOB = "user-token-bob";
const PLACES = 4;
const STALL = 1_000;
/** More than a connection holds for a client that does not read. */
const LARGE = "x".repeat(40_000_000);

let clock: VirtualClock;
let harness: Harness;
/** Requests that have their place, by their path's query. */
let started: string[];
const sockets: Socket[] = [];

/** Answers as MCP and A2A do: with one large text. */
const DOOR: Mount = {
  path: "/large",
  operations: [
    {
      ...NO_INPUT,
      id: "large",
      method: "GET",
      tag: "agents",
      summary: "A large answer",
      answers: { 200: { description: "" } },
    },
  ],
  roles: ["user"],
  async handle({ request, response, reading }) {
    const name = request.url?.split("?")[1] ?? "";
    if (!name.startsWith("at-once")) await reading();
    started.push(name);
    response.end(name.startsWith("large") ? LARGE : "{}");
  },
};

beforeEach(async () => {
  started = [];
  clock = new VirtualClock();
  harness = await startServer({ clock, mounts: [DOOR], limits: { streamStallTimeout: STALL } });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await harness.close();
});

function open(): Socket {
  const { port } = new URL(harness.url);
  const socket = connect(Number(port), "127.0.0.1");
  socket.on("error", () => {});
  sockets.push(socket);
  return socket;
}

function ask(socket: Socket, name: string, token: string): void {
  socket.write(`GET /large?${name} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`);
}

/** A client that never reads. */
function unread(name: string): Socket {
  const socket = open();
  socket.pause();
  ask(socket, name, ANN);
  return socket;
}

it("an unread answer holds its place: the same caller waits, others do not", async () => {
  const holders = Array.from({ length: PLACES }, (_, n) => unread(`large-${n}`));
  while (started.length < PLACES) await nextTurn();
  const waiting = harness.call("/large?small-ann", { token: ANN });
  const search = harness.call("/search?q=word", { token: ANN });
  for (let n = 0; n < 3; n++)
    expect((await harness.call(`/large?small-bob-${n}`, { token: BOB })).status).toBe(200);
  expect(started).not.toContain("small-ann");
  holders[0]?.destroy();
  expect((await waiting).status).toBe(200);
  expect((await search).status).toBe(200);
});

it("a client that takes nothing of its answer is disconnected, and its place is free again", async () => {
  const holders = Array.from({ length: PLACES }, (_, n) => unread(`large-${n}`));
  while (started.length < PLACES) await nextTurn();
  const waiting = harness.call("/large?small-ann", { token: ANN });
  const closed = holders.map((socket) => once(socket, "close"));
  // The first check sees how much waits, a later one that it is still as much.
  await clock.advance(STALL);
  expect(started).not.toContain("small-ann");
  while (!started.includes("small-ann")) {
    await clock.advance(STALL);
    await nextTurn();
  }
  expect((await waiting).status).toBe(200);
  for (const socket of holders) socket.resume();
  await Promise.all(closed);
});

it("one request of a caller begins in a turn of the event loop, so others do not wait for all of them", async () => {
  const many = 60;
  const clients = Array.from({ length: many + 1 }, open);
  // The server has accepted every connection then.
  for (const socket of clients) ask(socket, "at-once", ANN);
  await Promise.all(clients.map((socket) => once(socket, "data")));
  started = [];
  for (const [n, socket] of clients.entries())
    if (n < many) ask(socket, "at-once", ANN);
    else ask(socket, "at-once-bob", BOB);
  while (started.length <= many) await nextTurn();
  expect(started.indexOf("at-once-bob")).toBeLessThan(many / 2);
});
