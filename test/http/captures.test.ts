/**
 * Requests of the reference's clients, replayed against this server. `exchanges.json` holds recorded requests and the
 * relevant parts of the recorded answers; deliberate differences are listed (`ours`) with a reason (`difference`).
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fieldOf, type Harness, isObject, parseStream, startServer } from "./harness.js";

interface Expected {
  readonly status?: number;
  readonly body?: unknown;
  /** Text values only need this prefix. */
  readonly prefix?: boolean;
  /** Null where only the rest is compared. */
  readonly events?: readonly string[] | null;
}

interface Exchange {
  readonly name: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly token?: string;
    readonly authorization?: string;
    readonly json?: unknown;
    readonly text?: string;
  };
  readonly reference: Expected;
  readonly ours?: Expected;
  readonly difference?: string;
}

const file = new URL("../data/mail-captures/exchanges.json", import.meta.url);
const exchanges: readonly Exchange[] = JSON.parse(readFileSync(file, "utf8"));

let harness: Harness;
beforeAll(async () => {
  harness = await startServer({ limits: { failedAuthentications: 0 } });
});
afterAll(() => harness.close());

/** The recorded task that a placeholder stands for, because ids of calls differ in each run. */
const calls = new Map<string, string>();

describe("exchanges recorded with the reference", () => {
  for (const exchange of exchanges) {
    const note = exchange.difference === undefined ? "" : ` (differs: ${exchange.difference})`;
    it(`${exchange.name}${note}`, async () => {
      const { method, path, token, authorization, json, text } = exchange.request;
      const reply = await harness.call(path, {
        method,
        ...(token !== undefined && { token }),
        ...(authorization !== undefined && { headers: { authorization } }),
        ...(json !== undefined && { json: withCalls(json) }),
        ...(text !== undefined && { text }),
      });
      remember(reply.body);
      const expected: Expected = { ...exchange.reference, ...exchange.ours };
      expect(reply.status, reply.text).toBe(expected.status);
      if (expected.body !== undefined) {
        if (expected.prefix === true) expectPrefixes(reply.body, expected.body);
        else expect(reply.body).toMatchObject(withoutCallIds(expected.body));
      }
      if (expected.events !== undefined && expected.events !== null)
        expect(eventsIn(reply)).toEqual(expected.events);
    });
  }

  it("are compared with the recording, unless a reason is given", () => {
    const changed = exchanges.filter(
      ({ ours, difference }) => (ours === undefined) !== (difference === undefined),
    );
    expect(changed).toEqual([]);
    expect(exchanges.length).toBeGreaterThan(60);
  });
});

function expectPrefixes(body: unknown, expected: unknown): void {
  for (const [key, value] of Object.entries(isObject(expected) ? expected : {})) {
    const got = fieldOf(body, key);
    if (typeof value === "string") expect(String(got).startsWith(value), `${key}: ${String(got)}`).toBe(true);
    else expect(got).toEqual(value);
  }
}

function eventsIn({ body, text }: { body: unknown; text: string }): string[] {
  const events = text.startsWith("event: ")
    ? parseStream(text)
    : (fieldOf(body, "events") ?? fieldOf(body, "task-one", "events"));
  if (!Array.isArray(events)) return [];
  return events.map((event: unknown) => {
    const name = String(fieldOf(event, "event"));
    if (name !== "tool_call") return name;
    const extra = fieldOf(event, "data", "extra_data");
    return `tool_call ${String(fieldOf(extra, "tool_name"))} ${canonical(fieldOf(extra, "tool_args"))}`;
  });
}

/** As in the recording: sorted keys, a space after `:` and `,`. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(", ")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}: ${canonical(value[key])}`).join(", ")}}`;
}

function remember(body: unknown): void {
  const id = fieldOf(body, "breakpoint", "0", "call_id");
  if (typeof id === "string") calls.set("call_6a56d7c00ed6", id);
}

function withCalls(json: unknown): unknown {
  let text = JSON.stringify(json);
  for (const [recorded, made] of calls) text = text.replaceAll(recorded, made);
  return JSON.parse(text);
}

function withoutCallIds(expected: unknown): object {
  const known = withCalls(expected);
  return isObject(known) ? known : {};
}
