/**
 * The three ways to say what arguments an action takes, brought to one form: a JSON Schema for agents to read, and
 * a check for what they send (decisions H5).
 */
import type { ArgumentCheck } from "../engine/agent.js";
import { type ArgumentProblem, compileJsonSchema, type JsonSchemaObject } from "./json-schema.js";
import {
  type DescribedSchema,
  formatIssuePath,
  isDescribedSchema,
  isStandardSchema,
  type StandardSchema,
} from "./standard-schema.js";

/** A validator that cannot describe itself, with the description beside it. */
export interface SchemaPair<S extends StandardSchema = StandardSchema> {
  readonly schema: S;
  readonly jsonSchema: JsonSchemaObject;
}

export interface Parameters {
  readonly jsonSchema: JsonSchemaObject;
  check(args: unknown): ArgumentCheck | Promise<ArgumentCheck>;
}

/** An action, or what was meant to be one, is not usable as it is written. */
export class ActionDefinitionError extends Error {
  override readonly name = "ActionDefinitionError";
  readonly code = "bad_action";
}

const WHAT_TO_DO =
  "Give a schema that offers Standard JSON Schema (zod 4.2 or newer, arktype, valibot through @valibot/to-json-schema), " +
  "or { schema, jsonSchema } with the JSON Schema beside the validator, or a plain JSON Schema object.";

/** @throws ActionDefinitionError when `parameters` is none of the three forms; the message says what to write. */
export function readParameters(action: string, parameters: unknown): Parameters {
  if (isDescribedSchema(parameters)) {
    return { jsonSchema: describe(action, parameters), check: (args) => checkStandard(parameters, args) };
  }
  if (isStandardSchema(parameters)) {
    const vendor = parameters["~standard"].vendor;
    throw new ActionDefinitionError(
      `action '${action}': this ${vendor} schema can validate but cannot describe itself as JSON Schema. ${WHAT_TO_DO}`,
    );
  }
  if (!isPlainObject(parameters)) {
    throw new ActionDefinitionError(`action '${action}': 'parameters' is not a schema. ${WHAT_TO_DO}`);
  }
  if (isStandardSchema(parameters.schema)) {
    const { schema, jsonSchema } = parameters;
    if (!isPlainObject(jsonSchema)) {
      throw new ActionDefinitionError(
        `action '${action}': 'parameters.jsonSchema' is missing beside 'parameters.schema'. ${WHAT_TO_DO}`,
      );
    }
    return {
      jsonSchema: mustDescribeAnObject(action, jsonSchema),
      check: (args) => checkStandard(schema, args),
    };
  }
  return fromJsonSchema(action, parameters);
}

function fromJsonSchema(action: string, jsonSchema: JsonSchemaObject): Parameters {
  mustDescribeAnObject(action, jsonSchema);
  let problemsOf: ReturnType<typeof compileJsonSchema>;
  try {
    problemsOf = compileJsonSchema(jsonSchema);
  } catch (error) {
    throw new ActionDefinitionError(
      `action '${action}': 'parameters' is not a valid JSON Schema: ${messageOf(error)}. ${WHAT_TO_DO}`,
      { cause: error },
    );
  }
  return {
    jsonSchema,
    check: (args) => {
      const problems = problemsOf(args);
      return problems.length === 0
        ? { ok: true, value: args }
        : { ok: false, message: describeProblems(problems) };
    },
  };
}

function describe(action: string, schema: DescribedSchema): JsonSchemaObject {
  let described: Record<string, unknown>;
  try {
    described = schema["~standard"].jsonSchema.input({ target: "draft-2020-12" });
  } catch (error) {
    throw new ActionDefinitionError(
      `action '${action}': the schema has a part that JSON Schema cannot express (${messageOf(error)}). ` +
        "Use simpler types for the arguments, or give { schema, jsonSchema } with a JSON Schema of your own.",
      { cause: error },
    );
  }
  // The dialect is the same for all; repeated in every tool it only costs tokens.
  const { $schema: _dialect, ...jsonSchema } = described;
  return mustDescribeAnObject(action, jsonSchema);
}

function mustDescribeAnObject(action: string, jsonSchema: JsonSchemaObject): JsonSchemaObject {
  if (jsonSchema.type === undefined || jsonSchema.type === "object") return jsonSchema;
  throw new ActionDefinitionError(
    `action '${action}': arguments are an object of named values, but the schema describes ` +
      `${JSON.stringify(jsonSchema.type)}. Wrap it, for instance { type: "object", properties: { value: … } }.`,
  );
}

async function checkStandard(schema: StandardSchema, args: unknown): Promise<ArgumentCheck> {
  const result = await schema["~standard"].validate(args);
  if (result.issues === undefined) return { ok: true, value: result.value };
  return {
    ok: false,
    message: describeProblems(
      result.issues.map((issue) => ({ path: formatIssuePath(issue.path), message: issue.message })),
    ),
  };
}

function describeProblems(problems: readonly ArgumentProblem[]): string {
  const lines = problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  return [...new Set(lines)].join("; ");
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
