import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StringField } from "./string-field.js";

/** Cuts a text where the numbers say. */
function cut(text: string, places: readonly number[]): string[] {
  const sorted = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...sorted].map((from, at) => text.slice(from, sorted[at] ?? text.length));
}

function read(text: string, places: readonly number[] = [], name = "answer"): string {
  const field = new StringField(name);
  return cut(text, places)
    .map((piece) => field.add(piece))
    .join("");
}

/** A JSON string in which some characters are escaped needlessly. */
function escaped(text: string, every: number): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return `"${units
    .map((unit, at) => {
      const plain = JSON.stringify(String.fromCharCode(unit)).slice(1, -1);
      return at % every === 0 ? `\\u${unit.toString(16).padStart(4, "0")}` : plain;
    })
    .join("")}"`;
}

const anyText = fc.string({ unit: "binary", maxLength: 60 });
const places = fc.array(fc.nat(2_000), { maxLength: 40 });

describe("a string in the pieces of a JSON object", () => {
  it("is what JSON.parse reads, however the text is cut", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ maxLength: 12 }), fc.jsonValue({ maxDepth: 3 })),
        anyText,
        fc.dictionary(fc.string({ maxLength: 12 }), fc.jsonValue({ maxDepth: 3 })),
        fc.nat(2),
        places,
        (before, answer, after, spaces, cuts) => {
          const object = { ...before, ...after };
          delete object.answer;
          const entries = Object.entries(object);
          const whole = Object.fromEntries([
            ...entries.slice(0, Object.keys(before).length),
            ["answer", answer],
            ...entries.slice(Object.keys(before).length),
          ]);
          expect(read(JSON.stringify(whole, null, spaces), cuts)).toBe(answer);
        },
      ),
    );
  });

  it("is found through escapes in its name and value", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 4 }), places, (answer, every, cuts) => {
        const text = `{${escaped("other", every)}: "}\\"", ${escaped("answer", every)} :${escaped(answer, every)}}`;
        expect(JSON.parse(text).answer).toBe(answer);
        expect(read(text, cuts)).toBe(answer);
      }),
    );
  });

  it("never ends with half of a surrogate pair before its end", () => {
    const field = new StringField("answer");
    expect(
      [...'{"answer":"a😀\\ud83d\\ude00b"}'].flatMap((c) => c.split("")).map((unit) => field.add(unit)),
    ).toSatisfy(
      (pieces: string[]) =>
        pieces.join("") === "a😀😀b" && pieces.every((piece) => Buffer.from(piece).toString() === piece),
    );
  });

  it.each([
    ["of another kind", '{"answer": 5, "x": "y"}'],
    ["in a nested object", '{"x": {"answer": "no"}, "y": ["answer", "no"]}'],
    ["of a text that is not an object", '["answer", "no"]'],
    ["of JSON inside a string", '"{\\"answer\\": \\"no\\"}"'],
    ["of an empty text", ""],
  ])("is nothing if it is %s", (_, text) => {
    expect(read(text)).toBe("");
  });

  it("ends where the text is not JSON", () => {
    expect(read('{"answer": "abc\\x", "answer": "d"}')).toBe("abc");
    expect(read('{"answer": "abc\ndef"}')).toBe("abc");
    expect(read('{"answer": "\\u12g4"}')).toBe("");
  });

  it("is the first of two", () => {
    expect(read('{"answer": "one", "answer": "two"}')).toBe("one");
  });
});

it("a long answer in small pieces takes linear time and keeps nothing", () => {
  const piece = "word \\n ".repeat(10);
  const field = new StringField("answer");
  let length = field.add('{"answer": "').length;
  // A quadratic reader would copy some 10 GB here.
  for (let n = 0; n < 20_000; n++) length += field.add(piece).length;
  expect(length).toBe(20_000 * JSON.parse(`"${piece}"`).length);
});
