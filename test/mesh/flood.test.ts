/** The memory and connections that unauthenticated peers can use. */
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { request as requestHttps } from "node:https";
import { connect as connectTcp, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { type Release, Semaphore, type SemaphoreOptions } from "../../src/base/index.js";
import type { MeshHandler, MeshRequest, MeshResponse } from "../../src/doors/mesh/handler.js";
import { type ListenerOptions, listen } from "../../src/doors/mesh/listener.js";
import { makeDevCertificates } from "../../src/mesh/dev-ca/files.js";
import { LIMITS } from "../../src/mesh/message/types.js";
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

/** Records the peak of the held bytes. */
class WatchedMemory extends Semaphore {
  most = 0;

  override tryAcquire(caller: string, bytes: number): Release | undefined {
    const release = super.tryAcquire(caller, bytes);
    this.most = Math.max(this.most, this.inUse);
    return release;
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
  // Enough window for the client's data.
  const limits = { maxSessionMemory: 100 };
  const opened = connect(`https://127.0.0.1:${port}`, { ca, servername: "localhost", ...limits });
  opened.on("error", () => undefined);
  onTestFinished(() => opened.destroy());
  return opened;
}

/** Starts a request with a body that never ends. */
function posting(at: ClientHttp2Session, headers: Readonly<Record<string, string>> = {}): ClientHttp2Stream {
  const stream = at.request({ ":method": "POST", ":path": "/swarm/message", ...headers });
  stream.on("error", () => undefined);
  return stream;
}

/** Returns the status, or `closed` when there was no response. */
function statusOf(stream: ClientHttp2Stream): Promise<number | "closed" | undefined> {
  return new Promise((resolve) => {
    stream.on("response", (headers) => {
      stream.resume();
      resolve(headers[":status"]);
    });
    stream.on("close", () => resolve("closed"));
  });
}

async function memoryFlooded(limits: SemaphoreOptions, options: Partial<ListenerOptions> = {}) {
  const memory = new WatchedMemory(limits);
  const port = await listening({ bodyMemory: memory, ...options });
  return { memory, port };
}

it("bodies that never end stay within the memory limit, further ones are refused, and the listener recovers", async () => {
  const { memory, port } = await memoryFlooded({ limit: 8 * MIB, perKey: 64 * MIB });
  const strangers = [session(port), session(port)];
  const streams = strangers.flatMap((one) => Array.from({ length: 16 }, () => posting(one)));
  const statuses: unknown[] = [];
  for (const stream of streams) {
    stream.on("response", (headers) => statuses.push([headers[":status"], headers["retry-after"]]));
    stream.write(Buffer.alloc(LIMITS.bodyBytes - 1, 32));
  }
  // 62 MiB requested; at most four of the bodies fit.
  await eventually(async () => statuses.length >= streams.length - 4, true);
  expect(new Set(statuses.map((one) => JSON.stringify(one)))).toEqual(new Set(['[503,"5"]']));
  expect(memory.most).toBeGreaterThan(4 * MIB);
  expect(memory.most).toBeLessThanOrEqual(8 * MIB);

  for (const one of strangers) one.destroy();
  await eventually(async () => memory.inUse, 0);
  const after = posting(session(port));
  after.end("{}");
  expect(await statusOf(after)).toBe(200);
});

it("one caller cannot exhaust the memory for others", async () => {
  const { memory, port } = await memoryFlooded({ limit: 8 * MIB, perKey: 2 * MIB }, { proxies: 1 });
  const proxy = session(port);
  const stranger = { "x-forwarded-for": "2001:db8::1" };
  // Another address of the same network is the same caller.
  const neighbour = { "x-forwarded-for": "2001:db8::2" };
  posting(proxy, stranger).write(Buffer.alloc(MIB + 1, 32));
  await eventually(async () => memory.inUse, 2 * MIB);
  const second = posting(proxy, neighbour);
  second.write(Buffer.alloc(MIB + 1, 32));
  expect(await statusOf(second)).toBe(503);
  const other = posting(proxy, { "x-forwarded-for": "2001:db8:0:1::1" });
  other.end(Buffer.alloc(MIB + 1, 32));
  expect(await statusOf(other)).toBe(200);
});

it("a body of very many tiny chunks takes no more memory than its size", async () => {
  const memory = new WatchedMemory({ limit: 64 * MIB, perKey: 16 * MIB });
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
  const memory = new WatchedMemory({ limit: 64 * MIB, perKey: 16 * MIB });
  const early = ({ path }: { readonly path: string }) =>
    path === "/swarm/message" ? { status: 429, headers: {}, body: "{}" } : undefined;
  const handle: MeshHandler = Object.assign(async () => fine, { early });
  const port = await listening({ bodyMemory: memory, handle });
  const stream = posting(session(port));
  stream.write(Buffer.alloc(MIB, 32));
  expect(await statusOf(stream)).toBe(429);
  expect(memory.most).toBe(0);

  // The same HTTP/1.1 connection continues afterwards.
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

it("a client that sends its body too slowly is disconnected: the limit applies to the whole body", async () => {
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

it("connections per address are limited, and closed connections are released", async () => {
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

it("connections behind proxies are not counted, because all come from the proxy", async () => {
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

it("[MESH-M-8] connections that never begin TLS are closed after the time for a handshake", async () => {
  const port = await listening({ handshakeTime: 100 });
  const socket = connectTcp(port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "close");
});

it("[MESH-M-8] idle connections of callers with many are given up for newcomers, busy ones are not", async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const handle = async () => {
    await held;
    return fine;
  };
  const port = await listening({ maxConnections: 6, maxConnectionsPerAddress: 4, handle });
  const honest = session(port);
  const busy = posting(honest);
  busy.end("{}");
  const idle: Socket[] = [];
  for (const address of ["127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.3"]) {
    const socket = connectTcp({ port, host: "127.0.0.1", localAddress: address });
    socket.on("error", () => undefined);
    await once(socket, "connect");
    onTestFinished(() => void socket.destroy());
    idle.push(socket);
  }
  const [oldest] = idle;
  const closed = oldest === undefined ? undefined : once(oldest, "close");
  // All places are taken: by one busy peer, and by two strangers that say nothing.
  const newcomer = posting(session(port));
  newcomer.end("{}");
  await closed;
  expect(idle.map(({ destroyed }) => destroyed)).toEqual([true, false, false, false, false]);
  release();
  expect(await Promise.all([statusOf(busy), statusOf(newcomer)])).toEqual([200, 200]);
});
