/**
 * What comes in, checked once. The zod schemas are the one source: their JSON Schema stands in the OpenAPI document
 * and is compiled by ajv for the checking itself.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { z } from "zod";
import { isRecord } from "../mail/record.js";
import { HttpError } from "./errors.js";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Says in words what a value must be, where the schema alone would not make a good sentence. */
export const EXPECTS = "x-expects";

/** @throws HttpError `bad_request` naming the field */
export type Check<T> = (value: unknown) => T;

export type Where = "body" | "query" | "path";

/** One per server: compiles a schema when a route is first used, because most are not used by most servers. */
export class Checker {
  readonly #body = createAjv(false);
  /** Queries and paths are text; a number there is the text of one. */
  readonly #text = createAjv(true);

  /** Many routes share their schemas. ajv knows what it compiled by the object it was given. */
  readonly #jsonSchemas = new Map<z.ZodType, JsonSchema>();

  for<S extends z.ZodType>(schema: S, where: Where): Check<z.output<S>> {
    const ajv = where === "body" ? this.#body : this.#text;
    const jsonSchema = this.#jsonSchemas.get(schema) ?? jsonSchemaOf(schema);
    this.#jsonSchemas.set(schema, jsonSchema);
    let compiled: ValidateFunction<z.output<S>> | undefined;
    return (value) => {
      compiled ??= ajv.compile<z.output<S>>(jsonSchema);
      const validate = compiled;
      const given = where === "body" ? withoutNulls(value) : value;
      if (validate(given)) return given;
      // The last one: of a choice between several forms, it is the choice itself and not the first form.
      throw badRequest(where, validate.errors?.at(-1));
    };
  }
}

export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { target: "draft-2020-12", io: "input" });
  return rest;
}

function createAjv(coerceTypes: boolean): Ajv2020 {
  const ajv = new Ajv2020({
    coerceTypes,
    allErrors: false,
    verbose: true,
    strict: true,
    // Ours come from zod. To check them, ajv would compile the schema of schemas at every start, which takes longer than all of ours.
    validateSchema: false,
    allowUnionTypes: true,
  });
  ajv.addKeyword(EXPECTS);
  formats.default(ajv);
  return ajv;
}

/** MAIL: the reference's client sends every field, unset ones as null (mail.md 10). */
function withoutNulls(value: unknown): unknown {
  if (!isRecord(value) || !Object.values(value).includes(null)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== null));
}

function badRequest(where: Where, error: ErrorObject | undefined): HttpError {
  if (error === undefined) return new HttpError("bad_request", `the ${where} is not valid`);
  const missing = error.keyword === "required" ? String(error.params.missingProperty) : undefined;
  const path = fieldOf(error.instancePath, missing);
  if (path === "") return new HttpError("bad_request", `the ${where} ${sentence(error)}`);
  const detail = missing !== undefined ? `${path} is required` : `${path} ${sentence(error)}`;
  return new HttpError("bad_request", detail, { details: { field: path } });
}

/** `/kwargs/max_steps` as `kwargs.max_steps`. */
function fieldOf(pointer: string, missing: string | undefined): string {
  const parts = pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  return [...parts, ...(missing === undefined ? [] : [missing])].join(".");
}

function sentence(error: ErrorObject): string {
  const expected: unknown = error.parentSchema?.[EXPECTS];
  if (typeof expected === "string") return `must be ${expected}`;
  const { params } = error;
  switch (error.keyword) {
    case "type":
      return `must be ${article(String(params.type))}`;
    case "enum":
      return `must be one of: ${listOf(params.allowedValues)}`;
    case "minLength":
      return params.limit === 1
        ? "must not be empty"
        : `must have at least ${String(params.limit)} characters`;
    case "maxLength":
      return `must have at most ${String(params.limit)} characters`;
    case "pattern":
      return "has characters that are not allowed there";
    case "format":
      return `must be a valid ${String(params.format)}`;
    default:
      return error.message ?? "is not valid";
  }
}

function article(type: string): string {
  const name = type === "array" ? "list" : type;
  return /^[aeiou]/.test(name) ? `an ${name}` : `a ${name}`;
}

function listOf(values: unknown): string {
  return Array.isArray(values) ? values.join(", ") : "";
}
