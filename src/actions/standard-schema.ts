/**
 * The parts of Standard Schema and Standard JSON Schema (https://standardschema.dev) that actions use. Declared
 * structurally, so that any conforming library works and none is required.
 */

export interface StandardIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardTypes<Input, Output> {
  readonly input: Input;
  readonly output: Output;
}

/** A schema that can validate. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: StandardTypes<Input, Output> | undefined;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
  };
}

/** A schema that can validate and also describe itself as JSON Schema (zod 4.2+, arktype; valibot by its adapter). */
export interface DescribedSchema<Input = unknown, Output = Input> extends StandardSchema<Input, Output> {
  readonly "~standard": StandardSchema<Input, Output>["~standard"] & {
    readonly jsonSchema: {
      readonly input: (options: { readonly target: string }) => Record<string, unknown>;
    };
  };
}

/** The input type of a schema. */
export type InputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["input"];

/** The output type of a schema, with defaults and conversions applied. */
export type OutputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

function standardProperties(value: unknown): object | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  if (!("~standard" in value)) return undefined;
  const properties = value["~standard"];
  return typeof properties === "object" && properties !== null ? properties : undefined;
}

export function isStandardSchema(value: unknown): value is StandardSchema {
  const properties = standardProperties(value);
  return properties !== undefined && "validate" in properties && typeof properties.validate === "function";
}

export function isDescribedSchema(value: unknown): value is DescribedSchema {
  if (!isStandardSchema(value)) return false;
  const properties: object = value["~standard"];
  if (!("jsonSchema" in properties)) return false;
  const converter = properties.jsonSchema;
  return (
    typeof converter === "object" &&
    converter !== null &&
    "input" in converter &&
    typeof converter.input === "function"
  );
}

/** `city`, `stops[2].name`; the empty string for the value itself. */
export function formatIssuePath(path: StandardIssue["path"]): string {
  let text = "";
  for (const segment of path ?? []) {
    const key = typeof segment === "object" ? segment.key : segment;
    if (typeof key === "number") text += `[${key}]`;
    else text += text === "" ? String(key) : `.${String(key)}`;
  }
  return text;
}
