/** However much one caller asks for, the others are served; and who is gone is not worked for. */
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

/** A server whose log is read only when the test says so. */
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
  it("reads for two requests of a connection at once, and the others follow", async () => {
    const { ann, reads } = await withSlowLog();
    for (let n = 0; n < 6; n++) ann.send(REPLAY.replace("ID", `replay-${n}`));
    await until(() => reads.length === 2);
    // Other requests of the same connection are not held up, and nothing more is read.
    await ann.call("map/agents/list");
    expect(reads).toHaveLength(2);
    const answered = () => ann.frames.filter(({ id }) => String(id).startsWith("replay-")).length;
    await until(() => {
      reads.shift()?.();
      return answered() === 6;
    });
  });

  it("is given up when its caller is gone", async () => {
    const { map, ann, reads } = await withSlowLog();
    for (let n = 0; n < 6; n++) ann.send(REPLAY.replace("ID", `replay-${n}`));
    await until(() => reads.length === 2);
    ann.socket.terminate();
    await until(() => ![...map.map.sessions.inSpace("")].some(({ connection }) => connection !== undefined));
    for (const read of reads.splice(0)) read();
    const bob = await map.raw();
    await bob.call("map/agents/list");
    expect(reads).toHaveLength(0);
  });
});

describe("mail/list", () => {
  it("lets others have their turn while it looks at many tasks", async () => {
    const house = await BridgeHarness.start();
    stops.push(() => house.stop());
    const http = new MailClient(house.url, { token: "user:ann" });
    for (let n = 0; n < 100; n++) await http.postMessage("look", { taskId: `t${n}` });
    const ann = await house.client("user:ann");
    let turns = 0;
    let looking = true;
    const count = (): void => {
      turns++;
      if (looking) setImmediate(count);
    };
    const list = ann.call("mail/list", { filter: { participantId: "nobody" } });
    await until(() => house.map.sessions.byParticipant("", "user:ann")?.connection !== undefined);
    setImmediate(count);
    expect((await list).conversations).toEqual([]);
    looking = false;
    expect(turns).toBeGreaterThan(10);
  });
});

describe("a store that takes no more", () => {
  it("is told as busy while it cannot be written, costs nobody what was taken before, and is no mistake of the server", async () => {
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
    // Who only reads is served.
    expect((await ann.call("mail/get", { conversationId })).conversation).toMatchObject({ status: "active" });
    disk.fate = () => undefined;
    expect((await taken).map(({ error }) => error)).toEqual(Array.from({ length: 10 }, () => undefined));
    expect((await say()).error).toBeUndefined();
    const { turns } = await ann.call("mail/turns/list", { conversationId });
    expect(turns).toHaveLength(11);
    expect(map.problems).toEqual([]);
  });

  it("is told as busy to who writes into a task, too, and costs the task nothing", async () => {
    const disk = new FaultyDisk();
    const house = await BridgeHarness.start({ store: await openStoreOn(disk) });
    stops.push(() => house.stop());
    const posted = await house.mailroom.user("ann").post("look");
    await posted.outcome;
    const ann = await house.client("user:ann");
    const { conversations } = await ann.call("mail/list");
    const [{ id: conversationId }] = conversations as [{ id: string }];
    const say = () => ann.request("mail/turn", { conversationId, ...text("again") });
    disk.fate = () => "transient";
    const taken = say();
    await until(() => house.mailroom.store.writer.degraded);
    expect((await say()).error).toMatchObject({ code: 4000, data: { retryable: true } });
    disk.fate = () => undefined;
    expect((await taken).error).toBeUndefined();
    expect((await say()).error).toBeUndefined();
  });

  it("says so when it has failed for good, to those who waited and to those who come", async () => {
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

  it("refuses whom it has no room for, and keeps what the others have said", async () => {
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
    // Nobody had to read the conversation again because of those who were refused.
    expect(reads).toBe(0);
    const { turns } = await ann.call("mail/turns/list", { conversationId, limit: 500 });
    expect(turns).toHaveLength(said);
  });
});
