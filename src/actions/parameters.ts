/**
 * Normalizes the three declarations of an action's arguments to a JSON Schema for agents and a check of their arguments
 * (decision H5).
 */
import { MailroomError, messageOf } from "../base/index.js";
import type { ArgumentCheck } from "../engine/index.js";
import {
  type ArgumentProblem,
  compileJsonSchema,
  type JsonSchemaObject,
  type SchemaCheck,
} from "./json-schema.js";
import {
  type DescribedSchema,
  formatIssuePath,
  isDescribedSchema,
  isStandardSchema,
  type StandardSchema,
} from "./standard-schema.js";

/** A validator without JSON Schema support, and a JSON Schema for it. */
export interface SchemaPair<S extends StandardSchema = StandardSchema> {
  readonly schema: S;
  readonly jsonSchema: JsonSchemaObject;
}

export interface Parameters {
  readonly jsonSchema: JsonSchemaObject;
  check(args: unknown): ArgumentCheck | Promise<ArgumentCheck>;
}

/** The error of an invalid action definition. */
export function badAction(message: string, options?: { cause?: unknown }): MailroomError {
  return new MailroomError("bad_action", message, options);
}

const WHAT_TO_DO =
  "Use a schema that offers Standard JSON Schema (zod 4.2 or newer, arktype, valibot through @valibot/to-json-schema), " +
  "or { schema, jsonSchema } with a validator and its JSON Schema, or a plain JSON Schema object.";

/** @throws MailroomError `bad_action` when `parameters` has none of the three forms; the message lists them. */
export function readParameters(action: string, parameters: unknown): Parameters {
  if (isDescribedSchema(parameters)) {
    return { jsonSchema: describe(action, parameters), check: (args) => checkStandard(parameters, args) };
  }
  if (isStandardSchema(parameters)) {
    const vendor = parameters["~standard"].vendor;
    throw badAction(
      `action '${action}': this ${vendor} schema can validate but cannot describe itself as JSON Schema. ${WHAT_TO_DO}`,
    );
  }
  if (!isPlainObject(parameters)) {
    throw badAction(`action '${action}': 'parameters' is not a schema. ${WHAT_TO_DO}`);
  }
  if (isStandardSchema(parameters.schema)) {
    const { schema, jsonSchema } = parameters;
    if (!isPlainObject(jsonSchema)) {
      throw badAction(
        `action '${action}': 'parameters.schema' requires 'parameters.jsonSchema'. ${WHAT_TO_DO}`,
      );
    }
    return {
      jsonSchema: mustDescribeAnObject(action, jsonSchema),
      check: (args) => checkStandard(schema, args),
    };
  }
  return fromJsonSchema(action, parameters, compileJsonSchema);
}

/** @param compile how the schema is compiled, by whether it comes from the operator. */
export function fromJsonSchema(
  action: string,
  jsonSchema: JsonSchemaObject,
  compile: (schema: JsonSchemaObject) => SchemaCheck,
): Parameters {
  mustDescribeAnObject(action, jsonSchema);
  let problemsOf: SchemaCheck;
  try {
    problemsOf = compile(jsonSchema);
  } catch (error) {
    throw badAction(
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
    throw badAction(
      `action '${action}': the schema has a part that JSON Schema cannot express (${messageOf(error)}). ` +
        "Use simpler types for the arguments, or { schema, jsonSchema } with your own JSON Schema.",
      { cause: error },
    );
  }
  // The dialect is always the same, so repeating it in every tool wastes tokens.
  const { $schema: _dialect, ...jsonSchema } = described;
  return mustDescribeAnObject(action, jsonSchema);
}

function mustDescribeAnObject(action: string, jsonSchema: JsonSchemaObject): JsonSchemaObject {
  if (jsonSchema.type === undefined || jsonSchema.type === "object") return jsonSchema;
  throw badAction(
    `action '${action}': the arguments must be an object, but the schema describes ` +
      `${JSON.stringify(jsonSchema.type)}. Wrap it, for example { type: "object", properties: { value: … } }.`,
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
