import { expect, it } from "vitest";
import { digest, secretsMatch } from "./digest.js";

it("digest does not depend on the order of keys", () => {
  expect(digest({ a: 1, b: [2] })).toBe(digest({ b: [2], a: 1 }));
  expect(digest({ a: 1 })).not.toBe(digest({ a: "1" }));
  expect(digest({})).toBe("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
});

it("secretsMatch compares secrets of any length", () => {
  expect(secretsMatch("secret", "secret")).toBe(true);
  expect(secretsMatch("secre", "secret")).toBe(false);
  expect(secretsMatch(undefined, "")).toBe(false);
});
