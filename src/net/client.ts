/** The HTTP client of all modules: guarded, limited in time and size, with errors that give the reason. */
import type { Agent, Dispatcher } from "undici";
import type { Timers } from "../base/index.js";
import { guardedConnector, type Resolve, systemResolve } from "./connector.js";
import { NetError } from "./errors.js";
import { toNetError } from "./failures.js";
import type { Guard } from "./guard.js";
import { OutgoingRequest, timedOut } from "./outgoing-request.js";
import { type Hop, isRedirect, nextHop } from "./redirects.js";
import { connectionTls, type TlsOptions } from "./tls.js";

export interface RequestOptions {
  /** Default `GET`. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /**
   * Milliseconds: for `request` until the whole response has arrived, for `open` until its head has. Includes waiting
   * for a free connection, the resolver and the handshake. Default 30 s.
   */
  readonly timeLimit?: number;
  /** Default 4 MiB for `request`; `open` has no limit unless one is given. */
  readonly maxBytes?: number;
  /** Milliseconds without a byte of the body after which the request fails. Default 30 s; 0 waits forever. */
  readonly idleLimit?: number;
  readonly signal?: AbortSignal;
  /** Replaces the client's own. Connections are pooled per guard: create few guards and reuse them. */
  readonly guard?: Guard;
  /** Default 0: a redirect is returned like any response. */
  readonly maxRedirects?: number;
}

export interface HttpResponse {
  readonly status: number;
  /** Lower-case names; several values of one name are joined with a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** The final URL, after redirects. */
  readonly url: string;
  text(): string;
}

export interface HttpStream extends Omit<HttpResponse, "body" | "text"> {
  /** Must be read to its end or closed. Throws NetError when the connection breaks. */
  readonly body: AsyncIterable<Uint8Array>;
  close(): void;
}

export interface HttpClient {
  /** @throws NetError when there is no response; a response of any status is not an error */
  request(url: string | URL, options?: RequestOptions): Promise<HttpResponse>;
  /** Like `request`, but resolves as soon as status and headers have arrived. @throws NetError */
  open(url: string | URL, options?: RequestOptions): Promise<HttpStream>;
  /** Aborts running requests. */
  close(): Promise<void>;
}

export interface HttpClientOptions {
  readonly clock: Timers;
  readonly guard: Guard;
  readonly tls?: TlsOptions;
  readonly userAgent?: string;
  /** Speaks HTTP/2 with servers that offer nothing else. Default false. */
  readonly http2?: boolean;
  /** Connections to one origin. Default 16. */
  readonly connectionsPerOrigin?: number;
  /** Milliseconds for the resolver, and again for the connection with its handshake. Default 10 s. */
  readonly connectTimeLimit?: number;
  /** Default: the operating system's. */
  readonly resolve?: Resolve;
}

const DEFAULT_TIME_LIMIT = 30_000;
const DEFAULT_MAX_BYTES = 4 * 1024 * 1024;

/** @throws Error when the extra authority cannot be read */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { clock, userAgent = "mailroom", connectionsPerOrigin = 16, connectTimeLimit = 10_000 } = options;
  const { http2 = false } = options;
  const tls = connectionTls(options.tls);
  const resolve = options.resolve ?? systemResolve;
  // Connections are pooled per guard: a strict guard must not reuse a connection that a permissive one allowed.
  const agents = new Map<Guard, Agent>();
  let closed = false;

  function agentFor(guard: Guard, undici: typeof import("undici")): Agent {
    let agent = agents.get(guard);
    if (agent === undefined) {
      agent = new undici.Agent({
        connect: guardedConnector(undici.buildConnector, {
          guard,
          tls,
          resolve,
          connectTimeLimit,
          clock,
          http2,
        }),
        allowH2: http2,
        connections: connectionsPerOrigin,
        pipelining: 1,
      });
      agents.set(guard, agent);
    }
    return agent;
  }

  async function open(target: string | URL, request: RequestOptions = {}): Promise<HttpStream> {
    const {
      signal,
      timeLimit = DEFAULT_TIME_LIMIT,
      maxRedirects = 0,
      idleLimit = 30_000,
      maxBytes,
    } = request;
    const guard = request.guard ?? options.guard;
    const call = new OutgoingRequest(clock, timeLimit, signal);
    try {
      let hop = firstHop(target, request, userAgent);
      // Loaded with the first request: it is large, and many processes never make one.
      const undici = await import("undici");
      for (let redirects = 0; ; redirects += 1) {
        if (closed) throw new NetError("aborted", "the client is closed", { url: hop.url });
        const refusal = guard.checkUrl(hop.url);
        if (refusal !== undefined) throw new NetError(refusal.code, refusal.message, { url: hop.url });
        call.url = hop.url;
        call.signal.throwIfAborted();
        const asked = agentFor(guard, undici)
          .compose(marking(call))
          .request({
            origin: hop.url.origin,
            path: `${hop.url.pathname}${hop.url.search}`,
            method: hop.method,
            headers: hop.headers,
            body: hop.body ?? null,
            signal: call.signal,
            headersTimeout: timeLimit,
            bodyTimeout: idleLimit,
          });
        const answer = await call.whileItLasts(asked, discard);
        const headers = flatten(answer.headers);
        const location = headers.location;
        if (maxRedirects === 0 || !isRedirect(answer.statusCode, location)) {
          call.headArrived();
          return streamOf(call, answer, headers, maxBytes);
        }
        discard(answer);
        if (redirects >= maxRedirects) {
          throw new NetError("too_many_redirects", `more than ${maxRedirects} redirects`, { url: hop.url });
        }
        const following = nextHop(hop, answer.statusCode, location);
        if ("refusal" in following) {
          throw new NetError(following.refusal.code, following.refusal.message, { url: hop.url });
        }
        hop = following.next;
      }
    } catch (error) {
      call.end();
      throw toNetError(error, call);
    }
  }

  return {
    open,
    async request(target, request = {}) {
      const { timeLimit = DEFAULT_TIME_LIMIT, maxBytes = DEFAULT_MAX_BYTES } = request;
      const limit = new AbortController();
      const cancel = clock.after(timeLimit, () => limit.abort(timedOut(timeLimit)));
      const signal =
        request.signal === undefined ? limit.signal : AbortSignal.any([request.signal, limit.signal]);
      try {
        const stream = await open(target, { ...request, maxBytes, signal });
        const parts: Uint8Array[] = [];
        for await (const part of stream.body) parts.push(part);
        const body = Buffer.concat(parts);
        const { status, headers, url } = stream;
        return { status, headers, url, body, text: () => body.toString("utf8") };
      } finally {
        cancel();
      }
    },
    async close() {
      closed = true;
      await Promise.all([...agents.values()].map((agent) => agent.destroy()));
    },
  };
}

function firstHop(target: string | URL, request: RequestOptions, userAgent: string): Hop {
  if (typeof target === "string" && !URL.canParse(target)) {
    throw new NetError("invalid_url", "not a valid URL", { url: target });
  }
  return {
    url: new URL(target),
    method: request.method ?? "GET",
    headers: { "user-agent": userAgent, ...request.headers },
    body: request.body,
  };
}

/** Records when a request is about to be written to a socket. */
function marking(call: OutgoingRequest): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (request, handler) =>
    dispatch(request, {
      onRequestStart(controller, context) {
        call.sent = true;
        handler.onRequestStart?.(controller, context);
      },
      onRequestUpgrade: (...rest) => handler.onRequestUpgrade?.(...rest),
      onResponseStart: (...rest) => handler.onResponseStart?.(...rest),
      onResponseData: (...rest) => handler.onResponseData?.(...rest),
      onResponseEnd: (...rest) => handler.onResponseEnd?.(...rest),
      onResponseError: (...rest) => handler.onResponseError?.(...rest),
    });
}

function streamOf(
  call: OutgoingRequest,
  answer: Dispatcher.ResponseData,
  headers: Record<string, string>,
  maxBytes: number | undefined,
): HttpStream {
  const url = call.url?.href ?? "";
  const tooLarge = (): NetError =>
    new NetError("response_too_large", `the response is longer than ${maxBytes} bytes`, {
      url,
      mayHaveArrived: true,
    });
  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      if (maxBytes !== undefined && Number(headers["content-length"] ?? 0) > maxBytes) throw tooLarge();
      let bytes = 0;
      for await (const part of answer.body) {
        if (!(part instanceof Uint8Array)) continue;
        bytes += part.byteLength;
        if (maxBytes !== undefined && bytes > maxBytes) throw tooLarge();
        yield part;
      }
    } catch (error) {
      throw toNetError(error, call);
    } finally {
      call.end();
      discard(answer);
    }
  }
  return {
    status: answer.statusCode,
    headers,
    url,
    body: read(),
    close: () => {
      call.end();
      discard(answer);
    },
  };
}

/** Closing early is intended: nothing to report. */
function discard(answer: Dispatcher.ResponseData): void {
  answer.body.on("error", () => undefined).destroy();
}

function flatten(headers: Dispatcher.ResponseData["headers"]): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return flat;
}
