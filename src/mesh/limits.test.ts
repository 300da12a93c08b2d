import { expect, it } from "vitest";
import { RateLimiter } from "./limits.js";

it("a rate limiter counts callers separately and tracks a limited number of them", () => {
  const limiter = new RateLimiter({ count: 1, window: 60_000 }, 2);
  expect(limiter.consume("a", 0).allowed).toBe(true);
  expect(limiter.consume("a", 1).allowed).toBe(false);
  expect(limiter.consume("b", 2).allowed).toBe(true);
  expect(limiter.consume("c", 3).allowed).toBe(true);
  // Of the two tracked callers, the most recent ones are kept.
  expect(limiter.consume("c", 4).allowed).toBe(false);
  expect(limiter.consume("a", 5).allowed).toBe(true);
  expect(limiter.consume("c", 60_004).allowed).toBe(true);
});

it("a rate limiter counts weights and returns when there is capacity for the given weight", () => {
  const limiter = new RateLimiter({ count: 100, window: 60_000 });
  expect(limiter.consume("a", 0, 60)).toMatchObject({ allowed: true, remaining: 40 });
  expect(limiter.consume("a", 1_000, 30)).toMatchObject({ allowed: true, remaining: 10 });
  // An entry that does not fit is not counted, and a lighter one may fit.
  expect(limiter.consume("a", 2_000, 11)).toMatchObject({ allowed: false, remaining: 10, resetAt: 60_000 });
  expect(limiter.consume("a", 2_000, 71)).toMatchObject({ allowed: false, resetAt: 61_000 });
  expect(limiter.consume("a", 3_000, 10)).toMatchObject({ allowed: true, remaining: 0 });
  expect(limiter.consume("a", 60_000, 60)).toMatchObject({ allowed: true, remaining: 0 });
  expect(limiter.consume("a", 61_000, 31).allowed).toBe(false);
  expect(limiter.consume("a", 61_000, 30).allowed).toBe(true);
});
