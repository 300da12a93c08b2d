/**
 * What clients of the reference said and heard, said to our server. `exchanges.json` holds recorded requests and what
 * matters of the recorded answers; where ours differs on purpose it says how (`ours`) and why (`difference`).
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fieldOf, type Harness, isObject, parseStream, startServer } from "./harness.js";

interface Expected {
  readonly status?: number;
  readonly body?: unknown;
  /** Text values need only begin like this. */
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

/** Whose recorded task the placeholder stands for: ids of calls are made anew each time. */
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

  it("are compared with what they were, unless a reason is given", () => {
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

/** As the recording has it: sorted keys, a space after `:` and `,`. */
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
