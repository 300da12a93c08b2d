/** Lints the OpenAPI document. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OpenApiDocument } from "../../src/http/index.js";
import {
  operationProblems,
  operationsOf,
  parameterProblems,
  referenceProblems,
  schemaProblems,
} from "./document-lint.js";
import { type Harness, startServer } from "./harness.js";

let harness: Harness;
let document: OpenApiDocument;
beforeAll(async () => {
  harness = await startServer();
  document = JSON.parse((await harness.call("/openapi.json")).text);
});
afterAll(() => harness.close());

describe("/openapi.json", () => {
  it("is OpenAPI 3.1 with the version of the protocol and of Mailroom", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(document.info).toMatchObject({ version: "1.2", "x-mailroom-version": "0.0.0" });
    const known = ["openapi", "info", "servers", "tags", "paths", "components"];
    expect(Object.keys(document).filter((name) => !known.includes(name))).toEqual([]);
  });

  it("[MAIL-SERVER-01] has every endpoint of MAIL and of Mailroom", () => {
    const paths = operationsOf(document).map(({ at }) => at);
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

  it("describes every operation completely", () => {
    expect(operationProblems(document)).toEqual([]);
  });

  it("declares every path parameter once", () => {
    expect(parameterProblems(document)).toEqual([]);
    // Reads with a body, and writes that change nothing when they are repeated.
    const repeatable = [
      /\/tasks\/digest$/,
      /\/outbox\/\{id\}\/(retry|abandon)$/,
      /\/budget$/,
      /\/admin\/budgets\//,
    ];
    const writes = operationsOf(document).filter(
      ({ method, at }) => method === "post" && !repeatable.some((path) => path.test(at)),
    );
    const withoutKey = writes.filter(
      ({ operation }) => operation.parameters?.some(({ name }) => name === "Idempotency-Key") !== true,
    );
    expect(withoutKey.map(({ at }) => at)).toEqual([]);
  });

  it("has no dangling references and no unused components", () => {
    expect(referenceProblems(document)).toEqual([]);
  });

  it("has valid JSON Schema 2020-12 schemas", () => {
    expect(schemaProblems(document)).toEqual([]);
  });
});

describe("/docs", () => {
  it("shows every operation and loads nothing", async () => {
    const { text, headers } = await harness.call("/docs");
    expect(headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(String(headers["content-security-policy"])).toContain("default-src 'none'");
    for (const { operation } of operationsOf(document))
      expect(text).toContain(`id="${operation.operationId}"`);
    expect(text).not.toMatch(/<script|src=|https?:\/\//);
  });
});
