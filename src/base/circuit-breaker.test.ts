import { describe, expect, it } from "vitest";
import { CircuitBreaker } from "./circuit-breaker.js";

const pause = { base: 1_000, factor: 2, cap: 8_000, jitter: 0 };
const make = (): CircuitBreaker => new CircuitBreaker({ threshold: 3, pause });

function fail(circuits: CircuitBreaker, target: string, times: number, now = 0): void {
  for (let index = 0; index < times; index += 1) circuits.failed(target, now);
}

describe("circuits", () => {
  it("open after failures in a row, and only for that target", () => {
    const circuits = make();
    fail(circuits, "a", 2);
    circuits.succeeded("a");
    fail(circuits, "a", 2);
    expect(circuits.admit("a", 0)).toEqual({ admitted: true });
    circuits.failed("a", 0);
    expect(circuits.admit("a", 0)).toEqual({ admitted: false, retryAt: 1_000 });
    expect(circuits.admit("b", 0)).toEqual({ admitted: true });
  });

  it("let one attempt through when the pause is over; its success closes them", () => {
    const circuits = make();
    fail(circuits, "a", 3);
    expect(circuits.admit("a", 1_000)).toEqual({ admitted: true });
    expect(circuits.admit("a", 1_000)).toEqual({ admitted: false });
    circuits.succeeded("a");
    expect(circuits.admit("a", 1_000)).toEqual({ admitted: true });
    expect(circuits.isOpen("a")).toBe(false);
  });

  it("pause longer each time the attempt fails, up to the cap", () => {
    const circuits = make();
    fail(circuits, "a", 3);
    let now = 0;
    for (const wait of [1_000, 2_000, 4_000, 8_000, 8_000]) {
      expect(circuits.admit("a", now)).toEqual({ admitted: false, retryAt: now + wait });
      now += wait;
      expect(circuits.admit("a", now)).toEqual({ admitted: true });
      circuits.failed("a", now);
    }
  });

  it("do not count attempts that were running when they opened", () => {
    const circuits = make();
    fail(circuits, "a", 10);
    expect(circuits.admit("a", 0)).toEqual({ admitted: false, retryAt: 1_000 });
  });

  it("let another attempt through when the first told nothing, or when reset", () => {
    const circuits = make();
    fail(circuits, "a", 3);
    circuits.admit("a", 1_000);
    circuits.abandoned("a");
    expect(circuits.admit("a", 1_000)).toEqual({ admitted: true });
    circuits.reset("a");
    expect(circuits.admit("a", 0)).toEqual({ admitted: true });
  });
});
