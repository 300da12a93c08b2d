/** What strangers can take of an agent's memory and connections, before anybody has said who they are. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { request as requestHttps } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { makeDevCertificates } from "../../src/mesh/dev-ca/files.js";
import { LIMITS } from "../../src/mesh/message/types.js";
import { BodyMemory, type BodyMemoryLimits } from "../../src/mesh/wire/body-memory.js";
import type { MeshHandler, MeshRequest, MeshResponse } from "../../src/mesh/wire/handler.js";
import { type ListenerOptions, listen } from "../../src/mesh/wire/listener.js";
import { eventually } from "./kit.js";

const MIB = 1024 * 1024;

let directory: string;
let ca: string;
let certificate: { readonly cert: string; readonly key: string };
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mesh-flood-"));
  const files = await makeDevCertificates(directory, Date.now());
  ca = await readFile(files.ca, "utf8");
  certificate = { cert: await readFile(files.cert, "utf8"), key: await readFile(files.key, "utf8") };
});
afterAll(() => rm(directory, { recursive: true }));

/** Remembers how much was held at the worst moment. */
class WatchedMemory extends BodyMemory {
  most = 0;

  override take(caller: string, bytes: number): boolean {
    const hadRoom = super.take(caller, bytes);
    this.most = Math.max(this.most, this.held);
    return hadRoom;
  }
}

const fine: MeshResponse = { status: 200, headers: {}, body: "{}" };

async function listening(options: Partial<ListenerOptions> = {}) {
  const listener = await listen({
    handle: async () => fine,
    host: "127.0.0.1",
    port: 0,
    ...certificate,
    ...options,
  });
  onTestFinished(() => listener.close());
  return listener.port;
}

function session(port: number): ClientHttp2Session {
  // Room for what it means to send.
  const limits = { maxSessionMemory: 100 };
  const opened = connect(`https://127.0.0.1:${port}`, { ca, servername: "localhost", ...limits });
  opened.on("error", () => undefined);
  onTestFinished(() => opened.destroy());
  return opened;
}

/** Begins to post, and never ends. */
function posting(at: ClientHttp2Session, headers: Readonly<Record<string, string>> = {}): ClientHttp2Stream {
  const stream = at.request({ ":method": "POST", ":path": "/swarm/message", ...headers });
  stream.on("error", () => undefined);
  return stream;
}

/** The status, or `closed` when there was none. */
function statusOf(stream: ClientHttp2Stream): Promise<number | "closed" | undefined> {
  return new Promise((resolve) => {
    stream.on("response", (headers) => {
      stream.resume();
      resolve(headers[":status"]);
    });
    stream.on("close", () => resolve("closed"));
  });
}

async function memoryFlooded(limits: BodyMemoryLimits, options: Partial<ListenerOptions> = {}) {
  const memory = new WatchedMemory(limits);
  const port = await listening({ bodyMemory: memory, ...options });
  return { memory, port };
}

it("keeps bodies that never end within its memory, refuses the rest for a while, and recovers", async () => {
  const { memory, port } = await memoryFlooded({ total: 8 * MIB, perCaller: 64 * MIB });
  const strangers = [session(port), session(port)];
  const streams = strangers.flatMap((one) => Array.from({ length: 16 }, () => posting(one)));
  const statuses: unknown[] = [];
  for (const stream of streams) {
    stream.on("response", (headers) => statuses.push([headers[":status"], headers["retry-after"]]));
    stream.write(Buffer.alloc(LIMITS.bodyBytes - 1, 32));
  }
  // 62 MiB wanted; at most four of the bodies fit.
  await eventually(async () => statuses.length >= streams.length - 4, true);
  expect(new Set(statuses.map((one) => JSON.stringify(one)))).toEqual(new Set(['[503,"5"]']));
  expect(memory.most).toBeGreaterThan(4 * MIB);
  expect(memory.most).toBeLessThanOrEqual(8 * MIB);

  for (const one of strangers) one.destroy();
  await eventually(async () => memory.held, 0);
  const after = posting(session(port));
  after.end("{}");
  expect(await statusOf(after)).toBe(200);
});

it("does not let one caller keep the others out", async () => {
  const { memory, port } = await memoryFlooded({ total: 8 * MIB, perCaller: 2 * MIB }, { proxies: 1 });
  const proxy = session(port);
  const stranger = { "x-forwarded-for": "2001:db8::1" };
  // Another address of the same network is the same caller.
  const neighbour = { "x-forwarded-for": "2001:db8::2" };
  posting(proxy, stranger).write(Buffer.alloc(MIB + 1, 32));
  await eventually(async () => memory.held, 2 * MIB);
  const second = posting(proxy, neighbour);
  second.write(Buffer.alloc(MIB + 1, 32));
  expect(await statusOf(second)).toBe(503);
  const other = posting(proxy, { "x-forwarded-for": "2001:db8:0:1::1" });
  other.end(Buffer.alloc(MIB + 1, 32));
  expect(await statusOf(other)).toBe(200);
});

it("a body of very many tiny parts takes no more than its size", async () => {
  const memory = new WatchedMemory();
  const bodies: number[] = [];
  const handle = async ({ body }: MeshRequest) => {
    bodies.push(body.length);
    return fine;
  };
  const port = await listening({ bodyMemory: memory, handle });
  const stream = posting(session(port));
  for (let sent = 0; sent < 5_000; sent += 1) stream.write("x");
  stream.end();
  expect(await statusOf(stream)).toBe(200);
  expect(bodies).toEqual([5_000]);
  expect(memory.most).toBeLessThanOrEqual(16 * 1024);
});

it("answers what needs no body without reading it", async () => {
  const memory = new WatchedMemory();
  const early = ({ path }: { readonly path: string }) =>
    path === "/swarm/message" ? { status: 429, headers: {}, body: "{}" } : undefined;
  const handle: MeshHandler = Object.assign(async () => fine, { early });
  const port = await listening({ bodyMemory: memory, handle });
  const stream = posting(session(port));
  stream.write(Buffer.alloc(MIB, 32));
  expect(await statusOf(stream)).toBe(429);
  expect(memory.most).toBe(0);

  // The same connection of HTTP/1.1 goes on afterwards.
  const socket = await secure(port);
  socket.write(`POST /swarm/message HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${MIB}\r\n\r\n`);
  socket.write(Buffer.alloc(MIB, 32));
  socket.write("POST /swarm/join HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}");
  let answers = "";
  socket.on("data", (data) => {
    answers += data.toString();
  });
  await eventually(async () => answers.match(/HTTP\/1\.1 \d+/gu), ["HTTP/1.1 429", "HTTP/1.1 200"]);
});

it("hangs up on who dribbles: the whole body has its time, not each part", async () => {
  const port = await listening({ bodyTime: 200 });
  const stream = posting(session(port));
  const dribble = setInterval(() => stream.write(" "), 20);
  onTestFinished(() => clearInterval(dribble));
  expect(await statusOf(stream)).toBe("closed");

  const slow = requestHttps({ port, host: "127.0.0.1", servername: "localhost", ca, method: "POST" });
  const broken = new Promise((resolve) => slow.on("error", () => resolve("closed")));
  const http1 = setInterval(() => slow.write(" "), 20);
  onTestFinished(() => clearInterval(http1));
  expect(await broken).toBe("closed");
});

it("lets an address have only so many connections, and others have theirs back", async () => {
  const port = await listening({ maxConnectionsPerAddress: 2 });
  const first = await secure(port);
  await secure(port);
  await expect(secure(port)).rejects.toMatchObject({ code: "ECONNRESET" });
  first.destroy();
  await eventually(
    () =>
      secure(port).then(
        () => "in",
        () => "out",
      ),
    "in",
  );
});

it("does not count connections behind proxies: all come from the same one", async () => {
  const port = await listening({ maxConnectionsPerAddress: 1, proxies: 1 });
  for (let count = 0; count < 3; count += 1) expect((await secure(port)).authorized).toBe(true);
});

function secure(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: "127.0.0.1", servername: "localhost", ca });
    onTestFinished(() => void socket.destroy());
    socket.on("error", reject);
    socket.on("secureConnect", () => resolve(socket));
  });
}
