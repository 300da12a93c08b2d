/**
 * Validates input once. The zod schemas are the only source: the OpenAPI document contains their JSON Schema, and ajv
 * compiles it for validation.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { z } from "zod";
import { isRecord, MailroomError, unknownField } from "../base/index.js";
import { EXPECTS, type InputChecker, type InputPart } from "../extension/index.js";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** @throws MailroomError `bad_request` naming the field */
export type Check<T> = (value: unknown) => T;

/** One per server. Compiles a schema on first use, because most servers use few routes. */
export class Checker implements InputChecker {
  #body: Ajv2020 | undefined;
  /** Queries and paths are text, so numbers are coerced. */
  #text: Ajv2020 | undefined;

  /** Many routes share schemas, and ajv caches compiled schemas by object. */
  readonly #jsonSchemas = new Map<z.ZodType, JsonSchema>();

  for<S extends z.ZodType>(schema: S, part: InputPart): Check<z.output<S>> {
    let compiled: ValidateFunction<z.output<S>> | undefined;
    return (value) => {
      compiled ??= this.#compile(schema, part);
      const validate = compiled;
      const given = part === "body" ? withoutNulls(value) : value;
      if (validate(given)) return given;
      // The last error: for a union it is the union's own, not that of its first member.
      throw badRequest(part, validate.errors?.at(-1));
    };
  }

  #compile<S extends z.ZodType>(schema: S, part: InputPart): ValidateFunction<z.output<S>> {
    const jsonSchema = this.#jsonSchemas.get(schema) ?? jsonSchemaOf(schema);
    this.#jsonSchemas.set(schema, jsonSchema);
    if (part === "body") {
      this.#body ??= createAjv(false);
      return this.#body.compile<z.output<S>>(jsonSchema);
    }
    this.#text ??= createAjv(true);
    return this.#text.compile<z.output<S>>(jsonSchema);
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
    // The schemas come from zod. To check them, ajv would compile its meta-schema at every start, which takes longer
    // than all others.
    validateSchema: false,
    allowUnionTypes: true,
  });
  ajv.addKeyword(EXPECTS);
  formats.default(ajv);
  return ajv;
}

/** The reference's client sends every field, unset ones as null (REF-7). */
function withoutNulls(value: unknown): unknown {
  if (!isRecord(value) || !Object.values(value).includes(null)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== null));
}

function badRequest(part: InputPart, error: ErrorObject | undefined): MailroomError {
  if (error === undefined) return new MailroomError("bad_request", `the ${part} is invalid`);
  if (error.keyword === "additionalProperties") return unknown(error);
  const missing = error.keyword === "required" ? String(error.params.missingProperty) : undefined;
  const path = fieldOf(error.instancePath, missing);
  if (path === "") return new MailroomError("bad_request", `the ${part} ${sentence(error)}`);
  const detail = missing !== undefined ? `${path} is required` : `${path} ${sentence(error)}`;
  return new MailroomError("bad_request", detail, { details: { field: path } });
}

function unknown({ instancePath, params, parentSchema }: ErrorObject): MailroomError {
  const name = String(params.additionalProperty);
  const field = fieldOf(instancePath, name);
  const properties: unknown = parentSchema?.properties;
  const detail = unknownField(name, isRecord(properties) ? Object.keys(properties) : [], field);
  return new MailroomError("bad_request", detail, { details: { field } });
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
      return error.message ?? "is invalid";
  }
}

function article(type: string): string {
  const name = type === "array" ? "list" : type;
  return /^[aeiou]/.test(name) ? `an ${name}` : `a ${name}`;
}

function listOf(values: unknown): string {
  return Array.isArray(values) ? values.join(", ") : "";
}
