import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitWords } from "./words.js";

describe("words of a line", () => {
  it.each([
    ["", []],
    ["  a   b ", ["a", "b"]],
    ['m "two words" -s \'a "b"\'', ["m", "two words", "-s", 'a "b"']],
    [String.raw`"say \"hi\"" a\ b c:\\d`, ['say "hi"', "a b", String.raw`c:\d`]],
    ["a'b'\"c\" ''", ["abc", ""]],
  ])("%s", (line, words) => {
    expect(splitWords(line)).toEqual(words);
  });

  it("an open quote is a mistake that is named", () => {
    expect(() => splitWords('m "never closed')).toThrow("left open");
  });

  it("whatever is quoted comes back whole", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (words) => {
        const line = words.map((word) => `"${word.replace(/["\\]/g, "\\$&")}"`).join(" ");
        expect(splitWords(line)).toEqual(words);
      }),
    );
  });
});
