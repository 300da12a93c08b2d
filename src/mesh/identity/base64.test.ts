import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeBase64, decodeBase64Url } from "./base64.js";

const textOf = (alphabet: string) => fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 12 });

describe.each([
  { decode: decodeBase64, encoding: "base64", alphabet: "AQgw048Zz9+/-_= \n" },
  { decode: decodeBase64Url, encoding: "base64url", alphabet: "AQgw048Zz9-_+/= \n" },
] as const)("$encoding", ({ decode, encoding, alphabet }) => {
  it("decoding base64 returns the encoded bytes for every byte sequence", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        expect(decode(Buffer.from(bytes).toString(encoding))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it("decoding rejects every text that is not the canonical encoding of its bytes", () => {
    fc.assert(
      fc.property(textOf(alphabet), (text) => {
        const isTheSpelling = Buffer.from(text, encoding).toString(encoding) === text;
        expect(decode(text) !== undefined).toBe(isTheSpelling);
      }),
      { numRuns: 5_000 },
    );
  });
});
