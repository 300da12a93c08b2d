import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mistakeIn, parseJsonText } from "./json-text.js";

describe("parseJsonText", () => {
  it("parses what JSON.parse parses", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 2, "\t"), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        expect(parseJsonText(text).value).toEqual(JSON.parse(text));
      }),
    );
  });

  it("accepts and rejects the same texts as JSON.parse", () => {
    const pieces = fc.constantFrom(
      '"a"',
      "1",
      "-0.5e3",
      "01",
      "tru",
      "true",
      "null",
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      " ",
      '"',
      "\n",
      "\\",
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const text = parts.join("");
        expect(accepts(() => parseJsonText(text))).toBe(accepts(() => JSON.parse(text)));
      }),
      { numRuns: 2000 },
    );
  });

  it("has the position of every part", () => {
    const json = parseJsonText('{\n  "a": [1,\n    {"b c": true}],\n  "é": "x"\n}');
    expect(json.placeOf(["a"])).toEqual({ line: 2, column: 3 });
    expect(json.placeOf(["a", 1])).toEqual({ line: 3, column: 5 });
    expect(json.placeOf(["a", 1, "b c"])).toEqual({ line: 3, column: 6 });
    expect(json.placeOf(["é"])).toEqual({ line: 4, column: 3 });
    expect(json.placeOf([])).toEqual({ line: 1, column: 1 });
  });

  it("returns the nearest position for a missing part", () => {
    expect(parseJsonText('[\n {"a": 1}]').placeOf([0, "missing", "deep"])).toEqual({ line: 2, column: 2 });
  });

  it("reports duplicate keys", () => {
    expect(parseJsonText('{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}').duplicateKeys).toEqual([
      ["b", "c"],
      ["a"],
    ]);
  });

  it("treats __proto__ like any other key", () => {
    const { value } = parseJsonText('{"__proto__": {"x": 1}}');
    expect(Object.keys(Object(value))).toEqual(["__proto__"]);
    expect(Object(value).x).toBeUndefined();
  });

  it("accepts a byte order mark", () => {
    expect(parseJsonText("\uFEFF[1]").value).toEqual([1]);
  });

  it.each([
    ["[1,\n 2,]", /comma/, 2, 4],
    ["{'a': 1}", /double quotes/, 1, 2],
    ['{"a" 1}', /':' after the key "a"/, 1, 6],
    ['["a\n"]', /closing quote/, 1, 2],
    ["[nul]", /'nul' is not a JSON value/, 1, 2],
    ["[1] x", /unexpected text/, 1, 5],
    ["", /unexpected end/, 1, 1],
    ["[".repeat(300), /levels deep/, 1, 202],
  ])("%j is rejected with its position", (text, message, line, column) => {
    const error = failureOf(text);
    expect(error.message).toMatch(message);
    expect(mistakeIn(error)).toEqual({ line, column });
  });
});

function accepts(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}

function failureOf(text: string): Error {
  try {
    parseJsonText(text);
  } catch (error) {
    if (error instanceof Error && mistakeIn(error) !== undefined) return error;
    throw error;
  }
  throw new Error("it was accepted");
}
