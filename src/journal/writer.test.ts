import { describe, expect, it } from "vitest";
import { ManualLoop } from "../../test/kit/manual-loop.js";
import { VirtualClock } from "../testing/virtual-clock.js";
import { Writer } from "./writer.js";

describe("a writer", () => {
  it("that cannot learn what became of a commit is degraded, like one that cannot write", async () => {
    const clock = new VirtualClock();
    const loop = new ManualLoop();
    let isReachable = false;
    const writer = new Writer({
      clock,
      loop,
      driver: {
        write: (_, done) => done({ kind: "unknown", cause: new Error("the connection was lost") }),
        outcome: (_, done) => done(isReachable ? { kind: "committed", outcomes: [[1]] } : undefined),
      },
    });
    const written = writer.commit({ appends: [{ journal: "j", expected: 0, count: 1, data: "[1]" }] });
    loop.run();
    clock.advance(1_000);
    expect(writer.health).toMatchObject({ state: "degraded", reason: "the connection was lost" });
    expect(() => writer.admit()).toThrow("the connection was lost");
    isReachable = true;
    clock.advance(2_000);
    await written;
    expect(writer.health.state).toBe("open");
  });
});
