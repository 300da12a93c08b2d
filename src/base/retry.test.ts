import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/kit/seeded.js";
import { parseRetryAfter, retry, retryAfterSeconds, retryDelay } from "./retry.js";

const policy = { base: 1_000, factor: 2, cap: 60_000, jitter: 0.25 };

describe("backoff", () => {
  it("lies between the nominal wait and what jitter takes off, and never above the cap", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), fc.integer(), (failures, seed) => {
        const nominal = Math.min(60_000, 1_000 * 2 ** Math.min(failures - 1, 64));
        const delay = retryDelay(policy, failures, seededRandom(seed).next);
        expect(delay).toBeGreaterThanOrEqual(Math.round(nominal * 0.75));
        expect(delay).toBeLessThanOrEqual(nominal);
      }),
    );
  });

  it("repeats itself with the same seed and not with another", () => {
    const draw = (seed: number): number[] => {
      const random = seededRandom(seed).next;
      return Array.from({ length: 8 }, (_, index) => retryDelay(policy, index + 1, random));
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });
});

describe("Retry-After", () => {
  const now = Date.parse("2026-11-16T01:30:00Z");
  it.each([
    ["3", 3_000],
    ["0", 0],
    ["Mon, 16 Nov 2026 01:30:10 GMT", 10_000],
    ["Mon, 16 Nov 2026 01:29:00 GMT", 0],
    [String(now / 1_000 + 45), 45_000],
    ["1794792705", 105_000],
    ["86400", 300_000],
    ["soon", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("%j is a wait of %s ms", (text, wait) => expect(parseRetryAfter(text, now)).toBe(wait));
});

describe("retry", () => {
  const waits: number[] = [];
  const clock = {
    after: (ms: number, callback: () => void) => {
      waits.push(ms);
      queueMicrotask(callback);
      return () => {};
    },
  };
  const options = { policy: { ...policy, jitter: 0 }, clock, random: () => 0 };
  /** Fails this many times, then succeeds. */
  const failing = (times: number) => {
    let attempts = 0;
    return async () => {
      attempts += 1;
      if (attempts <= times) throw new Error(`attempt ${attempts}`);
      return attempts;
    };
  };

  it("waits as the policy or the failure says, until it succeeds", async () => {
    waits.length = 0;
    const classify = (_: unknown, failures: number) => (failures === 2 ? { after: 7 } : "retry");
    await expect(retry(failing(3), { ...options, classify })).resolves.toBe(4);
    expect(waits).toEqual([1_000, 7, 4_000]);
  });

  it("gives up when the failure or the number of attempts says so", async () => {
    await expect(retry(failing(3), { ...options, classify: () => "stop" })).rejects.toThrow("attempt 1");
    const limited = { ...options, maxAttempts: 2, classify: () => "retry" as const };
    await expect(retry(failing(3), limited)).rejects.toThrow("attempt 2");
  });

  it("throws the signal's reason, whatever the attempt threw", async () => {
    const stop = new AbortController();
    const attempt = async () => {
      stop.abort(new Error("closing"));
      throw new Error("cut off");
    };
    const stopped = { ...options, signal: stop.signal, classify: () => "retry" as const };
    await expect(retry(attempt, stopped)).rejects.toThrow("closing");
  });
});

it("retryAfterSeconds is at least a second", () => {
  expect([0, 1, 1_000, 1_001].map(retryAfterSeconds)).toEqual([1, 1, 1, 2]);
});
