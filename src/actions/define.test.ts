import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { actionContext } from "../testing/action-context.js";
import { defineAction } from "./define.js";
import type { StandardSchema } from "./standard-schema.js";

const context = actionContext();

const about = { name: "book", description: "Books a table." };

/** A validator that follows Standard Schema only, without JSON Schema. */
const onlyValidates: StandardSchema<{ seats: number }> = {
  "~standard": {
    version: 1,
    vendor: "homemade",
    validate: (value) =>
      typeof value === "object" && value !== null && "seats" in value && typeof value.seats === "number"
        ? { value: { seats: value.seats } }
        : { issues: [{ message: "must be a number", path: [{ key: "seats" }] }] },
  },
};

describe("defineAction with a schema that describes itself", () => {
  const action = defineAction({
    ...about,
    parameters: z.object({ city: z.string(), seats: z.coerce.number().int().default(2) }),
    run: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ city: string; seats: number }>();
      return `${args.seats} in ${args.city}`;
    },
  });

  it("offers the schema of the input, not of the output", () => {
    expect(action.parameters).toMatchObject({
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
    });
    expect(action.parameters).not.toHaveProperty("$schema");
  });

  it("passes the parsed arguments to run", async () => {
    const checked = await action.check({ city: "Kyoto", seats: "4" });
    expect(checked).toEqual({ ok: true, value: { city: "Kyoto", seats: 4 } });
    expect(checked.ok && action.run(checked.value, context)).toBe("4 in Kyoto");
  });

  it("lists every problem with its path", async () => {
    const nested = defineAction({
      ...about,
      parameters: z.object({ city: z.string(), stops: z.array(z.object({ name: z.string() })) }),
      run: () => "",
    });
    const checked = await nested.check({ city: 1, stops: [{ name: "a" }, {}] });
    expect(checked.ok).toBe(false);
    if (checked.ok) return;
    expect(checked.message).toMatch(/city: .*string/);
    expect(checked.message).toMatch(/stops\[1\]\.name: .*string/);
  });

  it("rejects a schema that JSON Schema cannot express", () => {
    expect(() => defineAction({ ...about, parameters: z.object({ when: z.date() }), run: () => "" })).toThrow(
      /JSON Schema cannot express/,
    );
  });
});

describe("defineAction with a validator and a separate JSON Schema", () => {
  it("offers the JSON Schema and checks with the validator", async () => {
    const jsonSchema = { type: "object", properties: { seats: { type: "number" } } };
    const action = defineAction({
      ...about,
      parameters: { schema: onlyValidates, jsonSchema },
      run: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ seats: number }>();
        return args.seats;
      },
    });
    expect(action.parameters).toBe(jsonSchema);
    expect(await action.check({})).toEqual({ ok: false, message: "seats: must be a number" });
  });

  it("rejects a validator alone and names the alternatives", () => {
    // @ts-expect-error the compiler also rejects it
    expect(() => defineAction({ ...about, parameters: onlyValidates, run: () => "" })).toThrow(
      /homemade schema .* cannot describe itself.*\{ schema, jsonSchema \}/,
    );
  });
});

describe("defineAction with a plain JSON Schema", () => {
  const parameters = {
    type: "object",
    properties: {
      to: { type: "string", format: "email" },
      size: { enum: ["s", "m"] },
      "x-hint": { type: "integer", minimum: 1 },
    },
    required: ["to"],
    additionalProperties: false,
  };
  const action = defineAction({
    ...about,
    parameters,
    run: (args) => {
      expectTypeOf(args).toEqualTypeOf<Readonly<Record<string, unknown>>>();
      return args;
    },
  });

  it("offers the schema unchanged", () => {
    expect(action.parameters).toBe(parameters);
  });

  it("names every wrong argument", async () => {
    const checked = await action.check({ size: "xl", color: "red", "x-hint": 0 });
    expect(checked.ok).toBe(false);
    if (checked.ok) return;
    expect(checked.message.split("; ").sort()).toEqual([
      "color: unknown argument",
      'size: must be one of ["s","m"]',
      "to: is required",
      "x-hint: must be >= 1",
    ]);
    expect(await action.check({ to: "not an address" })).toMatchObject({ ok: false });
    expect(await action.check({ to: "ann@example.org" })).toMatchObject({ ok: true });
  });

  it("supports older dialects", async () => {
    const older = defineAction({
      ...about,
      parameters: {
        $schema: "http://json-schema.org/draft-07/schema#",
        type: "object",
        properties: { pair: { type: "array", items: [{ type: "string" }, { type: "number" }] } },
      },
      run: () => "",
    });
    expect(await older.check({ pair: ["a", "b"] })).toMatchObject({ ok: false });
  });

  it.each([
    [
      "an invalid schema",
      { type: "object", properties: { a: { type: "strng" } } },
      /not a valid JSON Schema/,
    ],
    ["a schema of another type than an object", { type: "array" }, /must be an object/],
  ])("rejects %s", (_, wrong, message) => {
    expect(() => defineAction({ ...about, parameters: wrong, run: () => "" })).toThrow(message);
  });
});

describe("other properties of an action", () => {
  const parameters = { type: "object" };
  it.each([
    [{ name: "no spaces" }, /1 to 64 letters/],
    [{ description: " " }, /'description' is empty/],
    [{ timeLimit: 0 }, /milliseconds/],
  ])("refuses %j", (wrong, message) => {
    expect(() => defineAction({ ...about, parameters, run: () => "", ...wrong })).toThrow(message);
  });

  it("an action is not repeatable after a crash by default", () => {
    expect(defineAction({ ...about, parameters, run: () => "" }).idempotent).toBe(false);
    const patient = defineAction({ ...about, parameters, run: () => "", idempotent: true, timeLimit: 5 });
    expect(patient).toMatchObject({ idempotent: true, timeLimit: 5 });
  });
});
