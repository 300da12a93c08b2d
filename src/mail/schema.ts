/**
 * The wire types as JSON Schema (draft 2020-12), generated from the zod schemas. Published, and used for validation.
 */
import { z } from "zod";
import { isRecord } from "../base/index.js";
import * as wire from "./message.js";

/** A JSON Schema as data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface SchemaOptions {
  /** Requires `format: uuid` for `task_id`, as for every other id. */
  readonly strictIds?: boolean;
}

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** `MAIL-core.schema.json`: the envelope at the root, every type under `$defs`. */
export function mailCoreSchema(options: SchemaOptions = {}): JsonSchema {
  const types = wireTypes(options);
  const defs = definitions({ ...payloadTypes(types), MAILMessage: types.MAILMessage });
  defs.MAILMessage = bindByMessageType(defs.MAILMessage, "message");
  return {
    $schema: DIALECT,
    $id: schemaId("core", options),
    title: "MAIL core types",
    $ref: "#/$defs/MAILMessage",
    $defs: defs,
  };
}

/** `MAIL-interswarm.schema.json`: the wrapper at the root. Self-contained, so it repeats the payload types. */
export function mailInterswarmSchema(options: SchemaOptions = {}): JsonSchema {
  const types = wireTypes(options);
  const defs = definitions({ ...payloadTypes(types), MAILInterswarmMessage: types.MAILInterswarmMessage });
  defs.MAILInterswarmMessage = bindByMessageType(defs.MAILInterswarmMessage, "payload");
  return {
    $schema: DIALECT,
    $id: schemaId("interswarm", options),
    title: "MAIL interswarm wrapper",
    $ref: "#/$defs/MAILInterswarmMessage",
    $defs: defs,
  };
}

function schemaId(name: string, { strictIds = false }: SchemaOptions): string {
  return `urn:mailroom:mail:${wire.PROTOCOL_VERSION}:${name}${strictIds ? ":strict-ids" : ""}`;
}

type WireTypes = typeof wire.strictMessages;

function wireTypes({ strictIds = false }: SchemaOptions): WireTypes {
  return strictIds ? wire.strictMessages : wire;
}

function payloadTypes({ MAILRequest, MAILResponse, MAILBroadcast, MAILInterrupt }: WireTypes) {
  return { MAILAddress: wire.MAILAddress, MAILRequest, MAILResponse, MAILBroadcast, MAILInterrupt };
}

/** One definition for each named type, with references between them. */
function definitions(types: Readonly<Record<string, z.ZodType>>): Record<string, unknown> {
  const registry = z.registry<{ id: string }>();
  for (const [id, type] of Object.entries(types)) registry.add(type, { id });
  const { schemas } = z.toJSONSchema(registry, {
    target: "draft-2020-12",
    uri: (id) => `#/$defs/${id}`,
    override: ({ zodSchema, jsonSchema }) => tidy(zodSchema, jsonSchema),
  });
  const defs: Record<string, unknown> = {};
  for (const [id, { $schema, $id, ...schema }] of Object.entries(schemas)) defs[id] = schema;
  return defs;
}

/** Removes zod's own additions and adds descriptions. */
function tidy(zodSchema: z.core.$ZodType, jsonSchema: z.core.JSONSchema.BaseSchema): void {
  // `readonly` concerns only TypeScript, and a format is clearer than zod's regular expression.
  delete jsonSchema.readOnly;
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  // A plain object already allows any keys and values.
  delete jsonSchema.propertyNames;
  if (isRecord(jsonSchema.additionalProperties)) delete jsonSchema.additionalProperties;
  const description = z.globalRegistry.get(zodSchema)?.description;
  if (description !== undefined) jsonSchema.description = description;
}

/**
 * MAIL: Conditional binding. Rewrites zod's `oneOf` over complete envelopes as one envelope with an if/then for each
 * message type. It accepts the same messages, but errors concern only the intended type.
 */
function bindByMessageType(union: unknown, field: "message" | "payload"): JsonSchema {
  if (!isRecord(union) || !Array.isArray(union.oneOf)) throw new TypeError("expected a union of envelopes");
  const branches = union.oneOf.map((branch: unknown) => readBranch(branch, field));
  const [first] = branches;
  if (first === undefined) throw new TypeError("expected a union with at least one envelope");
  return {
    description: union.description,
    type: "object",
    properties: {
      ...first.envelope,
      [field]: { type: "object" },
      msg_type: { type: "string", enum: branches.map(({ type }) => type) },
    },
    required: first.required,
    additionalProperties: false,
    allOf: branches.map(({ type, payload }) => ({
      if: { properties: { msg_type: { const: type } }, required: ["msg_type"] },
      // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
      then: { properties: { [field]: payload } },
    })),
  };
}

function readBranch(branch: unknown, field: string) {
  if (!isRecord(branch) || !isRecord(branch.properties)) throw new TypeError("expected an envelope");
  const { msg_type: type, [field]: payload, ...envelope } = branch.properties;
  if (!isRecord(type)) throw new TypeError("expected an envelope with a message type");
  return { type: type.const, payload, envelope, required: branch.required };
}
