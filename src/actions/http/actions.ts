/** HTTP actions with the names and arguments of REF-21, behind the outbound guard. They always report the status. */
import { STATUS_CODES } from "node:http";
import { z } from "zod";
import type { Action, ActionContext } from "../../engine/index.js";
import { defineAction } from "../define.js";
import { type Outbound, type OutboundOptions, outbound } from "../outbound.js";

export type HttpActionName =
  | "http_get"
  | "http_post"
  | "http_put"
  | "http_patch"
  | "http_delete"
  | "http_head"
  | "http_options";

const url = z.string().min(1).max(8_192).describe("The complete URL, https://…");

/** Set by the HTTP client, not by agents. */
const RESERVED_HEADERS = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "upgrade",
  "te",
  "trailer",
]);

const headers = z
  .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string().regex(/^[^\r\n\0]*$/))
  .refine((given) => !Object.keys(given).some((name) => RESERVED_HEADERS.has(name.toLowerCase())), {
    message: `must not contain ${[...RESERVED_HEADERS].join(", ")}`,
  })
  .default({})
  .describe("Headers to send");

const body = z
  .union([z.record(z.string(), z.json()), z.array(z.json()), z.string()])
  .describe("The body: an object or list is sent as JSON, a string unchanged");

const WithoutBody = z.strictObject({ url, headers });
const WithBody = z.strictObject({ url, headers, body });

interface Asked {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/**
 * Makes actions that send HTTP requests, behind the outbound guard.
 *
 * @example
 * const { http_get } = httpActions({ allow: ["api.example.com"] });
 */
export function httpActions(options: OutboundOptions = {}): Readonly<Record<HttpActionName, Action>> {
  const out = outbound(options);
  const without = (name: HttpActionName, description: string): Action =>
    defineAction({
      name,
      description,
      parameters: WithoutBody,
      // Idempotent methods (RFC 9110, 9.2.2).
      idempotent: true,
      run: (asked, context) => send(out, name, asked, context),
    });
  const withBody = (name: HttpActionName, description: string, idempotent: boolean): Action =>
    defineAction({
      name,
      description,
      parameters: WithBody,
      idempotent,
      run: (asked, context) => send(out, name, asked, context),
    });
  return {
    http_get: without("http_get", "Fetches a URL with GET and returns status, headers and text."),
    http_head: without("http_head", "Requests a URL with HEAD and returns status and headers."),
    http_options: without("http_options", "Requests the options of a URL with OPTIONS."),
    http_delete: without("http_delete", "Sends DELETE to a web address."),
    http_put: withBody("http_put", "Sends a body with PUT to a URL.", true),
    http_post: withBody("http_post", "Sends a body with POST to a URL.", false),
    http_patch: withBody("http_patch", "Sends a body with PATCH to a URL.", false),
  };
}

async function send(
  out: Outbound,
  name: HttpActionName,
  asked: Asked,
  context: ActionContext,
): Promise<string> {
  const method = name.slice("http_".length).toUpperCase();
  const stream = await out.client.open(asked.url, {
    method,
    headers: headersFor(method, asked, context),
    ...(asked.body !== undefined && {
      body: typeof asked.body === "string" ? asked.body : JSON.stringify(asked.body),
    }),
    timeLimit: out.timeLimit,
    idleLimit: out.timeLimit,
    maxRedirects: 5,
    signal: AbortSignal.any([context.signal, AbortSignal.timeout(out.timeLimit)]),
  });
  const { bytes, cut } = await readUpTo(stream.body, out.maxBytes);
  stream.close();
  const type = stream.headers["content-type"] ?? "";
  const lines = [`HTTP ${stream.status} ${STATUS_CODES[stream.status] ?? ""}`.trim()];
  if (stream.url !== new URL(asked.url).href) lines.push(`from: ${stream.url}`);
  const shown =
    method === "HEAD" || method === "OPTIONS" ? Object.keys(stream.headers) : ["content-type", "location"];
  for (const header of shown) {
    const value = stream.headers[header];
    if (value !== undefined) lines.push(`${header}: ${value}`);
  }
  const text = isText(type, bytes)
    ? Buffer.from(bytes).toString("utf8")
    : `(${bytes.byteLength} bytes of binary data)`;
  const note = cut ? `\n(truncated after ${out.maxBytes} bytes)` : "";
  return `${lines.join("\n")}\n\n${text}${note}`.trimEnd();
}

function headersFor(method: string, asked: Asked, context: ActionContext): Record<string, string> {
  const given = new Set(Object.keys(asked.headers).map((name) => name.toLowerCase()));
  const extra: Record<string, string> = {};
  if (asked.body !== undefined && typeof asked.body !== "string" && !given.has("content-type")) {
    extra["content-type"] = "application/json";
  }
  // The same on every attempt, so that a server that supports this header executes the request once.
  if ((method === "POST" || method === "PATCH") && !given.has("idempotency-key")) {
    extra["idempotency-key"] = context.idempotencyKey;
  }
  return { ...extra, ...asked.headers };
}

/** A long response is truncated, not rejected: its beginning is usually sufficient. */
async function readUpTo(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly bytes: Uint8Array; readonly cut: boolean }> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    parts.push(part);
    size += part.byteLength;
    if (size > maxBytes) return { bytes: Buffer.concat(parts).subarray(0, maxBytes), cut: true };
  }
  return { bytes: Buffer.concat(parts), cut: false };
}

function isText(type: string, bytes: Uint8Array): boolean {
  if (
    /^(?:text\/|application\/(?:[\w.+-]*\+)?(?:json|xml|javascript|x-www-form-urlencoded|x-ndjson))/i.test(
      type,
    )
  )
    return true;
  return type === "" && !bytes.includes(0);
}
