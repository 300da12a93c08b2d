/** ASP: Required Endpoints. The four routes as a function from request to response, independent of the listener. */
import { z } from "zod";
import { isRecord, JsonDepthError, parseJson, retryAfterSeconds } from "../../base/index.js";
import {
  ASP_VERSION,
  acceptedMastership,
  formatTime,
  LIMITS,
  type LimitStatus,
  MESSAGE_TYPES,
  type MeshAgent,
  RateLimiter,
  refuse,
  WIRE_STATUS,
  type WireRefusal,
  withoutTrailingSlashes,
} from "../../mesh/index.js";

import { networkOf } from "./client-address.js";

/** The part of a request that is available before its body. */
export interface RequestHead {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly address: string;
}

export interface MeshRequest extends RequestHead {
  /** At most `LIMITS.bodyBytes`; the listener truncates longer bodies. */
  readonly body: Uint8Array;
}

export interface MeshResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface MeshHandler {
  (request: MeshRequest): Promise<MeshResponse>;
  /** Returns the response if it does not depend on the body, so that the body need not be read. */
  readonly early?: (head: RequestHead) => MeshResponse | undefined;
}

type Handle = (request: MeshRequest) => Promise<MeshResponse>;
/** POST routes have a body, GET routes have none. */
type Route =
  | { readonly method: "POST"; readonly handle: Handle }
  | { readonly method: "GET"; readonly handle: () => MeshResponse };
/** The result of checking the head of a request: a response, or the function that handles the body. */
type HeadCheck = { readonly answer: MeshResponse } | { readonly handle: Handle };

export function createMeshHandler(agent: MeshAgent): MeshHandler {
  const { options, report } = agent.context.parts;
  const log = refusalLog(agent.context);
  const failures = new RateLimiter(options.rateLimits.failure);
  const routes: Readonly<Record<string, Route>> = {
    "/swarm/message": { method: "POST", handle: (request) => postMessage(agent, request) },
    "/swarm/join": { method: "POST", handle: (request) => postJoin(agent, request) },
    "/swarm/health": {
      method: "GET",
      handle: () =>
        answer(200, {
          status: "healthy",
          agent_id: agent.id,
          protocol_version: ASP_VERSION,
          timestamp: formatTime(agent.context.now),
          message: null,
        }),
    },
    "/swarm/info": {
      method: "GET",
      handle: () =>
        answer(200, {
          agent_id: agent.id,
          endpoint: agent.context.identity.endpoint,
          public_key: agent.context.pair.publicKey.text,
          protocol_version: ASP_VERSION,
          capabilities: MESSAGE_TYPES,
          metadata: options.metadata ?? null,
        }),
    },
  };

  const checkHead = (head: RequestHead): HeadCheck => {
    const caller = networkOf(head.address);
    const limit = failures.check(caller, agent.context.now);
    if (!limit.allowed) return { answer: refused(tooMany(limit, agent.context.now), limit) };
    const path = head.path.length > LONGEST_PATH ? "" : withoutTrailingSlashes(head.path);
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) {
      failures.consume(caller, agent.context.now);
      return { answer: refused(NOT_FOUND) };
    }
    if (head.method !== route.method) {
      failures.consume(caller, agent.context.now);
      const { refusal } = refuse(
        "METHOD_NOT_ALLOWED",
        "wrong_method",
        `this route accepts ${route.method} only`,
      );
      return { answer: { ...refused(refusal), headers: { ...JSON_HEADERS, allow: route.method } } };
    }
    if (route.method === "GET") return { answer: route.handle() };
    if (Number(head.headers["content-length"] ?? 0) <= LIMITS.bodyBytes) return route;
    failures.consume(caller, agent.context.now);
    return { answer: refused(TOO_LARGE) };
  };

  const early = (head: RequestHead): MeshResponse | undefined => {
    const checked = checkHead(head);
    return "answer" in checked ? checked.answer : undefined;
  };

  const handle = async (request: MeshRequest): Promise<MeshResponse> => {
    const checked = checkHead(request);
    if ("answer" in checked) return checked.answer;
    try {
      const response = await checked.handle(request);
      if (response.status >= 400) log(request, response);
      if (response.status >= 400 && response.status !== 429) {
        failures.consume(networkOf(request.address), agent.context.now);
      }
      return response;
    } catch (cause) {
      if (isStoreBusy(cause)) return refused(STORE_BUSY);
      failures.consume(networkOf(request.address), agent.context.now);
      // Internal failures are reported locally and not disclosed to the peer.
      report({ code: "mesh_request_failed", message: `${request.method} ${request.path} failed`, cause });
      return refused(INTERNAL_ERROR);
    }
  };
  return Object.assign(handle, { early });
}

/**
 * The operator of a sender that is refused asks the operator of the receiver why. Unauthenticated peers must not fill the log: each
 * caller and reason is logged once a minute, and 60 of them in total.
 */
function refusalLog({ parts }: MeshAgent["context"]): (request: MeshRequest, response: MeshResponse) => void {
  const each = new RateLimiter({ count: 1, window: 60_000 }, 1_000);
  const all = new RateLimiter({ count: 60, window: 60_000 });
  return ({ path, headers, address }, { status, body }) => {
    const now = parts.clock.now();
    const { error } = RefusalBody.parse(JSON.parse(body));
    const reason = `${error.code}: ${error.message}`.slice(0, 300);
    if (!each.consume(`${networkOf(address)} ${reason}`, now).allowed || !all.consume("", now).allowed)
      return;
    // Chosen by the caller: shortened, and on one line.
    const claimed = (headers["x-agent-id"] ?? "an unnamed agent")
      .slice(0, 256)
      .replace(/[^\x20-\x7e]/gu, "?");
    parts.report({
      code: "mesh_request_refused",
      message: `refused ${path} from ${claimed} at ${address} with ${status} ${reason}`,
    });
  };
}

const RefusalBody = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

/** Characters. No route is longer, and a longer path is not worth looking at. */
const LONGEST_PATH = 100;

const NOT_FOUND = refuse("NOT_FOUND", "not_found", "unknown route").refusal;
const TOO_LARGE = refuse("TOO_LARGE", "too_large", `the body exceeds ${LIMITS.bodyBytes} bytes`).refusal;
const INTERNAL_ERROR = refuse("INTERNAL_ERROR", "internal_error", "internal error").refusal;

const STORE_BUSY = refuse("UNAVAILABLE", "store_busy", "the store cannot accept writes at the moment", {
  retryAfter: 1,
}).refusal;

function isStoreBusy(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "store_busy";
}

/** The listener's response when there is no memory for a body. */
export function overloaded(): MeshResponse {
  return refused(
    refuse("UNAVAILABLE", "overloaded", "too many requests in progress", { retryAfter: 5 }).refusal,
  );
}

async function postMessage(agent: MeshAgent, request: MeshRequest): Promise<MeshResponse> {
  const parsed = parseBody(request);
  if ("refusal" in parsed) return refused(parsed.refusal);
  const reception = await agent.receive(parsed.value, {
    agentId: request.headers["x-agent-id"],
    protocol: request.headers["x-swarm-protocol"],
    bytes: request.body.length,
  });
  if ("refusal" in reception) return refused(reception.refusal, reception.limit);
  // In the sender's spelling, which is what the sender compares with.
  const spelled = isRecord(parsed.value) ? parsed.value.message_id : reception.message.message_id;
  const { message, limit } = reception;
  const accepted = acceptedMastership(message, agent.context.view.swarms.get(message.swarm_id), agent.id);
  const status = accepted ? "accepted" : "queued";
  return answer(200, { status, message_id: spelled }, rateHeaders(limit));
}

async function postJoin(agent: MeshAgent, request: MeshRequest): Promise<MeshResponse> {
  const parsed = parseBody(request);
  if ("refusal" in parsed) return refused(parsed.refusal);
  const reception = await agent.receiveJoin(parsed.value, networkOf(request.address));
  if ("refusal" in reception) return refused(reception.refusal, reception.limit);
  const status = reception.kind === "accepted" ? 200 : 202;
  return answer(status, reception.body, rateHeaders(reception.limit));
}

const decoder = new TextDecoder("utf-8", { fatal: true });

function parseBody({ body }: MeshRequest): { readonly value: unknown } | { readonly refusal: WireRefusal } {
  if (body.length > LIMITS.bodyBytes) return { refusal: TOO_LARGE };
  try {
    return { value: parseJson(decoder.decode(body)) };
  } catch (error) {
    if (error instanceof JsonDepthError)
      return refuse("INVALID_FORMAT", "invalid_format", `the body is ${error.message}`);
    return refuse("INVALID_FORMAT", "invalid_format", "the body is not UTF-8 encoded JSON");
  }
}

const JSON_HEADERS = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" };

function answer(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = JSON_HEADERS,
): MeshResponse {
  return { status, headers, body: JSON.stringify(body) };
}

/** Errors always use the object form, because some clients fail on any other. The request is never echoed. */
function refused({ code, message, details, retryAfter }: WireRefusal, limit?: LimitStatus): MeshResponse {
  return answer(
    WIRE_STATUS[code],
    { error: { code, message, ...(details !== undefined && { details }) } },
    {
      ...(limit === undefined ? JSON_HEADERS : rateHeaders(limit)),
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    },
  );
}

function rateHeaders({ limit, remaining, resetAt }: LimitStatus): Readonly<Record<string, string>> {
  return {
    "content-type": JSON_HEADERS["content-type"],
    "cache-control": JSON_HEADERS["cache-control"],
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(Math.max(0, remaining)),
    "x-ratelimit-reset": String(Math.ceil(resetAt / 1_000)),
  };
}

function tooMany({ resetAt }: LimitStatus, now: number): WireRefusal {
  const retryAfter = retryAfterSeconds(resetAt - now);
  return refuse("RATE_LIMITED", "rate_limited", "too many refused requests", { retryAfter }).refusal;
}
