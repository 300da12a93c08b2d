import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { onDisconnect, SseWriter } from "./sse.js";

/** A response without a reader, and a clock that the test advances. */
function unread(maxBuffered: number) {
  const timers = new Map<() => void, number>();
  let now = 0;
  const clock = {
    now: () => now,
    after: (ms: number, callback: () => void) => {
      timers.set(callback, now + ms);
      return () => void timers.delete(callback);
    },
  };
  const pass = (ms: number) => {
    now += ms;
    for (const [callback, due] of [...timers]) {
      if (due <= now && timers.delete(callback)) callback();
    }
  };
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const written: string[] = [];
  const write = response.write.bind(response);
  response.write = (chunk: unknown) => {
    written.push(String(chunk).slice(0, 8));
    return write(chunk);
  };
  const options = { clock, heartbeat: 100, ping: () => "ping", maxBuffered, patience: 50 };
  return { writer: new SseWriter(response, options), response, written, pass, timers };
}

const LARGE = "x".repeat(100_000);

describe("SseWriter", () => {
  it("sends a heartbeat after silence only", async () => {
    const { writer, written, pass } = unread(1_000_000);
    pass(60);
    await writer.send("event");
    pass(60);
    expect(written).toEqual(["event"]);
    pass(40);
    expect(written).toEqual(["event", "ping"]);
  });

  it("waits for a reader that is behind, and disconnects it when its time is over", async () => {
    const { writer, response, pass } = unread(10);
    const sent = writer.send(LARGE);
    pass(49);
    expect(writer.ended).toBeUndefined();
    pass(1);
    await sent;
    expect(writer.ended).toBe("too_slow");
    expect([response.destroyed, writer.signal.aborted]).toEqual([true, true]);
  });

  it("continues when the reader has caught up", async () => {
    const { writer, response } = unread(10);
    const sent = writer.send(LARGE);
    response.emit("drain");
    await sent;
    expect(writer.ended).toBeUndefined();
  });

  it("disconnects a reader that is behind when something is of no use later", () => {
    const { writer } = unread(10);
    writer.sendNow(LARGE);
    expect(writer.ended).toBe("too_slow");
  });

  it("ends once, and writes nothing afterwards", async () => {
    const { writer, written, timers } = unread(10);
    writer.end();
    await writer.send("late");
    writer.sendNow("late");
    expect([writer.ended, written, timers.size]).toEqual(["closed", [], 0]);
  });

  it("notices that the reader has gone", () => {
    const { writer, response } = unread(10);
    response.emit("close");
    expect([writer.ended, writer.signal.aborted]).toEqual(["disconnected", true]);
  });
});

it("onDisconnect calls back at once for a response that is over, and can be taken back", () => {
  const { response } = unread(10);
  let calls = 0;
  const remove = onDisconnect(response, () => {
    calls += 1;
  });
  remove();
  response.emit("close");
  expect(calls).toBe(0);
  response.destroy();
  onDisconnect(response, () => {
    calls += 1;
  });
  expect(calls).toBe(1);
});
