import { describe, expect, it } from "vitest";
import { RateLimiter } from "./rate-limiter.js";

function limiter(limit: number, maxKeys?: number) {
  const clock = { time: 1_000, now: () => clock.time };
  const options = { limit, window: 100, ...(maxKeys !== undefined && { maxKeys }) };
  return { clock, limiter: new RateLimiter(options, clock) };
}

describe("RateLimiter", () => {
  it("allows so much in a window that begins with the first use", () => {
    const { clock, limiter: rates } = limiter(2);
    expect(rates.take("a")).toEqual({ allowed: true, limit: 2, remaining: 1, resetAt: 1_100 });
    clock.time = 1_050;
    expect(rates.take("a")).toEqual({ allowed: true, limit: 2, remaining: 0, resetAt: 1_100 });
    expect(rates.take("a")).toEqual({ allowed: false, limit: 2, remaining: 0, resetAt: 1_100 });
    expect(rates.take("b").allowed).toBe(true);
    clock.time = 1_100;
    expect(rates.take("a")).toEqual({ allowed: true, limit: 2, remaining: 1, resetAt: 1_200 });
  });

  it("weighs, and takes nothing of what does not fit", () => {
    const { limiter: rates } = limiter(10);
    expect(rates.take("a", 8).allowed).toBe(true);
    expect(rates.take("a", 3).allowed).toBe(false);
    expect(rates.take("a", 2)).toMatchObject({ allowed: true, remaining: 0 });
  });

  it("looks without counting", () => {
    const { limiter: rates } = limiter(1);
    expect(rates.peek("a")).toMatchObject({ allowed: true, remaining: 1 });
    expect(rates.take("a").allowed).toBe(true);
    expect(rates.peek("a")).toMatchObject({ allowed: false, remaining: 0 });
  });

  it("has no limit at 0", () => {
    const { limiter: rates } = limiter(0);
    expect(rates.limited).toBe(false);
    for (let n = 0; n < 100; n++) expect(rates.take("a").allowed).toBe(true);
  });

  it("forgets the oldest windows beyond its number of keys", () => {
    const { limiter: rates } = limiter(1, 2);
    for (const key of ["a", "b", "c"]) expect(rates.take(key).allowed).toBe(true);
    expect(["b", "c"].map((key) => rates.peek(key).allowed)).toEqual([false, false]);
    expect(rates.peek("a").allowed).toBe(true);
  });
});
