/** Continuing after an event when many more have happened since. */
import { afterEach, describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { BridgeHarness } from "./bridge-harness.js";
import { Harness, until } from "./harness.js";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

describe("a subscription that cannot catch up", () => {
  it("closes its connection instead of staying silent", async () => {
    const reader = await startWithSmallRing();
    const emit = (type: string, times: number) => {
      for (let n = 0; n < times; n++)
        reader.map.context.log.emit({ type, source: "s", data: {}, isFor: () => true });
    };
    emit("x_early", 5);
    // The reader is slow while more events happen than are kept.
    reader.buffered = 2 * 1024 * 1024;
    await reader.ask("map/subscribe", { replayFrom: 0 });
    await until(() => reader.frames.some(({ method }) => method === "map/event"));
    emit("x_meanwhile", 1500);
    reader.buffered = 0;
    expect(await until(() => reader.closed)).toBe(1013);
  });
});

async function startWithSmallRing() {
  const server = await Harness.start({ limits: { eventRing: 5, maxUnread: 4 * 1024 * 1024 } });
  stops.push(() => server.stop());
  const reader = {
    map: server.map,
    frames: [] as { readonly id?: string; readonly method?: string }[],
    buffered: 0,
    closed: undefined as number | undefined,
    ask: async (method: string, params: object) => {
      connection?.receive(JSON.stringify({ jsonrpc: "2.0", id: method, method, params }));
      await until(() => reader.frames.find(({ id }) => id === method));
    },
  };
  const connection = server.map.connect({
    send: (frame) => void reader.frames.push(JSON.parse(frame)),
    get buffered() {
      return reader.buffered;
    },
    close: (code) => {
      reader.closed = code;
    },
  });
  await reader.ask("map/connect", { participantType: "client" });
  return reader;
}

describe("an event of a task that retention has removed", () => {
  it("is still a valid position to continue from", async () => {
    const bridge = await BridgeHarness.start();
    stops.push(() => bridge.stop());
    const http = new MailClient(bridge.url, { token: "user:ann" });
    await http.postMessage("look", { taskId: "old" });
    const ann = await bridge.client("user:ann");
    const mail = { filter: { eventTypes: ["mail.*"] } };
    const { events } = await ann.call("map/replay", { ...mail, limit: 1000 });
    const last = (events as { eventId: string }[]).at(-1)?.eventId;
    const { conversations } = await ann.call("mail/list");
    const [old] = conversations as { id: string }[];
    expect(await bridge.mailroom.runtime.remove(old?.id.replace("conv-", "") ?? "")).toBe(true);
    await ann.call("map/subscribe", { ...mail, replayFrom: last });
    const { conversation } = await ann.call("mail/create");
    const told = await ann.find(({ method }) => method === "map/event");
    expect(told.params?.event).toMatchObject({
      type: "mail.created",
      data: { conversationId: (conversation as { id: string }).id },
    });
    const next = await ann.call("map/replay", { ...mail, afterEventId: last });
    expect((next.events as unknown[]).length).toBeGreaterThan(0);
    // A position that never existed is rejected.
    const never = await ann.request("map/replay", { ...mail, afterEventId: "evt-0000000zzzz-0000" });
    expect(never.error?.data).toMatchObject({ details: { reason: "event_unknown" } });
  });
});
