import { describe, expect, it } from "vitest";
import {
  canonicalJson,
  encodeJson,
  exceedsDepth,
  isRecord,
  JsonDepthError,
  MAX_JSON_DEPTH,
  ownValue,
  parseJson,
  truncate,
} from "./json.js";

describe("canonicalJson", () => {
  it("sorts keys by UTF-16 units and leaves out what JSON leaves out", () => {
    expect(canonicalJson({ b: 1, a: [{ d: undefined, c: null }], 10: "x", 9: "y" })).toBe(
      '{"10":"x","9":"y","a":[{"c":null}],"b":1}',
    );
    expect(canonicalJson({ "\u20ac": 1, "\r": 2, "\ud83d\ude00": 3 })).toBe('{"\\r":2,"€":1,"😀":3}');
  });

  it("writes values as JSON.stringify does", () => {
    expect(canonicalJson([1e21, 0.1, -0, "\u2028", true, undefined, () => 1])).toBe(
      '[1e+21,0.1,0,"\u2028",true,null,null]',
    );
    expect(canonicalJson({ at: new Date(0), run: () => 1 })).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
    expect(canonicalJson(undefined)).toBe("null");
  });
});

it("exceedsDepth counts nested lists and objects", () => {
  expect(exceedsDepth(1, 0)).toBe(false);
  expect(exceedsDepth([], 0)).toBe(true);
  expect(exceedsDepth([{ a: [] }], 3)).toBe(false);
  expect(exceedsDepth([{ a: [] }], 2)).toBe(true);
});

it("isRecord accepts objects only", () => {
  expect([{}, [], null, "text", undefined].map(isRecord)).toEqual([true, false, false, false, false]);
});

it("ownValue ignores inherited keys", () => {
  expect(ownValue({ a: 1 }, "a")).toBe(1);
  expect(ownValue<unknown>({ a: 1 }, "constructor")).toBeUndefined();
  expect(ownValue(undefined, "a")).toBeUndefined();
});

it("truncate keeps to the limit and says so", () => {
  expect(truncate("abc", 3)).toBe("abc");
  expect(truncate("abcd", 3)).toBe("ab…");
});

it("parseJson accepts values up to the limit of nesting", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  expect(parseJson('{"a":[1]}')).toEqual({ a: [1] });
  expect(() => parseJson("{")).toThrow(SyntaxError);
  expect(() => parseJson(nested(MAX_JSON_DEPTH))).not.toThrow();
  expect(() => parseJson(nested(MAX_JSON_DEPTH + 1))).toThrow(JsonDepthError);
  expect(() => parseJson(nested(500_000))).toThrow(JsonDepthError);
});

it("encodeJson writes values that are nested deeper than the stack", () => {
  const inner = '{"a":[1,"x\\n",null,true,{}],"b":{"c":[]},"d":[[],[2]]}';
  const text = `${'{"k":['.repeat(50_000)}${inner}${"]}".repeat(50_000)}`;
  expect(() => JSON.stringify(JSON.parse(text))).toThrow(RangeError);
  expect(encodeJson(JSON.parse(text)) === text).toBe(true);
  expect(encodeJson(undefined)).toBe("null");
});
