/** Attacks on the MAP door. */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { type Attack, type Attacker, frameOf } from "./attacker.js";

const LARGE = "x".repeat(900_000);

/** The socket below: what `ws` itself would not send. */
function tcpOf(ws: WebSocket): Socket {
  return (ws as unknown as { _socket: Socket })._socket;
}

/** A conversation of its own with some large turns. */
async function largeConversation(attacker: Attacker, ws: WebSocket): Promise<string | undefined> {
  const created = await attacker.call(ws, "mail/create", {});
  const id = (created?.conversation as { id: string } | undefined)?.id;
  if (id === undefined) return undefined;
  for (let n = 0; n < 20 && attacker.active; n++) {
    await attacker.call(ws, "mail/turn", { conversationId: id, contentType: "x-large", content: LARGE });
  }
  return id;
}

/** Pipelines pages of large turns, and reads the answers or not. */
function pages(reads: boolean): Attack {
  return async (attacker) => {
    const first = await attacker.map();
    const conversationId = first === undefined ? undefined : await largeConversation(attacker, first);
    while (attacker.active && conversationId !== undefined) {
      const sockets = await Promise.all(Array.from({ length: 5 }, () => attacker.map()));
      for (const ws of sockets) {
        if (ws === undefined) continue;
        if (!reads) ws.pause();
        for (let n = 0; n < 256; n++) {
          ws.send(frameOf("mail/turns/list", { conversationId, limit: 500 }, n));
          ws.send(frameOf("mail/replay", { conversationId, limit: 500 }, -n));
          ws.send(frameOf("mail/get", { conversationId, include: { recentTurns: 500 } }, -n));
          ws.send(frameOf("map/replay", { limit: 1000 }, -n));
        }
      }
      await attacker.pause(2_000);
      attacker.leave();
    }
  };
}

/** Cheap requests as fast as possible. */
const pipelining: Attack = async (attacker) => {
  const ws = await attacker.map();
  const frame = frameOf("map/agents/list", {});
  while (attacker.active && ws?.readyState === ws?.OPEN) {
    for (let n = 0; n < 1_000; n++) ws?.send(frame);
    if (ws !== undefined) await attacker.flushed(ws);
    await attacker.pause();
  }
};

/** Subscribes often, sends itself large messages, and reads nothing. */
const unread: Attack = async (attacker) => {
  while (attacker.active) {
    const [reader, writer] = [await attacker.map(), await attacker.map()];
    if (reader === undefined || writer === undefined) return attacker.pause(100);
    const registered = await attacker.call(reader, "map/agents/register", {});
    const agent = (registered?.agent as { id: string } | undefined)?.id ?? "none";
    for (let n = 0; n < 100; n++) await attacker.call(reader, "map/subscribe", {});
    reader.pause();
    for (let n = 0; n < 50 && attacker.active; n++) {
      await attacker.call(writer, "map/send", { to: { agent }, payload: LARGE });
    }
    attacker.leave();
  }
};

/** Messages for agents that have left. */
const held: Attack = async (attacker) => {
  const agents: string[] = [];
  for (let n = 0; n < 40 && attacker.active; n++) {
    const ws = await attacker.map();
    if (ws === undefined) continue;
    const registered = await attacker.call(ws, "map/agents/register", {});
    agents.push((registered?.agent as { id: string } | undefined)?.id ?? "none");
    ws.terminate();
  }
  const writer = await attacker.map();
  for (let n = 0; attacker.active && writer?.readyState === writer?.OPEN; n++) {
    if (writer === undefined) return;
    await attacker.call(writer, "map/send", { to: { agent: agents[n % agents.length] }, payload: LARGE });
  }
};

/** With or without a token. */
function malformed(authenticated: boolean): Attack {
  return async (attacker) => {
    while (attacker.active) {
      const ws = await attacker.map({ authenticated });
      for (let n = 0; n < 5_000 && ws?.readyState === ws?.OPEN && attacker.active; n++) {
        ws?.send(n % 3 === 0 ? "{" : n % 3 === 1 ? "[1]" : frameOf("mail/list", {}));
        if (n % 500 === 0) await attacker.pause();
      }
      await attacker.pause(10);
    }
  };
}

const pings: Attack = async (attacker) => {
  while (attacker.active) {
    const ws = await attacker.map();
    ws?.pause();
    for (let n = 0; n < 20_000 && ws?.readyState === ws?.OPEN && attacker.active; n++) {
      ws?.ping("x".repeat(100));
      if (n % 500 === 0) await attacker.pause();
    }
    await attacker.pause(10);
  }
};

const filters: Attack = async (attacker) => {
  while (attacker.active) {
    const ws = await attacker.map();
    if (ws === undefined) return attacker.pause(100);
    const eventTypes = Array.from({ length: 1_000 }, (_, n) => `x${n}.${"y".repeat(900)}.*`);
    for (let n = 0; n < 100 && attacker.active; n++) {
      await attacker.call(ws, "map/subscribe", { filter: { eventTypes } });
      await attacker.call(ws, "map/subscribe", {
        filter: { eventTypes: eventTypes.map((one) => one.slice(0, 14)) },
      });
      await attacker.call(ws, "map/subscribe", { filter: { metadataMatch: { a: LARGE } } });
    }
  }
};

const registrations: Attack = async (attacker) => {
  while (attacker.active) {
    const ws = await attacker.map();
    if (ws === undefined) return attacker.pause(100);
    for (let n = 0; n < 1_200 && ws.readyState === ws.OPEN && attacker.active; n++) {
      ws.send(frameOf("map/agents/register", { metadata: { x: "x".repeat(15_000) } }, n));
      ws.send(frameOf("map/scopes/create", { extra: "x".repeat(15_000) }, -n));
      if (n % 50 === 0) await attacker.flushed(ws);
    }
    await attacker.call(ws, "map/structure/graph", {});
    await attacker.call(ws, "map/agents/list", { limit: 100_000 });
    ws.terminate();
  }
};

const nested: Attack = async (attacker) => {
  const ws = await attacker.map();
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  const frame = frameOf("mail/turn", { conversationId: "x", contentType: "x-y", content: "HOLE" });
  while (attacker.active && ws?.readyState === ws?.OPEN) {
    ws?.send(frame.replace('"HOLE"', deep));
    if (ws !== undefined) await attacker.flushed(ws);
    await attacker.pause();
  }
};

/** Frames that are never finished. */
const slowFrames: Attack = async (attacker) => {
  while (attacker.active) {
    for (let n = 0; n < 40 && attacker.active; n++) {
      const ws = await attacker.map({ authenticated: n % 2 === 0 });
      if (ws === undefined) continue;
      const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x0f, 0, 0, 0, 0, 0, 0]);
      tcpOf(ws).write(Buffer.concat([head, Buffer.alloc(980_000)]));
    }
    await attacker.pause(1_000);
    attacker.leave();
  }
};

/** A message in fragments of one byte. */
const fragments: Attack = async (attacker) => {
  while (attacker.active) {
    const ws = await attacker.map();
    const one = Buffer.from([0x00, 0x81, 0, 0, 0, 0, 0x20]);
    const many = Buffer.concat(Array.from({ length: 2_000 }, () => one));
    if (ws !== undefined) tcpOf(ws).write(Buffer.from([0x01, 0x81, 0, 0, 0, 0, 0x20]));
    for (let n = 0; n < 100 && ws?.readyState === ws?.OPEN && attacker.active; n++) {
      if (ws !== undefined) tcpOf(ws).write(many);
      await attacker.pause();
    }
    await attacker.pause(10);
    ws?.terminate();
  }
};

/** As many connections as possible, with and without a token. */
const connections: Attack = async (attacker) => {
  while (attacker.active) {
    await Promise.all(Array.from({ length: 50 }, (_, n) => attacker.map({ authenticated: n % 2 === 0 })));
    await attacker.pause(20);
  }
};

/** Large options before authentication. */
const options: Attack = async (attacker) => {
  while (attacker.active) {
    for (let n = 0; n < 50 && attacker.active; n++) {
      const ws = await attacker.map({ authenticated: false });
      ws?.send(frameOf("map/connect", { capabilities: { mail: { x: LARGE } } }));
    }
    await attacker.pause(200);
  }
};

/** Summaries of turns that consist of short questions. */
const summaries: Attack = async (attacker) => {
  const ws = await attacker.map();
  const created = ws === undefined ? undefined : await attacker.call(ws, "mail/create", {});
  const conversationId = (created?.conversation as { id: string } | undefined)?.id;
  while (attacker.active && ws !== undefined && ws.readyState === ws.OPEN) {
    const content = { text: "word? ".repeat(150_000) };
    await attacker.call(ws, "mail/turn", { conversationId, contentType: "text", content });
    await attacker.call(ws, "mail/summary", { conversationId, regenerate: true });
  }
};

export const MAP_ATTACKS: Readonly<Record<string, Attack>> = {
  pagesRead: pages(true),
  pagesUnread: pages(false),
  pipelining,
  unread,
  held,
  malformed: malformed(true),
  malformedBefore: malformed(false),
  pings,
  filters,
  registrations,
  nested,
  slowFrames,
  fragments,
  connections,
  options,
  summaries,
};
