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
