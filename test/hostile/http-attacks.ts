/** Attacks on what listens for HTTP. */
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Attack, Attacker } from "./attacker.js";

/** Writes until the server does not read, or has closed the connection. */
async function write(attacker: Attacker, socket: Socket, data: string | Buffer): Promise<void> {
  if (socket.destroyed || socket.write(data)) return;
  const waiting = new AbortController();
  const { signal } = waiting;
  const either = [once(socket, "drain", { signal }), once(socket, "close", { signal })];
  await Promise.race([...either.map((event) => event.catch(() => {})), attacker.pause(1_000)]);
  waiting.abort();
}

/** Opens connections and sends each the same. */
function each(count: number, send: (attacker: Attacker, socket: Socket) => Promise<void>): Attack {
  return async (attacker) => {
    const sockets = await Promise.all(Array.from({ length: count }, () => attacker.socket()));
    await Promise.all(sockets.map((socket) => (socket === undefined ? undefined : send(attacker, socket))));
    await attacker.pause(200);
    attacker.leave();
  };
}

/** Many requests on one connection whose answers are never read. */
function pipelining(one: (attacker: Attacker) => string): Attack {
  return each(5, async (attacker, socket) => {
    socket.pause();
    const many = one(attacker).repeat(50);
    for (let n = 0; n < 100 && attacker.active && !socket.destroyed; n++) await write(attacker, socket, many);
  });
}

export interface Request {
  readonly method?: string;
  readonly path: string;
  readonly body: string;
  /** A path to read from, pipelined as well. */
  readonly reads?: string;
}

/** Attacks on one path that takes JSON. */
export function attacksOn({ method = "POST", path, body, reads }: Request): Readonly<Record<string, Attack>> {
  const json = { "content-type": "application/json" };
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  const post = (attacker: Attacker, text: string, extra: Readonly<Record<string, string>> = {}) =>
    `${attacker.head(method, path, { ...json, "content-length": Buffer.byteLength(text), ...extra })}${text}`;
  return {
    pipelining: pipelining((attacker) => post(attacker, body)),
    ...(reads !== undefined && { pipelinedReads: pipelining((attacker) => attacker.head("GET", reads)) }),
    /** A byte now and then. */
    slowBodies: each(100, async (attacker, socket) => {
      await write(attacker, socket, attacker.head(method, path, { ...json, "content-length": 900_000 }));
      await write(attacker, socket, " ".repeat(800_000));
      for (let n = 0; n < 10 && attacker.active; n++) {
        await write(attacker, socket, " ");
        await attacker.pause(100);
      }
    }),
    largeBodies: each(10, async (attacker, socket) => {
      await write(attacker, socket, attacker.head(method, path, { ...json, "content-length": 100_000_000 }));
      const piece = "x".repeat(65_536);
      for (let n = 0; n < 200 && attacker.active && !socket.destroyed; n++)
        await write(attacker, socket, piece);
    }),
    nested: each(10, async (attacker, socket) => {
      for (let n = 0; n < 5; n++) await write(attacker, socket, post(attacker, `{"x":${deep}}`));
    }),
    slowHeads: each(200, async (attacker, socket) => {
      await write(attacker, socket, `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n`);
      for (let n = 0; n < 20 && attacker.active; n++) {
        await write(attacker, socket, `x-${n}: y\r\n`);
        await attacker.pause(50);
      }
    }),
    longPaths: each(10, async (attacker, socket) => {
      for (const path of [
        `/${"a/".repeat(7_000)}`,
        `/tasks/${"%2e".repeat(4_000)}`,
        `/${"?&".repeat(7_000)}`,
        `/${"../".repeat(4_000)}`,
        `/tasks?${"a[]=1&".repeat(2_000)}`,
      ]) {
        await write(attacker, socket, attacker.head("GET", path));
      }
    }),
    manyHeaders: each(10, async (attacker, socket) => {
      const headers = Object.fromEntries(Array.from({ length: 1_500 }, (_, n) => [`x-${n}`, "y"]));
      await write(attacker, socket, attacker.head("GET", "/", headers));
    }),
    malformed: each(20, async (attacker, socket) => {
      for (const text of ["\0\0\0", "GET\r\n\r\n", "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", "{}\r\n"])
        await write(attacker, socket, text);
    }),
    wrongTokens: each(20, async (attacker, socket) => {
      for (let n = 0; n < 50; n++)
        await write(attacker, socket, post(attacker, body, { authorization: `Bearer wrong-${n}` }));
    }),
    connections: each(300, async () => {}),
  };
}
