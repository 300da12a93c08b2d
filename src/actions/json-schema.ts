/** Checks arguments against a plain JSON Schema. The schema itself is passed on to agents unchanged. */

import type { ErrorObject, ValidateFunction } from "ajv";
import { Ajv } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";

export type JsonSchemaObject = Readonly<Record<string, unknown>>;

/** One thing that is wrong with the arguments. `path` is empty for the argument object itself. */
export interface ArgumentProblem {
  readonly path: string;
  readonly message: string;
}

/**
 * Compiles a schema. Each gets a validator of its own, so that two schemas with the same `$id` do not meet.
 * @throws Error with ajv's own words when the schema is not a valid one.
 */
export function compileJsonSchema(schema: JsonSchemaObject): (value: unknown) => readonly ArgumentProblem[] {
  const validate = compile(schema);
  return (value) => {
    if (validate(value)) return [];
    return (validate.errors ?? []).map(toProblem);
  };
}

function compile(schema: JsonSchemaObject): ValidateFunction {
  // `strict: false`: unknown keywords and formats in people's schemas are hints for models, not mistakes.
  const options = { strict: false, allErrors: true, allowUnionTypes: true } as const;
  const dialect = typeof schema.$schema === "string" ? schema.$schema : "";
  const ajv = /draft-0[67]/.test(dialect)
    ? new Ajv(options)
    : dialect.includes("2019-09")
      ? new Ajv2019(options)
      : new Ajv2020(options);
  ajvFormats.default(ajv);
  return ajv.compile(schema);
}

function toProblem(error: ErrorObject): ArgumentProblem {
  const path = pointerToPath(error.instancePath);
  switch (error.keyword) {
    case "required":
      return {
        path: joinPath(path, String(error.params.missingProperty)),
        message: "is required",
      };
    case "additionalProperties":
    case "unevaluatedProperties": {
      const extra: unknown = error.params.additionalProperty ?? error.params.unevaluatedProperty;
      return { path: joinPath(path, String(extra)), message: "is not a known argument" };
    }
    case "enum":
      return { path, message: `must be one of ${JSON.stringify(error.params.allowedValues)}` };
    case "const":
      return { path, message: `must be ${JSON.stringify(error.params.allowedValue)}` };
    default:
      return { path, message: error.message ?? `does not fit "${error.keyword}"` };
  }
}

/** `/stops/2/name` → `stops[2].name` */
function pointerToPath(pointer: string): string {
  if (pointer === "") return "";
  return pointer
    .slice(1)
    .split("/")
    .map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((path, segment) => (/^\d+$/.test(segment) ? `${path}[${segment}]` : joinPath(path, segment)), "");
}

function joinPath(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
