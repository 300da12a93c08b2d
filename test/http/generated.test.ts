/**
 * Requests generated from the OpenAPI document: every operation × {no token, bad token, each role} × {malformed JSON,
 * wrong types, too large, wrong media type, unusual paths and queries}. None is a 500, each rejection is as
 * documented, and no state changes.
 */
import { Agent, request as httpRequest } from "node:http";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { createLocalBus } from "../../src/bus/index.js";
import { Federation } from "../../src/federation/index.js";
import type { OpenApiDocument, Operation } from "../../src/http/index.js";
import { type FullStore, openStore } from "../../src/store/index.js";
import { wrapperOf } from "../federation/wire.js";
import { fieldOf, type Harness, isObject, startServer } from "./harness.js";
import { captureSwarm } from "./swarm.js";

const BODY_LIMIT = 64 * 1024;
const ROLES = ["user", "admin", "agent", "member"] as const;

let harness: Harness;
let federation: Federation;
let store: FullStore;
let document: OpenApiDocument;
const agent = new Agent({ keepAlive: true, maxSockets: 8 });

beforeAll(async () => {
  // With everything that adds routes.
  store = await openStore({ path: ":memory:" });
  const bus = createLocalBus();
  federation = await Federation.open({
    store,
    clock: systemClock,
    ids: systemIds,
    swarm: captureSwarm().name,
    report: () => {},
  });
  harness = await startServer({
    limits: { failedAuthentications: 0, body: BODY_LIMIT },
    federation,
    room: { store, bus },
  });
  federation.start(harness.mailroom.runtime, bus);
  const { text } = await harness.call("/openapi.json");
  document = JSON.parse(text);
  // State that a request could change.
  await harness.call("/message", { token: "user-token", json: { body: "[direct] mine", task_id: "mine" } });
  await harness.call("/message", {
    token: "user-token",
    json: { body: "[breakpoint] stop", task_id: "paused" },
  });
});
afterAll(async () => {
  agent.destroy();
  await federation.close();
  await harness.close();
  await store.close();
});

interface Case {
  readonly what: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
  readonly template: string;
  readonly token?: string;
  readonly contentType?: string;
  readonly text?: string;
  /** Allowed statuses of the case, for a caller of the right role. */
  readonly expected: readonly number[];
}

interface Got {
  readonly status: number;
  readonly text: string;
  readonly contentType: string;
}

function send({ method, path, token, contentType, text }: Case): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        agent,
        host: "127.0.0.1",
        port: new URL(harness.url).port,
        method,
        path,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(text !== undefined && {
            "content-type": contentType ?? "application/json",
            "content-length": Buffer.byteLength(text),
          }),
        },
      },
      (response) => {
        let answer = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          answer += chunk;
        });
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            text: answer,
            contentType: String(response.headers["content-type"]),
          }),
        );
      },
    );
    request.on("error", reject);
    request.end(text);
  });
}

const CANDIDATES: readonly unknown[] = [
  0,
  -1,
  1.5,
  true,
  "",
  "\u0000",
  "no such thing",
  "x".repeat(3000),
  [],
  [1],
  {},
  { a: { b: 1 } },
  [[]],
];

/** Every way in which one field of a body can be wrong, by the document's schema. */
function wrongBodies(schema: unknown): string[] {
  const check = compiler();
  const resolved = resolve(schema);
  const bodies: unknown[] = [null, 1, "text", [], [{}], true];
  const valid = minimal(resolved);
  const properties = fieldOf(resolved, "properties");
  for (const [name, property] of Object.entries(isObject(properties) ? properties : {})) {
    for (const value of CANDIDATES) {
      if (!check(property, value)) bodies.push({ ...valid, [name]: value });
    }
    const inner = fieldOf(property, "properties");
    for (const [field, innerSchema] of Object.entries(isObject(inner) ? inner : {})) {
      for (const value of CANDIDATES) {
        if (!check(innerSchema, value)) bodies.push({ ...valid, [name]: { [field]: value } });
      }
    }
  }
  const required = fieldOf(resolved, "required");
  for (const name of Array.isArray(required) ? required : []) {
    const { [String(name)]: _, ...without } = valid;
    bodies.push(without);
  }
  return bodies.map((body) => JSON.stringify(body));
}

function minimal(schema: unknown): Record<string, unknown> {
  const required = fieldOf(schema, "required");
  const fields = (Array.isArray(required) ? required : []).map((name) => [String(name), "x"]);
  return Object.fromEntries(fields);
}

function resolve(schema: unknown): unknown {
  const reference = fieldOf(schema, "$ref");
  if (typeof reference !== "string") return schema;
  return document.components.schemas[reference.replace("#/components/schemas/", "")];
}

function compiler(): (schema: unknown, value: unknown) => boolean {
  const ajv = documentAjv();
  return (schema, value) => ajv.validate(absolute(schema), value) === true;
}

function documentAjv(): Ajv2020 {
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  ajv.addSchema({ ...document, $id: "https://test.invalid/openapi.json" });
  return ajv;
}

/** Resolves references of the document, for use outside it. */
function absolute(schema: unknown): object {
  return JSON.parse(
    JSON.stringify(schema).replaceAll('"#/components', '"https://test.invalid/openapi.json#/components'),
  );
}

const STRANGE_SEGMENTS = [
  "%zz",
  "%00",
  "%0a",
  encodeURIComponent("x".repeat(300)),
  "%F0%9F",
  "..%2F..%2Fetc",
];

function pathsOf(template: string, operation: Operation): { path: string; expected: readonly number[] }[] {
  const names = [...template.matchAll(/\{(\w+)\}/g)];
  const fill = (value: string) => template.replaceAll(/\{\w+\}/g, value);
  const plain = fill("nobody-has-this");
  const unknown = names.length === 0 ? [] : [404];
  const strange =
    names.length === 0
      ? []
      : STRANGE_SEGMENTS.map((segment) => ({ path: fill(segment), expected: [400, 404] }));
  const queries = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === "query")
    .flatMap(({ name, schema }) => {
      const wrong = ["", "%00", "abc%20def", "-1", "1e9", "[]", `a&${name}=b`];
      const check = compiler();
      return wrong
        .filter((value) => value.includes("&") || !check(schema, coerced(schema, decodeURIComponent(value))))
        .map((value) => ({ path: `${plain}?${name}=${value}`, expected: [400, ...unknown] }));
    });
  return [...strange, ...queries];
}

function coerced(schema: unknown, value: string): unknown {
  if (fieldOf(schema, "type") !== "integer") return value;
  return value !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
}

/** Cases for a caller of the right role. None may change anything. */
function* casesFor(template: string, method: string, operation: Operation): Generator<Case> {
  const names = [...template.matchAll(/\{(\w+)\}/g)];
  const plain = template.replaceAll(/\{\w+\}/g, "nobody-has-this");
  const base = { method, operation, template, path: plain };
  for (const text of ["{", "{oops", "[1,", '"', "nul", '{"a":1}}', '{"__proto__":{}}', "\u0000"]) {
    yield { ...base, what: `malformed ${text}`, text, expected: [400] };
  }
  for (const contentType of [
    "text/plain",
    "application/xml",
    "application/x-www-form-urlencoded",
    "nonsense",
  ]) {
    yield { ...base, what: contentType, text: "{}", contentType, expected: [415] };
  }
  yield { ...base, what: "too large", text: JSON.stringify("x".repeat(BODY_LIMIT)), expected: [413] };
  const schema = operation.requestBody?.content["application/json"]?.schema;
  if (schema !== undefined) {
    const optional = operation.requestBody?.required === false;
    for (const text of wrongBodies(schema)) {
      if (optional && text === "null") continue;
      yield { ...base, what: text.slice(0, 80), text, expected: [400] };
    }
  }
  for (const { path, expected } of pathsOf(template, operation)) {
    yield { ...base, path, what: path, expected };
  }
  if (names.length > 0 && schema === undefined) {
    const check = compiler();
    const fits = (operation.parameters ?? []).every(
      (parameter) => parameter.in !== "path" || check(parameter.schema, "nobody-has-this"),
    );
    yield { ...base, what: "unknown", expected: [fits ? 404 : 400] };
  }
}

async function fingerprint(): Promise<unknown> {
  const { mailroom } = harness;
  const { position } = await mailroom.store.commit({ appends: [] });
  const { tasks } = await mailroom.store.tasks.list({ limit: 1000 });
  const health = await harness.call("/health");
  return { position, tasks, health: health.body, swarm: mailroom.swarm.hash };
}

describe("requests generated from the OpenAPI document", () => {
  it("[MAIL-AUTH-01, MAIL-ERR-05, MAIL-ERR-06, MAIL-REST-01] are rejected as documented, and change nothing", async () => {
    const before = await fingerprint();
    const ajv = documentAjv();
    const isError = ajv.compile({ $ref: "https://test.invalid/openapi.json#/components/schemas/Error" });
    const wrong: string[] = [];
    let sent = 0;

    async function check(item: Case, expected: readonly number[]): Promise<void> {
      sent++;
      const { status, text, contentType } = await send(item);
      const say = (problem: string) =>
        wrong.push(
          `${item.method} ${item.path.slice(0, 80)} as ${item.token ?? "anonymous"} (${item.what}): ${problem}: ${status} ${text.slice(0, 200)}`,
        );
      if (!expected.includes(status)) say(`expected ${expected.join(" or ")}`);
      if (status >= 500) say("a 5xx");
      if (status < 400) return;
      const documented = Object.keys(item.operation.responses).map(Number);
      // A path that cannot be decoded reaches no operation.
      if (!documented.includes(status) && status !== 404) say("not documented");
      if (!contentType.startsWith("application/json") || !isError(JSON.parse(text))) say("not an error body");
    }

    for (const [template, methods] of Object.entries(document.paths)) {
      for (const [name, operation] of Object.entries(methods)) {
        const method = name.toUpperCase();
        const roles = operation["x-roles"];
        const cases = [...casesFor(template, method, operation)];
        for (const item of cases) {
          if (roles === undefined) {
            await check(item, item.expected);
            continue;
          }
          const wrongRole = Number(
            Object.keys(operation.responses).find((status) => status === "403") ?? 401,
          );
          const unrouted = item.path.includes("%zz") || item.path.includes("%F0%9F") ? [400, 404] : [];
          await check(item, [401, ...unrouted]);
          await check({ ...item, token: "bad" }, [401, ...unrouted]);
          for (const role of ROLES) {
            const allowed = roles.includes(role);
            await check(
              { ...item, token: `${role}-token` },
              allowed ? item.expected : [wrongRole, ...unrouted],
            );
          }
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(sent).toBeGreaterThanOrEqual(2000);
    expect(await fingerprint()).toEqual(before);
  }, 180_000);

  it("[MAIL-CONF-03, MAIL-REST-02, MAIL-REST-03, MAIL-REST-04, MAIL-REST-05, MAIL-REST-08] that are valid get the documented response", async () => {
    const ajv = documentAjv();
    const wrong: string[] = [];
    const keyOf = async (id: string) =>
      String(fieldOf((await harness.call(`/tasks/${id}`, { token: "user-token" })).body, "key"));
    const key = await keyOf("mine");
    const waiting = await keyOf("paused");
    // Another swarm sees tasks that it contributes to.
    const { name, entrypoint } = captureSwarm();
    const wish = { source: "agent-1", target: name, to: `${entrypoint}@${name}`, taskId: "mine" };
    const message = wrapperOf(wish);
    await harness.call("/interswarm/forward", { token: "agent-token", json: { message } });
    for (const [template, methods] of Object.entries(document.paths)) {
      const operation = methods.get;
      const schema = operation?.responses["200"]?.content?.["application/json"]?.schema;
      if (operation === undefined || schema === undefined) continue;
      const keyed = template.startsWith("/approvals/") ? waiting : key;
      const path = template.replace("{task_id}", "mine").replace("{key}", keyed);
      const url = { "/task": "/task?task_id=mine", "/search": "/search?q=mine" }[path] ?? path;
      const role = ["user", "admin", "agent"].find((one) => operation["x-roles"]?.includes(one) ?? true);
      const token = `${role}-token`;
      const { status, body } = await harness.call(url, { token });
      if (status !== 200) wrong.push(`${url}: ${status}`);
      if (ajv.validate(absolute(schema), body) !== true) wrong.push(`${url}: ${ajv.errorsText()}`);
    }
    expect(wrong).toEqual([]);
  });
});
