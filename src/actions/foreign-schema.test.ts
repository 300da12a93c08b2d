import { describe, expect, it } from "vitest";
import { compileForeignSchema } from "./foreign-schema.js";

const text = (more: object) => ({ type: "object", properties: { q: { type: "string", ...more } } });
const LONG = `${"a".repeat(5_000)}!`;

describe("a schema from another program", () => {
  it("[AGENTS-T-4] is checked in linear time", () => {
    expect(compileForeignSchema(text({ pattern: "^(a+)+$" }))({ q: LONG })).toHaveLength(1);
    expect(compileForeignSchema(text({ pattern: "^(a+)+$" }))({ q: "aaa" })).toEqual([]);
    const keys = compileForeignSchema({
      type: "object",
      patternProperties: { "^(a|a)*$": { type: "number" } },
    });
    expect(keys({ [LONG]: "any" })).toEqual([]);
    expect(keys({ aaa: "no number" })).toHaveLength(1);
    const items = compileForeignSchema({ type: "object", properties: { q: { uniqueItems: true } } });
    const many = Array.from({ length: 30_000 }, (_, index) => ({ a: 1, b: index }));
    expect(items({ q: many })).toEqual([]);
    expect(items({ q: [...many.slice(0, 9), { b: 8, a: 1 }] })).toHaveLength(1);
  });

  it("[AGENTS-T-4] is not checked when the check would not be linear", () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => {
        const next = { $ref: `#/$defs/d${index + 1}` };
        return [`d${index}`, { allOf: [next, next] }];
      }),
    );
    const doubling = {
      $defs: { ...$defs, d60: { type: "string" } },
      properties: { q: { $ref: "#/$defs/d0" } },
    };
    expect(compileForeignSchema(doubling)({ q: 1 })).toEqual([]);
    const tree = {
      anyOf: [{ properties: { x: { $ref: "#" } }, required: ["y"] }, { properties: { x: { $ref: "#" } } }],
    };
    expect(compileForeignSchema(tree)({ x: { x: 1 } })).toEqual([]);
    expect(compileForeignSchema(text({ maxLength: 3 }))({ q: LONG.repeat(1_000) })).toEqual([]);
  });

  it.each([
    ["another dialect", { $schema: "http://json-schema.org/draft-04/schema#", ...text({ maxLength: 1 }) }, 1],
    ["another pattern language", text({ pattern: "(?i)^\\Ab+$" }), 1],
    ["a pattern with lookaheads", text({ pattern: "^(?!a)b" }), 0],
    ["an invalid pattern", text({ pattern: "(" }), 0],
    ["names of its own", { $id: "https://x.example/a", ...text({ maxLength: 1 }) }, 1],
  ])("[AGENTS-T-4] may have %s", (_name, schema, problems) => {
    expect(compileForeignSchema(schema)({ q: LONG })).toHaveLength(problems);
    expect(compileForeignSchema(schema)({ q: "b" })).toEqual([]);
  });

  it.each([
    ["refers to another schema", text({ $ref: "https://x.example/schema" })],
    ["has 70", text({ description: "d".repeat(70_000) })],
    ["type must be", text({ type: 7 })],
  ])("[AGENTS-T-4] cannot be used when it %s", (message, schema) => {
    expect(() => compileForeignSchema(schema)).toThrow(message);
  });
});
