import { describe, expect, it } from "vitest";
import { copyJson } from "./json.js";

describe("a copy", () => {
  it("is what would be read from the journal later", () => {
    const given = {
      zero: -0,
      date: new Date(0),
      nothing: undefined,
      vanishes: { toJSON: () => undefined },
      infinite: Number.POSITIVE_INFINITY,
      list: [undefined, { toJSON: () => undefined }],
      sparse: new Array(2),
      map: new Map([[1, 2]]),
      proto: JSON.parse('{"__proto__": {"admin": true}}'),
    };
    const copy = copyJson(given);
    expect(copy).toStrictEqual(JSON.parse(JSON.stringify(given)));
    expect(Object.is(copy.zero, 0)).toBe(true);
    expect(Object.getPrototypeOf(copy.proto)).toBe(Object.prototype);
  });

  it("of what has no end, or no form in JSON, is refused", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const itself = { toJSON: (): object => ({ ...itself }) };
    for (const bad of [circle, itself, 1n, new Array(2 ** 31), () => 1, [Symbol("x")]]) {
      expect(() => copyJson(bad)).toThrow(expect.objectContaining({ code: "not_storable" }));
    }
  });
});
