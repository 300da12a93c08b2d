import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tokenize } from "./tokenize.js";

describe("words of a line", () => {
  it.each([
    ["", []],
    ["  a   b ", ["a", "b"]],
    ['m "two words" -s \'a "b"\'', ["m", "two words", "-s", 'a "b"']],
    [String.raw`"say \"hi\"" a\ b c:\\d`, ['say "hi"', "a b", String.raw`c:\d`]],
    ["a'b'\"c\" ''", ["abc", ""]],
  ])("%s", (line, words) => {
    expect(tokenize(line)).toEqual(words);
  });

  it("an unclosed quote is reported", () => {
    expect(() => tokenize('m "never closed')).toThrow("unclosed quote");
  });

  it("quoted text is preserved", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (words) => {
        const line = words.map((word) => `"${word.replace(/["\\]/g, "\\$&")}"`).join(" ");
        expect(tokenize(line)).toEqual(words);
      }),
    );
  });
});
