/** The routes as an OpenAPI 3.1 document. */
import { z } from "zod";
import { describeError, isRecord, type PublicErrorCode } from "../base/index.js";
import { type DescribedRoute, ErrorBody, type ResponseDescription, takesBody } from "../extension/index.js";
import { PROTOCOL_VERSION } from "../mail/index.js";
import { type JsonSchema, jsonSchemaOf } from "./validation.js";

export interface OpenApiOptions {
  /** Mailroom's version; `info.version` is the protocol's (decision D9). */
  readonly version: string;
  readonly url?: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

export interface MediaType {
  readonly schema?: JsonSchema;
}

export interface OpenApiResponse {
  readonly description: string;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly externalDocs?: { readonly description: string; readonly url: string };
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly "x-roles"?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
}

export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: Readonly<Record<string, unknown>> & { readonly title: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<Record<string, unknown>>;
  };
}

const TAGS = [
  { name: "messages", description: "Send messages to the swarm." },
  { name: "tasks", description: "Read and control tasks." },
  { name: "swarms", description: "This swarm and other swarms." },
  { name: "server", description: "Information about the server." },
  { name: "administration", description: "Administration." },
  { name: "agents", description: "Protocols for other agents and tools." },
  { name: "mesh", description: "Administration of the mesh." },
] as const;

export function openApiDocument(routes: readonly DescribedRoute[], options: OpenApiOptions): OpenApiDocument {
  const components = new Components();
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of routes) {
    const path = paths[route.path] ?? {};
    path[route.method.toLowerCase()] = operationOf(route, components);
    paths[route.path] = path;
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Mailroom",
      version: PROTOCOL_VERSION,
      description: "A MAIL (Multi-Agent Interface Layer) server. Disabled features are not listed.",
      "x-mailroom-version": options.version,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: options.url ?? "/" }],
    tags: TAGS.filter(({ name }) => routes.some(({ tag }) => tag === name)),
    paths,
    components: {
      schemas: components.all(),
      securitySchemes: { bearer: { type: "http", scheme: "bearer" }, ...proofsOf(routes) },
    },
  };
}

function proofsOf(routes: readonly DescribedRoute[]): Record<string, unknown> {
  const proofs = routes.map(({ proof }) => proof).filter((proof) => proof !== undefined);
  return Object.fromEntries(
    proofs.map(({ scheme, header, description }) => [
      scheme,
      { type: "apiKey", in: "header", name: header, description },
    ]),
  );
}

function operationOf(route: DescribedRoute, components: Components): Operation {
  const parameters = parametersOf(route);
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    ...(route.protocol !== undefined && {
      externalDocs: { description: route.protocol.name, url: route.protocol.url },
    }),
    security: securityOf(route),
    ...(route.access.kind === "roles" && { "x-roles": route.access.roles }),
    ...(parameters.length > 0 && { parameters }),
    ...(takesBody(route) && {
      requestBody: {
        required: route.bodyOptional !== true,
        content: { "application/json": { schema: bodyOf(route, components) } },
      },
    }),
    responses: responsesOf(route, components),
  };
}

/** The listener drops nulls before validation; other body readers do not. */
function bodyOf({ body, bodyReader = "listener" }: DescribedRoute, components: Components): JsonSchema {
  return bodyReader === "listener" ? components.request(body) : components.input(body);
}

function securityOf({ access, proof }: DescribedRoute): Operation["security"] {
  const presented = proof && { [proof.scheme]: [] };
  switch (access.kind) {
    case "public":
      return presented === undefined ? [] : [presented];
    case "optional":
      return [{ ...presented }, { bearer: [], ...presented }];
    case "roles":
      return [{ bearer: [], ...presented }];
    default:
      return access satisfies never;
  }
}

function parametersOf(route: DescribedRoute): Parameter[] {
  return [
    ...fieldsOf(route.params, "path"),
    ...fieldsOf(route.query, "query"),
    ...(route.headers === undefined ? [] : fieldsOf(route.headers, "header")),
    ...(route.idempotent === true ? [IDEMPOTENCY_KEY] : []),
  ];
}

const IDEMPOTENCY_KEY: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "Repeating a request with the same key has no second effect and returns the same response, for 24 hours.",
  schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[\\x21-\\x7e]+$" },
};

function fieldsOf(schema: z.ZodType, where: Parameter["in"]): Parameter[] {
  const { properties, required } = jsonSchemaOf(schema);
  if (!isRecord(properties)) return [];
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = isRecord(property) ? property : {};
    return {
      name,
      in: where,
      required: where === "path" || needed.includes(name),
      ...(typeof description === "string" && { description }),
      schema: rest,
    };
  });
}

function responsesOf(route: DescribedRoute, components: Components): Record<string, OpenApiResponse> {
  const responses: Record<string, OpenApiResponse> = {};
  for (const [status, answer] of Object.entries(route.answers)) {
    responses[status] = responseOf(answer, components);
  }
  const byStatus = new Map<number, PublicErrorCode[]>();
  for (const code of errorsOf(route)) {
    const { status } = describeError(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const schema = components.answer(ErrorBody);
  for (const [status, codes] of [...byStatus].sort(([a], [b]) => a - b)) {
    const refusal = {
      description: codes.map((code) => `\`${code}\`: ${describeError(code).meaning}`).join("\n\n"),
      content: { "application/json": { schema } },
    };
    responses[String(status)] = either(responses[String(status)], refusal);
  }
  return responses;
}

/** A route with its own handler uses the same statuses for its own responses: describe both. */
function either(own: OpenApiResponse | undefined, refusal: OpenApiResponse): OpenApiResponse {
  if (own === undefined) return refusal;
  const forms = [own, refusal].flatMap(({ content }) => content?.["application/json"]?.schema ?? []);
  return {
    description: `${own.description}\n\n${refusal.description}`,
    content: { ...own.content, "application/json": { schema: { anyOf: forms } } },
  };
}

function responseOf(
  { description, schema, contentType }: ResponseDescription,
  components: Components,
): OpenApiResponse {
  const json = schema === undefined ? {} : { "application/json": { schema: components.answer(schema) } };
  const other = contentType === undefined ? {} : { [contentType]: {} };
  const content = { ...other, ...json };
  return { description, ...(Object.keys(content).length > 0 && { content }) };
}

/** The errors of every route of this kind, and of this route. */
function errorsOf(route: DescribedRoute): Set<PublicErrorCode> {
  const { bodyReader = "listener" } = route;
  const codes = new Set<PublicErrorCode>(["bad_request", ...(route.errors ?? [])]);
  if (route.access.kind === "roles") {
    codes.add("unauthenticated").add(route.access.wrongRole).add("too_many_failures").add("auth_unavailable");
  }
  if (takesBody(route) && bodyReader !== "bytes") codes.add("bad_json");
  codes.add("too_large").add("unsupported_media_type").add("internal_error");
  if (route.idempotent === true) {
    codes
      .add("idempotency_key_reused")
      .add("store_busy")
      .add("store_failed")
      .add("closed")
      .add("write_conflict");
  }
  return codes;
}

/** Named schemas are listed once under `components` and referenced. */
class Components {
  readonly #schemas = new Map<string, JsonSchema>();
  readonly #answers = new Map<z.ZodType, JsonSchema>();

  answer(schema: z.ZodType): JsonSchema {
    const known = this.#answers.get(schema);
    if (known !== undefined) return known;
    const made = this.#take(
      z.toJSONSchema(schema, { target: "draft-2020-12", io: "output" }),
      (part) => part,
    );
    this.#answers.set(schema, made);
    return made;
  }

  /** Optional fields may also be null, because the reference's client sends null for unset fields. */
  request(schema: z.ZodType): JsonSchema {
    return this.#take(jsonSchemaOf(schema), nullable);
  }

  input(schema: z.ZodType): JsonSchema {
    return this.#take(jsonSchemaOf(schema), (part) => part);
  }

  all(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #take(document: object, adapt: (schema: JsonSchema) => JsonSchema): JsonSchema {
    const { $schema: _, $defs, ...root } = toRecord(referring(document));
    for (const [name, definition] of Object.entries(isRecord($defs) ? $defs : {})) {
      this.#schemas.set(name, adapt(toRecord(definition)));
    }
    return adapt(root);
  }
}

function toRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

/** Turns references within a schema into references within the document. */
function referring(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referring);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) =>
      key === "$ref" && typeof part === "string"
        ? [key, part.replace("#/$defs/", "#/components/schemas/")]
        : [key, referring(part)],
    ),
  );
}

function nullable(schema: JsonSchema): JsonSchema {
  if (!isRecord(schema.properties)) return schema;
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = Object.entries(schema.properties).map(([name, property]) => [
    name,
    required.includes(name) ? property : orNull(property),
  ]);
  return { ...schema, properties: Object.fromEntries(properties) };
}

function orNull(property: unknown): unknown {
  if (!isRecord(property) || typeof property.type !== "string") return property;
  return {
    ...property,
    type: [property.type, "null"],
    ...(Array.isArray(property.enum) && { enum: [...property.enum, null] }),
  };
}
