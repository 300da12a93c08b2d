import { describe, expect, it } from "vitest";
import { ROLES } from "../roles.js";
import { hashToken, makeToken, sameHash, tokenIdOf } from "./token.js";

describe("a token", () => {
  it("contains its role and id, and can be selected with a double click", () => {
    for (const role of ROLES) {
      const { token, tokenId } = makeToken(role);
      expect(token).toMatch(new RegExp(`^mr_${role}_${tokenId}[0-9A-Za-z]{32}$`));
      expect(tokenIdOf(token)).toBe(tokenId);
    }
  });

  it("is unique", () => {
    const made = Array.from({ length: 2000 }, () => makeToken("user"));
    expect(new Set(made.map(({ token }) => token)).size).toBe(2000);
    expect(new Set(made.map(({ tokenId }) => tokenId)).size).toBe(2000);
  });

  it("uses the whole alphabet evenly", () => {
    const counts = new Map<string, number>();
    for (let made = 0; made < 3000; made++) {
      for (const character of makeToken("user").token.slice("mr_user_".length)) {
        counts.set(character, (counts.get(character) ?? 0) + 1);
      }
    }
    const expected = (3000 * 42) / 62;
    expect(counts.size).toBe(62);
    // Seven standard deviations: a bias by the remainder of a byte would be a quarter.
    for (const count of counts.values())
      expect(Math.abs(count - expected)).toBeLessThan(7 * Math.sqrt(expected));
  });

  it("has no other form", () => {
    const { token } = makeToken("user");
    for (const text of [
      "",
      "nope",
      token.slice(1),
      token.slice(0, -1),
      `${token}a`,
      token.replace("user", "king"),
    ]) {
      expect(tokenIdOf(text)).toBeUndefined();
    }
  });
});

describe("sameHash", () => {
  it("compares hashes of any length", () => {
    const hash = hashToken("a");
    expect(sameHash(hash, hashToken("a"))).toBe(true);
    expect(sameHash(hash, hashToken("b"))).toBe(false);
    expect(sameHash(hash, hash.subarray(0, 31))).toBe(false);
    expect(sameHash(hash, new Uint8Array(0))).toBe(false);
  });
});
