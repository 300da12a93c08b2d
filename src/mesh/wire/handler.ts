/**
 * ASP: Required Endpoints. The four routes as a function from a request to an answer: what carries them (our own
 * listener, a test, another framework) is not its business.
 */
import { isDeeperThan } from "../../mail/depth.js";
import { type Refusal, refuse, WIRE_STATUS } from "../errors.js";
import { RateLimiter, type Standing } from "../limits.js";
import { tookMastership } from "../membership/lifecycle.js";
import { isRecord } from "../message/extras.js";
import { ASP_VERSION, LIMITS, MESSAGE_TYPES } from "../message/types.js";
import type { MeshNode } from "../node.js";
import { formatTime } from "../time.js";
import { networkOf } from "./address.js";

/** What is known of a request before its body has come. */
export interface RequestHead {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly address: string;
}

export interface MeshRequest extends RequestHead {
  /** At most `LIMITS.bodyBytes`; the carrier cuts longer ones off. */
  readonly body: Uint8Array;
}

export interface MeshResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface MeshHandler {
  (request: MeshRequest): Promise<MeshResponse>;
  /** The answer, where it does not depend on the body: then nobody needs to read that. */
  readonly early?: (head: RequestHead) => MeshResponse | undefined;
}

type Handle = (request: MeshRequest) => Promise<MeshResponse>;
/** What is posted has a body, what is got has none. */
type Route =
  | { readonly method: "POST"; readonly handle: Handle }
  | { readonly method: "GET"; readonly handle: () => MeshResponse };
/** What the head of a request decides: the answer, or who makes it from the body. */
type Judged = { readonly answer: MeshResponse } | { readonly handle: Handle };

export function createMeshHandler(node: MeshNode): MeshHandler {
  const { identity, options, report } = node.core.parts;
  const failures = new RateLimiter(options.rateLimits.failure);
  const routes: Readonly<Record<string, Route>> = {
    "/swarm/message": { method: "POST", handle: (request) => postMessage(node, request) },
    "/swarm/join": { method: "POST", handle: (request) => postJoin(node, request) },
    "/swarm/health": {
      method: "GET",
      handle: () =>
        answer(200, {
          status: "healthy",
          agent_id: identity.agentId,
          protocol_version: ASP_VERSION,
          timestamp: formatTime(node.core.now),
          message: null,
        }),
    },
    "/swarm/info": {
      method: "GET",
      handle: () =>
        answer(200, {
          agent_id: identity.agentId,
          endpoint: identity.endpoint,
          public_key: node.core.pair.publicKey.text,
          protocol_version: ASP_VERSION,
          capabilities: MESSAGE_TYPES,
          metadata: options.metadata ?? null,
        }),
    },
  };

  const judge = (head: RequestHead): Judged => {
    const path = head.path.replace(/(?<=.)\/+$/u, "");
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) return { answer: refused(NOT_FOUND) };
    if (head.method !== route.method) {
      const { refusal } = refuse("METHOD_NOT_ALLOWED", "wrong_method", `this route takes ${route.method}`);
      return { answer: { ...refused(refusal), headers: { ...JSON_HEADERS, allow: route.method } } };
    }
    const caller = networkOf(head.address);
    const standing = failures.look(caller, node.core.now);
    if (!standing.allowed) return { answer: refused(tooMany(standing, node.core.now), standing) };
    if (route.method === "GET") return { answer: route.handle() };
    if (Number(head.headers["content-length"] ?? 0) <= LIMITS.bodyBytes) return route;
    failures.take(caller, node.core.now);
    return { answer: refused(TOO_LARGE) };
  };

  const early = (head: RequestHead): MeshResponse | undefined => {
    const judged = judge(head);
    return "answer" in judged ? judged.answer : undefined;
  };

  const handle = async (request: MeshRequest): Promise<MeshResponse> => {
    const judged = judge(request);
    if ("answer" in judged) return judged.answer;
    try {
      const response = await judged.handle(request);
      if (response.status >= 400 && response.status !== 429) {
        failures.take(networkOf(request.address), node.core.now);
      }
      return response;
    } catch (cause) {
      if (isStoreBusy(cause)) return refused(STORE_BUSY);
      // What went wrong in here is nobody's business out there.
      report({ code: "mesh_request_failed", message: `${request.method} ${request.path} failed`, cause });
      return refused(INTERNAL_ERROR);
    }
  };
  return Object.assign(handle, { early });
}

const NOT_FOUND = refuse("NOT_FOUND", "not_found", "there is nothing here").refusal;
const TOO_LARGE = refuse(
  "TOO_LARGE",
  "too_large",
  `the body is longer than ${LIMITS.bodyBytes} bytes`,
).refusal;
const INTERNAL_ERROR = refuse("INTERNAL_ERROR", "internal_error", "something went wrong here").refusal;

const STORE_BUSY = refuse("UNAVAILABLE", "store_busy", "nothing can be written here at the moment", {
  retryAfter: 1,
}).refusal;

function isStoreBusy(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "store_busy";
}

/** For the carrier, when it has no room for a body. */
export function overloaded(): MeshResponse {
  return refused(
    refuse("UNAVAILABLE", "overloaded", "too many requests are being read", { retryAfter: 5 }).refusal,
  );
}

async function postMessage(node: MeshNode, request: MeshRequest): Promise<MeshResponse> {
  const parsed = parseBody(request);
  if ("refusal" in parsed) return refused(parsed.refusal);
  const reception = await node.receive(parsed.value, {
    agentId: request.headers["x-agent-id"],
    protocol: request.headers["x-swarm-protocol"],
    bytes: request.body.length,
  });
  if ("refusal" in reception) return refused(reception.refusal, reception.standing);
  // As the sender spelled it: that is what it looks for.
  const spelled = isRecord(parsed.value) ? parsed.value.message_id : reception.message.message_id;
  const { message, standing } = reception;
  const accepted = tookMastership(message, node.core.view.swarms.get(message.swarm_id));
  const status = accepted ? "accepted" : "queued";
  return answer(200, { status, message_id: spelled }, rateHeaders(standing));
}

async function postJoin(node: MeshNode, request: MeshRequest): Promise<MeshResponse> {
  const parsed = parseBody(request);
  if ("refusal" in parsed) return refused(parsed.refusal);
  const reception = await node.receiveJoin(parsed.value, networkOf(request.address));
  if ("refusal" in reception) return refused(reception.refusal, reception.standing);
  const status = reception.kind === "accepted" ? 200 : 202;
  return answer(status, reception.body, rateHeaders(reception.standing));
}

const decoder = new TextDecoder("utf-8", { fatal: true });

function parseBody({ body }: MeshRequest): { readonly value: unknown } | { readonly refusal: Refusal } {
  if (body.length > LIMITS.bodyBytes) return { refusal: TOO_LARGE };
  try {
    const value: unknown = JSON.parse(decoder.decode(body));
    if (isDeeperThan(LIMITS.jsonDepth, value))
      return refuse("INVALID_FORMAT", "invalid_format", "the JSON is too deep");
    return { value };
  } catch {
    return refuse("INVALID_FORMAT", "invalid_format", "the body is not JSON in UTF-8");
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

/** Always the object form: some clients break on any other. Never an echo of what was sent. */
function refused({ code, message, details, retryAfter }: Refusal, standing?: Standing): MeshResponse {
  return answer(
    WIRE_STATUS[code],
    { error: { code, message, ...(details !== undefined && { details }) } },
    {
      ...(standing === undefined ? JSON_HEADERS : rateHeaders(standing)),
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    },
  );
}

function rateHeaders({ limit, remaining, resetAt }: Standing): Readonly<Record<string, string>> {
  return {
    "content-type": JSON_HEADERS["content-type"],
    "cache-control": JSON_HEADERS["cache-control"],
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(Math.max(0, remaining)),
    "x-ratelimit-reset": String(Math.ceil(resetAt / 1_000)),
  };
}

function tooMany({ resetAt }: Standing, now: number): Refusal {
  const retryAfter = Math.max(1, Math.ceil((resetAt - now) / 1_000));
  return refuse("RATE_LIMITED", "rate_limited", "too many refused requests", { retryAfter }).refusal;
}
