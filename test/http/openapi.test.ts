/** The document itself: what a linter would ask of it. */
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OpenApiDocument, Operation } from "../../src/http/index.js";
import { type Harness, isObject, startServer } from "./harness.js";

let harness: Harness;
let document: OpenApiDocument;
beforeAll(async () => {
  harness = await startServer();
  document = JSON.parse((await harness.call("/openapi.json")).text);
});
afterAll(() => harness.close());

function operations(): { readonly at: string; readonly path: string; readonly operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ at: `${method} ${path}`, path, operation })),
  );
}

function* walk(
  value: unknown,
  path = "#",
): Generator<{ readonly path: string; readonly node: Record<string, unknown> }> {
  if (Array.isArray(value))
    for (const [index, item] of value.entries()) yield* walk(item, `${path}/${index}`);
  if (!isObject(value)) return;
  yield { path, node: value };
  for (const [key, item] of Object.entries(value)) yield* walk(item, `${path}/${key}`);
}

const references = () =>
  [...walk(document)].flatMap(({ node }) => (typeof node.$ref === "string" ? [node.$ref] : []));

describe("/openapi.json", () => {
  it("is OpenAPI 3.1 with the protocol's version and ours", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(document.info).toMatchObject({ version: "1.2", "x-mailroom-version": "0.0.0" });
    const known = ["openapi", "info", "servers", "tags", "paths", "components"];
    expect(Object.keys(document).filter((name) => !known.includes(name))).toEqual([]);
  });

  it("[MAIL-SERVER-01] has every endpoint of MAIL and ours", () => {
    const paths = operations().map(({ at }) => at);
    expect(paths).toEqual(
      expect.arrayContaining([
        "get /",
        "get /admin/tasks",
        "get /admin/tasks/{key}",
        "get /admin/tasks/{key}/events",
        "get /docs",
        "get /health",
        "get /metrics",
        "get /openapi.json",
        "get /status",
        "get /swarms",
        "get /swarms/dump",
        "get /task",
        "get /tasks",
        "get /tasks/{task_id}",
        "get /tasks/{task_id}/events",
        "get /whoami",
        "post /admin/tasks/{key}/cancel",
        "post /health",
        "post /message",
        "post /swarms",
        "post /swarms/load",
        "post /swarms/register",
        "post /tasks/{task_id}/breakpoint",
        "post /tasks/{task_id}/cancel",
      ]),
    );
  });

  it("describes every operation in full", () => {
    const tags = document.tags.map(({ name }) => name);
    const wrong = operations().flatMap(({ at, operation }) => {
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
        if (content === undefined || Object.keys(content).length === 0)
          problems.push(`no content of ${status}`);
      }
      return problems.map((problem) => `${at}: ${problem}`);
    });
    expect(wrong).toEqual([]);
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^[a-z][A-Za-z]+$/.test(id))).toEqual([]);
  });

  it("declares every parameter of every path, once", () => {
    const wrong = operations().flatMap(({ at, path, operation }) => {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      const names = (operation.parameters ?? []).map((parameter) => `${parameter.in} ${parameter.name}`);
      const fits =
        declared.every(({ name, required }) => required && inPath.includes(name)) &&
        declared.length === inPath.length &&
        new Set(names).size === names.length;
      return fits ? [] : [at];
    });
    expect(wrong).toEqual([]);
    const writes = operations().filter(({ at }) => at.startsWith("post"));
    const withoutKey = writes.filter(
      ({ operation }) => operation.parameters?.some(({ name }) => name === "Idempotency-Key") !== true,
    );
    expect(withoutKey.map(({ at }) => at)).toEqual([]);
  });

  it("has references that lead somewhere, and no schema that nothing refers to", () => {
    const names = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect(references().filter((reference) => !names.includes(reference))).toEqual([]);
    expect(names.filter((name) => !references().includes(name))).toEqual([]);
  });

  it("has schemas that are JSON Schema 2020-12", () => {
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictTuples: false });
    formats.default(ajv);
    ajv.addKeyword("x-expects");
    ajv.addVocabulary(["openapi", "info", "servers", "tags", "paths", "components", "discriminator"]);
    const root = "https://test.invalid/openapi.json";
    ajv.addSchema({ ...document, $id: root });
    for (const name of Object.keys(document.components.schemas)) {
      expect(() => ajv.compile({ $ref: `${root}#/components/schemas/${name}` }), name).not.toThrow();
    }
    const inline = operations().flatMap(({ operation }) =>
      (operation.parameters ?? []).map(({ schema }) => schema),
    );
    for (const schema of inline) expect(ajv.validateSchema(schema)).toBe(true);
  });
});

describe("/docs", () => {
  it("shows every operation and loads nothing", async () => {
    const { text, headers } = await harness.call("/docs");
    expect(headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(String(headers["content-security-policy"])).toContain("default-src 'none'");
    for (const { operation } of operations()) expect(text).toContain(`id="${operation.operationId}"`);
    expect(text).not.toMatch(/<script|src=|https?:\/\//);
  });
});
