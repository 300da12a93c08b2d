/** Clients that send useless frames: they are disconnected, and cost others nothing. */
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { devAuthenticator } from "../../src/auth/index.js";
import { Harness, type ServerOptions, until } from "./harness.js";

let map: Harness;
afterEach(() => map.stop());

const start = async (options: ServerOptions = {}) => {
  map = await Harness.start({ authenticator: devAuthenticator(), ...options });
};

const closeOf = (socket: WebSocket) =>
  new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once("close", (code, reason) => resolve({ code, reason: String(reason) }));
  });

const bearer = (token: string) => ({ auth: { method: "bearer", token } });

describe("before map/connect", () => {
  it("[MAP-F-3] a client that sends malformed frames is disconnected, and its address waits a minute", async () => {
    await start({ limits: { maxMalformedPerAddress: 40 } });
    for (let round = 0; round < 2; round++) {
      const socket = await map.socket();
      const closed = closeOf(socket);
      for (let n = 0; n < 1_000; n++) socket.send("{");
      expect(await closed).toEqual({ code: 1008, reason: "too many frames before map/connect" });
    }
    const later = await map.socket();
    expect((await closeOf(later)).reason).toContain("too many malformed frames from this address");
  });

  it("[MAP-F-3] a client that sends valid requests first is disconnected", async () => {
    await start();
    const raw = await map.raw({ connect: false });
    const closed = closeOf(raw.socket);
    for (let n = 0; n < 100; n++) void raw.request("mail/list");
    expect((await closed).code).toBe(1008);
    expect(raw.frames.length).toBeLessThanOrEqual(20);
  });

  it("[MAP-F-3] large frames and large options are refused", async () => {
    await start();
    const one = await map.raw({ connect: false });
    const closed = closeOf(one.socket);
    void one.request("map/connect", { capabilities: { mail: { x: "x".repeat(900_000) } } });
    expect(await closed).toEqual({ code: 1009, reason: "too much data before map/connect" });
    const two = await map.raw({ connect: false });
    const { error } = await two.request("map/connect", { capabilities: { mail: { x: "x".repeat(50_000) } } });
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("capabilities") });
    // The rest of an unfinished frame is not waited for.
    const three = await map.socket();
    const gone = closeOf(three);
    const tcp = (three as unknown as { _socket: Socket })._socket;
    tcp.write(
      Buffer.concat([
        Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x0f, 0, 0, 0, 0, 0, 0]),
        Buffer.alloc(400_000),
      ]),
    );
    expect((await gone).code).toBe(1009);
  });

  it("[MAP-F-3] connections of one address that wait for map/connect are limited", async () => {
    await start({ limits: { maxPendingPerAddress: 5 } });
    const idle = await Promise.all(Array.from({ length: 5 }, () => map.socket()));
    const refused = await map.socket();
    expect((await closeOf(refused)).code).toBe(1013);
    idle[0]?.close();
    await until(() => map.map.admission.refusal("127.0.0.1") === undefined);
    await map.raw({ connect: bearer("user:ann") });
  });
});

describe("a connected client", () => {
  it("[MAP-F-3] that sends malformed frames is disconnected after a number per minute", async () => {
    await start();
    const ann = await map.raw({ connect: bearer("user:ann") });
    const closed = closeOf(ann.socket);
    for (let n = 0; n < 100; n++) ann.send(n % 2 === 0 ? "{" : "[1]");
    ann.socket.send(Buffer.from([1, 2, 3]));
    expect(await closed).toEqual({ code: 1008, reason: "too many malformed frames" });
    expect(ann.frames.filter(({ error }) => error !== undefined).length).toBeLessThanOrEqual(21);
  });

  it("[MAP-F-3] that floods pings is disconnected; a few are answered", async () => {
    await start();
    const ann = await map.raw({ connect: bearer("user:ann") });
    const pong = new Promise<string>((resolve) => ann.socket.once("pong", (data) => resolve(String(data))));
    ann.socket.ping("here");
    expect(await pong).toBe("here");
    const closed = closeOf(ann.socket);
    for (let n = 0; n < 1_000; n++) ann.socket.ping();
    expect(await closed).toEqual({ code: 1008, reason: "too many pings" });
  });

  it("[MAP-F-3] can have a number of connections, and receives the limit beyond it", async () => {
    await start({ limits: { maxConnectionsPerCaller: 3 } });
    const open = [];
    for (let n = 0; n < 3; n++) open.push(await map.raw({ connect: bearer("user:ann") }));
    const fourth = await map.raw({ connect: false });
    expect((await fourth.request("map/connect", bearer("user:ann"))).error).toMatchObject({
      code: 4002,
      message: "a caller can have 3 connections; close one and connect again",
    });
    await map.raw({ connect: bearer("user:bob") });
    open[0]?.socket.close();
    let refused = true;
    while (refused) refused = (await fourth.request("map/connect", bearer("user:ann"))).error?.code === 4002;
    expect(fourth.frames.at(-1)).toMatchObject({ result: { participantId: "user:ann" } });
  });
});
