import { expect, it } from "vitest";
import { RateLimiter } from "./limits.js";

it("8.20: counts each caller by itself, and remembers only so many of them", () => {
  const limiter = new RateLimiter({ count: 1, window: 60_000 }, 2);
  expect(limiter.take("a", 0).allowed).toBe(true);
  expect(limiter.take("a", 1).allowed).toBe(false);
  expect(limiter.take("b", 2).allowed).toBe(true);
  expect(limiter.take("c", 3).allowed).toBe(true);
  // Of two places, those used last are kept.
  expect(limiter.take("c", 4).allowed).toBe(false);
  expect(limiter.take("a", 5).allowed).toBe(true);
  expect(limiter.take("c", 60_004).allowed).toBe(true);
});

it("weighs what it counts, and says when there is room for something of that weight", () => {
  const limiter = new RateLimiter({ count: 100, window: 60_000 });
  expect(limiter.take("a", 0, 60)).toMatchObject({ allowed: true, remaining: 40 });
  expect(limiter.take("a", 1_000, 30)).toMatchObject({ allowed: true, remaining: 10 });
  // What does not fit is not counted, and something lighter may fit.
  expect(limiter.take("a", 2_000, 11)).toMatchObject({ allowed: false, remaining: 10, resetAt: 60_000 });
  expect(limiter.take("a", 2_000, 71)).toMatchObject({ allowed: false, resetAt: 61_000 });
  expect(limiter.take("a", 3_000, 10)).toMatchObject({ allowed: true, remaining: 0 });
  expect(limiter.take("a", 60_000, 60)).toMatchObject({ allowed: true, remaining: 0 });
  expect(limiter.take("a", 61_000, 31).allowed).toBe(false);
  expect(limiter.take("a", 61_000, 30).allowed).toBe(true);
});
