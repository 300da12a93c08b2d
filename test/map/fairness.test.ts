/** One caller cannot starve the others, and no work is done for closed connections. */
import { afterEach, describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { openStore } from "../../src/store/index.js";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import { BridgeHarness } from "./bridge-harness.js";
import { Harness, text, until } from "./harness.js";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A server whose log reads wait for the test. */
async function withSlowLog() {
  const store = await openStore({ path: ":memory:" });
  const reads: (() => void)[] = [];
  let slow = false;
  const readAll = store.readAll.bind(store);
  store.readAll = async (after, limit) => {
    if (slow) await new Promise<void>((resolve) => reads.push(resolve));
    return readAll(after, limit);
  };
  const map = await Harness.start({ store });
  stops.push(() => map.stop());
  const ann = await map.raw({ connect: { participantType: "client" } });
  const { conversation } = await ann.call("mail/create");
  const { id: conversationId } = conversation as { id: string };
  await ann.call("mail/turn", { conversationId, ...text("hello") });
  slow = true;
  return { map, ann, reads };
}

const REPLAY = '{"jsonrpc":"2.0","id":"ID","method":"map/replay","params":{}}';

describe("map/replay", () => {
  it("runs two scans of a connection at once, and the others wait", async () => {
    const { ann, reads } = await withSlowLog();
    for (let n = 0; n < 6; n++) ann.send(REPLAY.replace("ID", `replay-${n}`));
    await until(() => reads.length === 2);
    // Other requests of the same connection are not delayed, and nothing more is read.
    await ann.call("map/agents/list");
    expect(reads).toHaveLength(2);
    const answered = () => ann.frames.filter(({ id }) => String(id).startsWith("replay-")).length;
    await until(() => {
      reads.shift()?.();
      return answered() === 6;
    });
  });

  it("is abandoned when its caller disconnects", async () => {
    const { map, ann, reads } = await withSlowLog();
    for (let n = 0; n < 6; n++) ann.send(REPLAY.replace("ID", `replay-${n}`));
    await until(() => reads.length === 2);
    ann.socket.terminate();
    await until(
      () => ![...map.map.context.sessions.inSpace("")].some(({ connection }) => connection !== undefined),
    );
    for (const read of reads.splice(0)) read();
    const bob = await map.raw();
    await bob.call("map/agents/list");
    expect(reads).toHaveLength(0);
  });
});

describe("mail/list", () => {
  it("yields to other requests while it scans many tasks", async () => {
    const bridge = await BridgeHarness.start();
    stops.push(() => bridge.stop());
    const http = new MailClient(bridge.url, { token: "user:ann" });
    for (let n = 0; n < 100; n++) await http.postMessage("look", { taskId: `t${n}` });
    const ann = await bridge.client("user:ann");
    let turns = 0;
    let looking = true;
    const count = (): void => {
      turns++;
      if (looking) setImmediate(count);
    };
    const list = ann.call("mail/list", { filter: { participantId: "nobody" } });
    await until(() => bridge.map.context.sessions.byParticipant("", "user:ann")?.connection !== undefined);
    setImmediate(count);
    expect((await list).conversations).toEqual([]);
    looking = false;
    expect(turns).toBeGreaterThan(10);
  });
});

describe("a store that accepts no writes", () => {
  it("is reported as busy, loses no accepted write, and is not an internal error", async () => {
    const disk = new FaultyDisk();
    const map = await Harness.start({ store: await openStoreOn(disk) });
    stops.push(() => map.stop());
    const ann = await map.raw();
    const { conversation } = await ann.call("mail/create");
    const { id: conversationId } = conversation as { id: string };
    const say = () => ann.request("mail/turn", { conversationId, ...text("x") });
    disk.fate = () => "transient";
    const taken = Promise.all(Array.from({ length: 10 }, say));
    await until(() => map.store.writer.degraded);
    for (const method of ["mail/turn", "mail/create", "mail/close", "mail/summary"]) {
      const { error } = await ann.request(method, { conversationId, ...text("x") });
      expect([method, error?.code, error?.data?.retryable]).toEqual([method, 4000, true]);
    }
    // Readers are still served.
    expect((await ann.call("mail/get", { conversationId })).conversation).toMatchObject({ status: "active" });
    disk.fate = () => undefined;
    expect((await taken).map(({ error }) => error)).toEqual(Array.from({ length: 10 }, () => undefined));
    expect((await say()).error).toBeUndefined();
    const { turns } = await ann.call("mail/turns/list", { conversationId });
    expect(turns).toHaveLength(11);
    expect(map.problems).toEqual([]);
  });

  it("is reported as busy to writers of a task, and does not affect the task", async () => {
    const disk = new FaultyDisk();
    const bridge = await BridgeHarness.start({ store: await openStoreOn(disk) });
    stops.push(() => bridge.stop());
    const posted = await bridge.mailroom.user("ann").post("look");
    await posted.outcome;
    const ann = await bridge.client("user:ann");
    const { conversations } = await ann.call("mail/list");
    const [{ id: conversationId }] = conversations as [{ id: string }];
    const say = () => ann.request("mail/turn", { conversationId, ...text("again") });
    disk.fate = () => "transient";
    const taken = say();
    await until(() => bridge.mailroom.store.writer.degraded);
    expect((await say()).error).toMatchObject({ code: 4000, data: { retryable: true } });
    disk.fate = () => undefined;
    expect((await taken).error).toBeUndefined();
    expect((await say()).error).toBeUndefined();
  });

  it("is reported as failed to waiting and new callers once it has failed permanently", async () => {
    const disk = new FaultyDisk();
    const map = await Harness.start({ store: await openStoreOn(disk) });
    stops.push(() => map.stop());
    const ann = await map.raw();
    const { conversation } = await ann.call("mail/create");
    const { id: conversationId } = conversation as { id: string };
    disk.fate = () => "final";
    for (const _ of ["while it fails", "afterwards"]) {
      const { error } = await ann.request("mail/turn", { conversationId, ...text("x") });
      expect(error).toMatchObject({ code: -32603, message: expect.stringContaining("the store has failed") });
    }
    const { turns } = await ann.call("mail/turns/list", { conversationId });
    expect(turns).toEqual([]);
  });

  it("rejects commands beyond the limit and keeps the others", async () => {
    const store = await openStore({ path: ":memory:", writerLimits: { units: 20 } });
    const map = await Harness.start({ store });
    stops.push(() => map.stop());
    const ann = await map.raw();
    const { conversation } = await ann.call("mail/create");
    const { id: conversationId } = conversation as { id: string };
    let reads = 0;
    const read = store.read.bind(store);
    store.read = (journal, options) => {
      reads++;
      return read(journal, options);
    };
    const frames = await Promise.all(
      Array.from({ length: 100 }, () => ann.request("mail/turn", { conversationId, ...text("x") })),
    );
    const said = frames.filter(({ error }) => error === undefined).length;
    expect(said).toBeGreaterThan(0);
    expect(said).toBeLessThan(100);
    expect(new Set(frames.map(({ error }) => error?.code))).toEqual(new Set([undefined, 4000]));
    // The rejected requests did not cause a reload of the conversation.
    expect(reads).toBe(0);
    const { turns } = await ann.call("mail/turns/list", { conversationId, limit: 500 });
    expect(turns).toHaveLength(said);
  });
});
