/** Checks arguments against a plain JSON Schema. Agents see the schema unchanged. */

import type { ErrorObject, Options, ValidateFunction } from "ajv";
import { Ajv } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";

export type JsonSchemaObject = Readonly<Record<string, unknown>>;

/** One problem of the arguments. `path` is empty for the argument object itself. */
export interface ArgumentProblem {
  readonly path: string;
  readonly message: string;
}

export type SchemaCheck = (value: unknown) => readonly ArgumentProblem[];

const DIALECTS = ["draft-07", "2019-09", "2020-12"] as const;
export type Dialect = (typeof DIALECTS)[number];

/** Problems of one value that are reported. */
const MAX_PROBLEMS = 20;

/** Compiles a schema of the operator. @throws Error with ajv's message when the schema is invalid. */
export function compileJsonSchema(schema: JsonSchemaObject): SchemaCheck {
  return own.compile(schema, dialectOf(schema) ?? "2020-12");
}

/** Undefined for a dialect that is not supported. */
export function dialectOf({ $schema }: JsonSchemaObject): Dialect | undefined {
  if (typeof $schema !== "string") return "2020-12";
  return /draft-0[67]/.test($schema) ? "draft-07" : DIALECTS.find((dialect) => $schema.includes(dialect));
}

/** `strict: false`: unknown keywords and formats in users' schemas are hints for models, not mistakes. */
const OPTIONS = { strict: false, allErrors: true, allowUnionTypes: true } as const;

/** Compiles schemas with one validator per dialect: a validator costs more than most schemas. */
export class SchemaCompiler {
  readonly #options: Options;
  readonly #prepare: (ajv: Ajv) => void;
  readonly #shared = new Map<Dialect, Ajv>();

  constructor(options: Options, prepare: (ajv: Ajv) => void) {
    this.#options = { ...OPTIONS, ...options };
    this.#prepare = prepare;
  }

  /** @throws Error with ajv's message when the schema is invalid. */
  compile(schema: JsonSchemaObject, dialect: Dialect): SchemaCheck {
    const validate = this.#compile(schema, dialect);
    return (value) => {
      if (validate(value)) return [];
      const problems = (validate.errors ?? []).slice(0, MAX_PROBLEMS).map(toProblem);
      validate.errors = null;
      return problems;
    };
  }

  #compile(schema: JsonSchemaObject, dialect: Dialect): ValidateFunction {
    // A validator remembers names, and schemas with the same names would conflict.
    if (namesParts(schema)) return this.#create(dialect).compile(schema);
    const ajv = this.#shared.get(dialect) ?? this.#create(dialect);
    this.#shared.set(dialect, ajv);
    try {
      return ajv.compile(schema);
    } finally {
      // Otherwise it would keep every schema in memory.
      ajv.removeSchema(schema);
    }
  }

  #create(dialect: Dialect): Ajv {
    const ajv = create(dialect, this.#options);
    this.#prepare(ajv);
    return ajv;
  }
}

const own = new SchemaCompiler({}, (ajv) => ajvFormats.default(ajv));

function create(dialect: Dialect, options: Options): Ajv {
  switch (dialect) {
    case "draft-07":
      return new Ajv(options);
    case "2019-09":
      return new Ajv2019(options);
    case "2020-12":
      return new Ajv2020(options);
  }
}

/** Whether a schema has parts that others can refer to by name. */
export function namesParts(schema: JsonSchemaObject): boolean {
  return /"\$(?:id|anchor|dynamicAnchor|recursiveAnchor)"/.test(JSON.stringify(schema));
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
      return { path: joinPath(path, String(extra)), message: "unknown argument" };
    }
    case "enum":
      return { path, message: `must be one of ${JSON.stringify(error.params.allowedValues)}` };
    case "const":
      return { path, message: `must be ${JSON.stringify(error.params.allowedValue)}` };
    default:
      return { path, message: error.message ?? `does not match "${error.keyword}"` };
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
