/** Lints an OpenAPI document. Each function lists problems. */
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { OpenApiDocument, Operation } from "../../src/http/index.js";
import { isObject } from "./harness.js";

export interface Listed {
  /** `get /tasks/{task_id}` */
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function operationsOf(document: OpenApiDocument): Listed[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      at: `${method} ${path}`,
      method,
      path,
      operation,
    })),
  );
}

/** Incomplete descriptions. */
export function operationProblems(document: OpenApiDocument): string[] {
  const tags = document.tags.map(({ name }) => name);
  const problems = operationsOf(document).flatMap(({ at, operation }) =>
    problemsOf(operation, tags).map((problem) => `${at}: ${problem}`),
  );
  const ids = operationsOf(document).map(({ operation }) => operation.operationId);
  return [
    ...problems,
    ...ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `${id} occurs twice`),
    ...ids.filter((id) => !/^[a-z][A-Za-z0-9]+$/.test(id)).map((id) => `${id} is not an identifier`),
  ];
}

function problemsOf(operation: Operation, tags: readonly string[]): string[] {
  const problems: string[] = [];
  const statuses = Object.keys(operation.responses);
  if (operation.summary === "" || operation.summary.endsWith(".")) problems.push("summary");
  if (!operation.tags.every((tag) => tags.includes(tag))) problems.push("tag");
  if (!statuses.some((status) => status.startsWith("2"))) problems.push("no success");
  if (operation["x-roles"] !== undefined && !statuses.includes("401")) problems.push("no 401");
  if ((operation["x-roles"] !== undefined) !== operation.security.some((scheme) => "bearer" in scheme)) {
    if (operation.operationId !== "listSwarms") problems.push("security");
  }
  for (const [status, { description, content }] of Object.entries(operation.responses)) {
    if (!/^[1-5]\d\d$/.test(status)) problems.push(`status ${status}`);
    if (description === "") problems.push(`no description of ${status}`);
    const isEmpty = content === undefined && /^20[24]$/.test(status);
    if (!isEmpty && Object.keys(content ?? {}).length === 0) problems.push(`no content of ${status}`);
  }
  return problems;
}

/** Operations that do not declare each parameter of their path, once. */
export function parameterProblems(document: OpenApiDocument): string[] {
  return operationsOf(document).flatMap(({ at, path, operation }) => {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
    const names = (operation.parameters ?? []).map((parameter) => `${parameter.in} ${parameter.name}`);
    const fits =
      declared.every(({ name, required }) => required && inPath.includes(name)) &&
      declared.length === inPath.length &&
      new Set(names).size === names.length;
    return fits ? [] : [at];
  });
}

/** References without a target, and components without a reference. */
export function referenceProblems(document: OpenApiDocument): string[] {
  const references = [...walk(document)].flatMap((node) =>
    typeof node.$ref === "string" ? [node.$ref] : [],
  );
  const schemas = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
  const schemes = Object.keys(document.components.securitySchemes);
  const used = operationsOf(document).flatMap(({ operation }) => operation.security.flatMap(Object.keys));
  return [
    ...references.filter((reference) => !schemas.includes(reference)),
    ...schemas.filter((name) => !references.includes(name)),
    ...used.filter((scheme) => !schemes.includes(scheme)),
    ...schemes.filter((scheme) => !used.includes(scheme)),
  ];
}

function* walk(value: unknown): Generator<Record<string, unknown>> {
  if (Array.isArray(value)) for (const item of value) yield* walk(item);
  if (!isObject(value)) return;
  yield value;
  for (const item of Object.values(value)) yield* walk(item);
}

/** Schemas that are not JSON Schema 2020-12. */
export function schemaProblems(document: OpenApiDocument): string[] {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictTuples: false });
  formats.default(ajv);
  ajv.addKeyword("x-expects");
  ajv.addVocabulary(["openapi", "info", "servers", "tags", "paths", "components", "discriminator"]);
  const root = "https://test.invalid/openapi.json";
  ajv.addSchema({ ...document, $id: root });
  const named = Object.keys(document.components.schemas).flatMap((name) => {
    try {
      ajv.compile({ $ref: `${root}#/components/schemas/${name}` });
      return [];
    } catch (error) {
      return [`${name}: ${String(error)}`];
    }
  });
  const parameters = operationsOf(document).flatMap(({ at, operation }) =>
    (operation.parameters ?? []).flatMap(({ name, schema }) =>
      ajv.validateSchema(schema) === true ? [] : [`${at} ${name}`],
    ),
  );
  return [...named, ...parameters];
}

/** Checks bodies against the schemas of the document. */
export function bodyJudge(document: OpenApiDocument): (schema: unknown, body: unknown) => string | undefined {
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  const root = "https://test.invalid/openapi.json";
  ajv.addSchema({ ...document, $id: root });
  return (schema, body) => {
    const absolute: object = JSON.parse(
      JSON.stringify(schema).replaceAll('"#/components', `"${root}#/components`),
    );
    return ajv.validate(absolute, body) ? undefined : ajv.errorsText();
  };
}
