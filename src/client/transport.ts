/** Requests and answers: time limits, errors, retries. Uses nothing but what browsers have. */
import { MailClientError, MailConnectionError } from "./errors.js";
import { isObject } from "./events.js";
import { backoff, canTryAgain, pause, wasNotCarriedOut } from "./retry.js";
import { ErrorBody, ServerInfo } from "./wire.js";

export type FetchFunction = (url: string, init: RequestInit) => Promise<Response>;

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds until the answer must be complete (for a stream: until it begins). */
  readonly timeout?: number;
}

export interface WriteOptions extends CallOptions {
  /** The same key gives the same answer, however often it is sent. Default: a new one for each call. */
  readonly idempotencyKey?: string;
}

export interface Call extends WriteOptions {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Another token than the client's own. */
  readonly token?: string;
}

/** A zod schema, or whatever else can tell an answer from something else. */
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

/** An answer that has begun, and the way to let go of it. */
export interface Opened {
  readonly response: Response;
  /** Fires when the caller gives up, or with the reason handed to `abort`. */
  readonly signal: AbortSignal;
  readonly abort: (reason: unknown) => void;
}

const IDEMPOTENCY = "idempotency-key";
/** Milliseconds after which an attempt that fails was a wait, and not a refusal. */
const PATIENT = 30_000;

export class Transport {
  readonly url: string;
  readonly #options: TransportOptions;
  #deduplicates: boolean | undefined;

  constructor(options: TransportOptions) {
    this.url = options.url;
    this.#options = options;
  }

  /** Sends a call and reads its answer, again if need be. */
  async json<T>(call: Call, reader: Reader<T>): Promise<T> {
    const keyed = withKey(call);
    const patientUntil = Date.now() + (call.timeout ?? this.#options.timeout);
    for (let failures = 0; ; ) {
      const started = Date.now();
      try {
        return await this.#once(keyed, reader);
      } catch (error) {
        const now = Date.now();
        // An answer that was waited for patiently (a long task) says nothing bad about the server; but no longer than
        // the caller would have waited for it in one piece.
        failures = now - started > PATIENT && now < patientUntil ? 1 : failures + 1;
        if (failures > this.#options.retries || !(await this.maySendAgain(keyed, error))) throw error;
        await pause(this.backoff(failures, error), call.signal);
      }
    }
  }

  /**
   * Whether a call that failed so may be sent once more. A write whose fate is unknown is repeated only where the server
   * promises that the same idempotency key has no second effect.
   */
  async maySendAgain(call: Call, error: unknown): Promise<boolean> {
    if (call.signal?.aborted === true || !canTryAgain(error)) return false;
    if (call.method === "GET" || wasNotCarriedOut(error)) return true;
    return this.deduplicates(call.signal);
  }

  /** What the server says of itself is asked once; a server that cannot be asked is not trusted. */
  async deduplicates(signal?: AbortSignal): Promise<boolean> {
    if (this.#deduplicates !== undefined) return this.#deduplicates;
    for (let failures = 0; failures <= this.#options.retries; failures += 1) {
      try {
        const call: Call = { method: "GET", path: "/", ...(signal && { signal }) };
        const info = await this.#once(call, ServerInfo);
        this.#deduplicates =
          info.server?.name === "mailroom" || info.capabilities?.includes("idempotency") === true;
        return this.#deduplicates;
      } catch (error) {
        if (signal?.aborted === true || !canTryAgain(error)) return false;
        await pause(this.backoff(failures + 1, error), signal);
      }
    }
    return false;
  }

  /** Sends a call once and returns as soon as the answer begins. Whatever is not 2xx is thrown. */
  async open(call: Call): Promise<Opened> {
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

  async #once<T>(call: Call, reader: Reader<T>): Promise<T> {
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
    const what = `${this.#name(call)} got an answer that a MAIL server does not give: is ${this.url} the right address?`;
    throw new MailConnectionError("bad_answer", this.url, what, { cause: parsed.error });
  }

  async #refusal(call: Call, response: Response): Promise<MailClientError> {
    const text = await response.text().catch(() => "");
    const body = parseJson(text);
    const fields = ErrorBody.safeParse(body);
    const { detail, code, error, message } = fields.success ? fields.data : {};
    const nested = isObject(error) ? error : {};
    const said = [detail, message, nested.message, error].find((value) => typeof value === "string");
    return new MailClientError({
      request: this.#name(call),
      status: response.status,
      detail: typeof said === "string" ? said : describe(detail, text, response),
      code: [code, nested.code].find((value) => typeof value === "string"),
      retryAfter: retryAfterOf(response),
      body: body ?? text,
    });
  }

  /** Milliseconds to wait before trying again. */
  backoff(failures: number, error: unknown): number {
    return backoff(failures, error, this.#options.retryPause);
  }

  /** What went wrong, in the client's terms. */
  failure(error: unknown, call: Call, signal: AbortSignal): unknown {
    if (error instanceof MailClientError || error instanceof MailConnectionError) return error;
    // The reason of an abort is the caller's own, or our time limit.
    if (call.signal?.aborted === true) return call.signal.reason;
    if (signal.aborted && signal.reason instanceof MailConnectionError) return signal.reason;
    const reason = reasonOf(error);
    const message = `${this.#name(call)} got no answer (${reason}): is the server at ${this.url} running?`;
    return new MailConnectionError("unreachable", this.url, message, { cause: error });
  }

  #address(call: Call): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    const text = query.toString();
    return `${this.url}${call.path}${text === "" ? "" : `${call.path.includes("?") ? "&" : "?"}${text}`}`;
  }

  #headers(call: Call): Record<string, string> {
    const token = call.token ?? this.#options.token();
    return {
      accept: "application/json",
      ...(call.body !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(call.idempotencyKey !== undefined && { [IDEMPOTENCY]: call.idempotencyKey }),
      ...call.headers,
    };
  }

  #name(call: Call): string {
    return `${call.method} ${call.path}`;
  }
}

/** Every write has a key, so that it can be sent again. */
export function withKey(call: Call): Call {
  return call.method === "GET" ? call : { ...call, idempotencyKey: call.idempotencyKey ?? newKey() };
}

/** `crypto.randomUUID` is missing on pages that did not come over https. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function timedOut(request: string, url: string, limit: number): MailConnectionError {
  return new MailConnectionError("timeout", url, `${request} got no answer within ${limit} ms`);
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
  return text.trim().slice(0, 200) || response.statusText || "no reason given";
}

function retryAfterOf(response: Response): number | undefined {
  const header = response.headers.get("retry-after");
  if (header === null) return undefined;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000));
}

/** `fetch` hides the reason ("ECONNREFUSED") in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return "code" in cause ? String(cause.code) : cause.message;
  return error.message;
}
