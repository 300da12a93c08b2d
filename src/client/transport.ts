/** Requests and responses: time limits, errors, retries. Uses only what browsers have. */

import { isRecord, parseRetryAfter, sleep, truncate, urgentClock } from "../base/index.js";
import { MailClientError, MailConnectionError } from "./errors.js";
import { backoff, canRetry, wasNotExecuted } from "./retry.js";
import { ErrorBody, ServerInfo } from "./wire.js";

/** The part of `fetch` that the client uses. */
export type FetchFunction = (url: string, init: RequestInit) => Promise<Response>;

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call, which then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * Milliseconds until the response must be complete (for a stream: until it begins).
   * @defaultValue the client's `timeout`; for messages one hour, or `kwargs.timeout`
   */
  readonly timeout?: number;
}

/** Options of calls that change something. */
export interface WriteOptions extends CallOptions {
  /**
   * A repeated call with the same key has no second effect and gets the same response.
   * @defaultValue a new key for each call
   */
  readonly idempotencyKey?: string;
}

export interface TransportRequest extends WriteOptions {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Overrides the client's token. */
  readonly token?: string;
}

/** A zod schema, or any other validator of responses. */
export interface Reader<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false; error: { message: string } };
}

export interface TransportOptions {
  readonly url: string;
  readonly token: () => string | undefined;
  readonly timeout: number;
  readonly retries: number;
  readonly retryPause: number | undefined;
  readonly fetch: FetchFunction;
}

/** A response that has begun, and a function that releases it. */
export interface OpenResponse {
  readonly response: Response;
  /** Aborts with the caller's signal, or with the reason passed to `abort`. */
  readonly signal: AbortSignal;
  readonly abort: (reason: unknown) => void;
}

const IDEMPOTENCY = "idempotency-key";
/** Milliseconds after which a failed attempt counts as a wait, not as a rejection. */
const LONG_WAIT = 30_000;

export class Transport {
  readonly url: string;
  readonly #options: TransportOptions;
  #deduplicates: boolean | undefined;

  constructor(options: TransportOptions) {
    this.url = options.url;
    this.#options = options;
  }

  /** Sends a call and reads its response, with retries. */
  async json<T>(call: TransportRequest, reader: Reader<T>): Promise<T> {
    const keyed = withKey(call);
    const patientUntil = Date.now() + (call.timeout ?? this.#options.timeout);
    for (let failures = 0; ; ) {
      const started = Date.now();
      try {
        return await this.#once(keyed, reader);
      } catch (error) {
        const now = Date.now();
        // A failure after a long wait (a long task) is no sign of a broken server, so the count restarts, but only
        // within the caller's time limit.
        failures = now - started > LONG_WAIT && now < patientUntil ? 1 : failures + 1;
        if (failures > this.#options.retries || !(await this.canRepeat(keyed, error))) throw error;
        await sleep(urgentClock, this.backoff(failures, error), call.signal);
      }
    }
  }

  /**
   * Whether a failed call may be repeated. A write with an unknown outcome is repeated only if the server supports
   * idempotency keys.
   */
  async canRepeat(call: TransportRequest, error: unknown): Promise<boolean> {
    if (call.signal?.aborted === true || !canRetry(error)) return false;
    if (call.method === "GET" || wasNotExecuted(error)) return true;
    return this.deduplicates(call.signal);
  }

  /** The server's capabilities are requested once; without them, none are assumed. */
  async deduplicates(signal?: AbortSignal): Promise<boolean> {
    if (this.#deduplicates !== undefined) return this.#deduplicates;
    for (let failures = 0; failures <= this.#options.retries; failures += 1) {
      try {
        const call: TransportRequest = { method: "GET", path: "/", ...(signal && { signal }) };
        const info = await this.#once(call, ServerInfo);
        this.#deduplicates =
          info.server?.name === "mailroom" || info.capabilities?.includes("idempotency") === true;
        return this.#deduplicates;
      } catch (error) {
        if (signal?.aborted === true || !canRetry(error)) return false;
        await sleep(urgentClock, this.backoff(failures + 1, error), signal);
      }
    }
    return false;
  }

  /** Sends a call once and resolves as soon as the response begins. Throws for every status except 2xx. */
  async open(call: TransportRequest): Promise<OpenResponse> {
    const control = new AbortController();
    call.signal?.throwIfAborted();
    const signal =
      call.signal === undefined ? control.signal : AbortSignal.any([call.signal, control.signal]);
    const limit = call.timeout ?? this.#options.timeout;
    const timer = setTimeout(() => control.abort(timedOut(this.#name(call), this.url, limit)), limit);
    try {
      const response = await this.#options.fetch(this.#address(call), {
        method: call.method,
        headers: this.#headers(call),
        signal,
        ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
      });
      if (!response.ok) throw await this.#refusal(call, response);
      return { response, signal, abort: (reason) => control.abort(reason) };
    } catch (error) {
      throw this.failure(error, call, signal);
    } finally {
      clearTimeout(timer);
    }
  }

  async #once<T>(call: TransportRequest, reader: Reader<T>): Promise<T> {
    const limit = call.timeout ?? this.#options.timeout;
    const { response, signal, abort } = await this.open(call);
    const timer = setTimeout(() => abort(timedOut(this.#name(call), this.url, limit)), limit);
    let text: string;
    try {
      text = await response.text();
    } catch (error) {
      throw this.failure(error, call, signal);
    } finally {
      clearTimeout(timer);
    }
    const parsed = reader.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    const what = `${this.#name(call)}: ${this.url} did not answer like a MAIL server; check the URL`;
    throw new MailConnectionError("bad_response", this.url, what, { cause: parsed.error });
  }

  async #refusal(call: TransportRequest, response: Response): Promise<MailClientError> {
    const text = await response.text().catch(() => "");
    const body = parseJson(text);
    const fields = ErrorBody.safeParse(body);
    const { detail, code, error, message } = fields.success ? fields.data : {};
    const nested = isRecord(error) ? error : {};
    const said = [detail, message, nested.message, error].find((value) => typeof value === "string");
    return new MailClientError({
      request: this.#name(call),
      status: response.status,
      detail: typeof said === "string" ? said : describe(detail, text, response),
      code: [code, nested.code].find((value) => typeof value === "string"),
      retryAfter: parseRetryAfter(response.headers.get("retry-after") ?? undefined, Date.now()),
      body: body ?? text,
    });
  }

  /** Returns the milliseconds to wait before a retry. */
  backoff(failures: number, error: unknown): number {
    return backoff(failures, error, this.#options.retryPause);
  }

  /** Converts a failure to one of the client's errors. */
  failure(error: unknown, call: TransportRequest, signal: AbortSignal): unknown {
    if (error instanceof MailClientError || error instanceof MailConnectionError) return error;
    // The reason of an abort is the caller's own, or our time limit.
    if (call.signal?.aborted === true) return call.signal.reason;
    if (signal.aborted && signal.reason instanceof MailConnectionError) return signal.reason;
    const reason = reasonOf(error);
    const check = `check that the server at ${this.url} is running${originHint(this.url)}`;
    const message = `${this.#name(call)} got no response (${reason}); ${check}`;
    return new MailConnectionError("unreachable", this.url, message, { cause: error });
  }

  #address(call: TransportRequest): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    const text = query.toString();
    return `${this.url}${call.path}${text === "" ? "" : `${call.path.includes("?") ? "&" : "?"}${text}`}`;
  }

  #headers(call: TransportRequest): Record<string, string> {
    const token = call.token ?? this.#options.token();
    return {
      accept: "application/json",
      ...(call.body !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(call.idempotencyKey !== undefined && { [IDEMPOTENCY]: call.idempotencyKey }),
      ...call.headers,
    };
  }

  #name(call: TransportRequest): string {
    return `${call.method} ${call.path}`;
  }
}

/** Gives every write a key, so that it can be repeated. */
export function withKey(call: TransportRequest): TransportRequest {
  return call.method === "GET" ? call : { ...call, idempotencyKey: call.idempotencyKey ?? newKey() };
}

/** Creates a key without `crypto.randomUUID`, which is missing on pages without https. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function timedOut(request: string, url: string, limit: number): MailConnectionError {
  return new MailConnectionError("timeout", url, `${request} got no response within ${limit} ms`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function describe(detail: unknown, text: string, response: Response): string {
  if (detail !== undefined) return JSON.stringify(detail);
  return truncate(text.trim(), 200) || response.statusText || "no reason given";
}

/** A browser does not tell a page whether the server refused its origin. */
function originHint(url: string): string {
  const { location } = globalThis as { location?: { readonly origin?: unknown } };
  const origin = location?.origin;
  if (typeof origin !== "string" || origin === new URL(url).origin) return "";
  return ` and that its setting cors_origins lists ${origin}`;
}

/** `fetch` hides the reason ("ECONNREFUSED") in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return "code" in cause ? String(cause.code) : cause.message;
  return error.message;
}
