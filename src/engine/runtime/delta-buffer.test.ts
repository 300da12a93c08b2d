import { describe, expect, it } from "vitest";
import { DeltaBuffer } from "./delta-buffer.js";
import type { DeltaNotification } from "./follow.js";

function piece(delta: string, offset: number, more: Partial<DeltaNotification> = {}): DeltaNotification {
  return { key: "k", agent: "a", attempt: 1, offset, delta, ...more };
}

const CALL = { id: "c", name: "task_complete" };

describe("text that waits for a reader", () => {
  it("is joined by agent and call", () => {
    const waiting = new DeltaBuffer();
    waiting.add(piece("on", 0));
    waiting.add(piece("x", 0, { agent: "b" }));
    waiting.add(piece("An", 0, { call: CALL }));
    waiting.add(piece("e", 2));
    waiting.add(piece("swer", 2, { call: CALL }));
    expect(waiting.take()).toEqual([
      piece("one", 0),
      piece("x", 0, { agent: "b" }),
      piece("Answer", 0, { call: CALL }),
    ]);
    expect(waiting.isEmpty).toBe(true);
  });

  it("begins with the mark when an answer begins again", () => {
    const waiting = new DeltaBuffer();
    waiting.add(piece("old", 0));
    waiting.add(piece("old", 0, { call: CALL }));
    waiting.add(piece("", 0, { attempt: 2, reset: true }));
    waiting.add(piece("new", 0, { attempt: 2, call: CALL }));
    expect(waiting.take()).toEqual([
      piece("", 0, { attempt: 2, reset: true }),
      piece("new", 0, { attempt: 2, call: CALL }),
    ]);
  });

  it("of another turn replaces what waits", () => {
    const waiting = new DeltaBuffer();
    waiting.add(piece("of the first", 0));
    waiting.add(piece("of the second", 0));
    expect(waiting.take()).toEqual([piece("of the second", 0)]);
  });

  it("is left out once the turn is over, and that of other agents is not", () => {
    const waiting = new DeltaBuffer();
    waiting.add(piece("a", 0));
    waiting.add(piece("b", 0, { agent: "b" }));
    waiting.replaceBy({ t: "turn_failed", at: 0, agent: "a", took: [1], code: "x", message: "" });
    expect(waiting.take()).toEqual([piece("b", 0, { agent: "b" })]);
  });

  it("is bounded: the oldest is left out", () => {
    const waiting = new DeltaBuffer();
    const long = "x".repeat(1_000);
    for (let n = 0; n < 1_000; n++) waiting.add(piece(long, 0, { agent: `agent ${n}` }));
    const left = waiting.take();
    expect(left.reduce((sum, { delta }) => sum + delta.length, 0)).toBeLessThanOrEqual(256 * 1024);
    expect(left.at(-1)?.agent).toBe("agent 999");
    // Many marks are bounded as well.
    for (let n = 0; n < 10_000; n++) waiting.add(piece("", 0, { agent: `agent ${n}`, reset: true }));
    expect(waiting.take().length).toBeLessThan(3_000);
  });
});
