/**
 * Every way in which a request can be refused: one table from code to status and meaning. `detail` says it in words,
 * `code` is what programs decide by. Nothing internal ever leaves: what is not in the table is an `internal_error`.
 */
import { RowConflictError } from "../engine/ports.js";
import { RuntimeError, type RuntimeErrorCode } from "../engine/runtime/index.js";
import { FederationError, type FederationErrorCode } from "../federation/errors.js";
import { SwarmFileError } from "../mail/swarm-file/problems.js";

export interface ErrorRow {
  readonly status: number;
  readonly meaning: string;
  /** Seconds after which trying again makes sense. */
  readonly retryAfter?: number;
}

export const ERRORS = {
  bad_request: {
    status: 400,
    meaning: "The request is malformed; `field` names the part, where there is one.",
  },
  bad_json: {
    status: 400,
    meaning: "The body is not JSON (`line` and `column` say where), or nested too deeply.",
  },
  bad_url: { status: 400, meaning: "The URL cannot be decoded." },
  bad_input: { status: 400, meaning: "A value cannot be used." },
  bad_answer: { status: 400, meaning: "An answer needs a tool call or text." },
  bad_swarm_file: { status: 400, meaning: "The swarm is not valid; `problems` lists what is wrong." },
  unknown_agent: { status: 400, meaning: "There is no such agent." },
  not_entrypoint: {
    status: 400,
    meaning: "The agent takes no mail from people; `entrypoints` lists those that do.",
  },
  missing_results: { status: 400, meaning: "Open calls were left without a result; `missing` lists them." },
  unknown_calls: {
    status: 400,
    meaning: "Results were given for calls that are not open; `unknown` lists them.",
  },
  unauthenticated: { status: 401, meaning: "No credential, or none that anybody vouches for." },
  invalid_role: { status: 401, meaning: "The caller's role may not do this (routes of the MAIL protocol)." },
  forbidden: { status: 403, meaning: "The caller's role may not do this (Mailroom's own routes)." },
  foreign_origin: {
    status: 403,
    meaning: "In development mode only pages and names of this machine are served.",
  },
  not_found: { status: 404, meaning: "There is no such path." },
  unknown_task: { status: 404, meaning: "The caller has no such task." },
  method_not_allowed: { status: 405, meaning: "The path exists, but not for this method; see `Allow`." },
  wrong_state: { status: 409, meaning: "The task's state does not allow this." },
  not_paused: { status: 409, meaning: "The task waits for no breakpoint result." },
  not_manual: { status: 409, meaning: "The task does not run in manual mode." },
  already_ended: { status: 409, meaning: "The task has ended already." },
  owner_mismatch: { status: 409, meaning: "The task has another owner." },
  bad_wrapper: { status: 400, meaning: "The interswarm message is malformed; `errors` lists what is wrong." },
  wrong_swarm: { status: 400, meaning: "The message is for another swarm." },
  too_many_hops: { status: 400, meaning: "The message has come through too many swarms." },
  bad_swarm_name: { status: 400, meaning: "No other swarm can have this name." },
  bad_swarm_url: { status: 400, meaning: "A swarm cannot be reached at this URL, or may not be." },
  name_differs: { status: 400, meaning: "The swarm at this URL has another name." },
  peer_mismatch: { status: 401, meaning: "The message names another sender than its token." },
  bad_signature: {
    status: 401,
    meaning: "The message's signature is missing or wrong; `reason` says which.",
  },
  unknown_recipient: { status: 404, meaning: "No agent here has the name that the message is addressed to." },
  unknown_swarm: { status: 404, meaning: "No such swarm is registered." },
  unknown_proposal: { status: 404, meaning: "No such swarm was proposed." },
  too_many_requests: {
    status: 429,
    meaning: "The caller, its address or the peer sends more than it may.",
    retryAfter: 10,
  },
  task_exists: { status: 409, meaning: "The task id is taken." },
  busy: { status: 409, meaning: "The agent is in the middle of a step." },
  stale_turn: { status: 409, meaning: "The turn is over." },
  stale_attempt: { status: 409, meaning: "The message was lent again, answered or withdrawn." },
  no_mail: { status: 409, meaning: "No mail is waiting for the agent." },
  write_conflict: { status: 409, meaning: "Something else was written at the same moment; try again." },
  swarm_name_differs: { status: 409, meaning: "A swarm can only be replaced by one of the same name." },
  too_large: { status: 413, meaning: "The body is larger than the server takes." },
  unsupported_media_type: { status: 415, meaning: "Bodies are JSON; send `content-type: application/json`." },
  idempotency_key_reused: { status: 422, meaning: "The idempotency key was used with another request." },
  too_many_failures: {
    status: 429,
    meaning: "Too many failed authentications from this address.",
    retryAfter: 60,
  },
  internal_error: { status: 500, meaning: "Something broke; `request_id` finds it in the server's log." },
  mailbox_full: { status: 503, meaning: "Too many messages wait for the agent.", retryAfter: 5 },
  overloaded: { status: 503, meaning: "A limit of the server is reached.", retryAfter: 1 },
  store_busy: {
    status: 503,
    meaning: "Too much waits to be written, or nothing can be written for the moment.",
    retryAfter: 1,
  },
  store_failed: {
    status: 503,
    meaning: "The server cannot write any more until it is restarted.",
    retryAfter: 5,
  },
  closed: { status: 503, meaning: "The server is shutting down.", retryAfter: 5 },
  auth_unavailable: { status: 503, meaning: "Whoever vouches for callers does not answer.", retryAfter: 5 },
  no_registry: { status: 503, meaning: "This server keeps no registry of other swarms.", retryAfter: 3600 },
} as const satisfies Record<string, ErrorRow> & Record<RuntimeErrorCode | FederationErrorCode, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code: ErrorCode;
  /** More of the body, beside `detail` and `code`. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  constructor(
    code: ErrorCode,
    detail: string,
    more: {
      readonly details?: Readonly<Record<string, unknown>>;
      readonly headers?: Readonly<Record<string, string>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(detail, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.details = more.details ?? {};
    this.headers = more.headers ?? {};
  }
}

export interface ErrorBody {
  readonly detail: string;
  readonly code: ErrorCode;
  readonly [more: string]: unknown;
}

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
}

export function errorAnswer(error: HttpError): ErrorAnswer {
  const row: ErrorRow = ERRORS[error.code];
  return {
    status: row.status,
    headers: {
      ...(row.retryAfter !== undefined && { "retry-after": String(row.retryAfter) }),
      ...error.headers,
    },
    body: { detail: error.message, code: error.code, ...error.details },
  };
}

/** What the rooms behind the door throw, in the words of the table. Undefined for what nobody expected. */
export function asHttpError(error: unknown): HttpError | undefined {
  if (error instanceof HttpError) return error;
  const ofStore = fromStore(error);
  if (ofStore !== undefined) return ofStore;
  if (error instanceof RuntimeError) {
    return new HttpError(error.code, error.message, { details: error.details ?? {}, cause: error });
  }
  if (error instanceof FederationError) {
    return new HttpError(error.code, error.message, { details: error.details, cause: error });
  }
  if (error instanceof SwarmFileError) {
    return new HttpError("bad_swarm_file", error.message, { details: { problems: error.problems } });
  }
  if (error instanceof RowConflictError) {
    return new HttpError("write_conflict", "something else was written at the same moment: try again", {
      cause: error,
    });
  }
  return fromFramework(error);
}

/**
 * Stores are known by their codes alone: which one it is, is not this room's business. What happened to the disk is told
 * by `/health` and the log.
 */
function fromStore(error: unknown): HttpError | undefined {
  switch (codeOf(error)) {
    case "store_busy":
      return new HttpError(
        "store_busy",
        "the server cannot take more to write at the moment: try again later",
        {
          cause: error,
        },
      );
    case "store_failed":
      return new HttpError("store_failed", "the server cannot write any more until it is restarted", {
        cause: error,
      });
    case "store_closed":
      return new HttpError("closed", "the server is shutting down", { cause: error });
    default:
      return undefined;
  }
}

function fromFramework(error: unknown): HttpError | undefined {
  switch (codeOf(error)) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new HttpError("too_large", "the body is larger than this server takes");
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new HttpError(
        "unsupported_media_type",
        "bodies are JSON: send 'content-type: application/json'",
      );
    case "FST_ERR_BAD_URL":
    case "FST_ERR_MAX_PARAM_LENGTH":
      return new HttpError("bad_url", "the URL cannot be read");
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return new HttpError("bad_request", "the body is not as long as 'content-length' says");
    default:
      return undefined;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
