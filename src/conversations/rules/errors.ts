/** Every error of the protocol: number, category, and whether a retry can help (REF-28). */
import { describeError, MailroomError, type MailroomErrorOptions } from "../../base/index.js";

export type ErrorCategory =
  | "protocol"
  | "auth"
  | "routing"
  | "agent"
  | "resource"
  | "federation"
  | "mail"
  | "internal";

interface ErrorRow {
  readonly code: number;
  readonly category: ErrorCategory;
  readonly message: string;
  readonly retryable?: true;
}

export const MAP_ERRORS = {
  PARSE_ERROR: { code: -32700, category: "protocol", message: "the frame is not valid JSON" },
  INVALID_REQUEST: { code: -32600, category: "protocol", message: "not a JSON-RPC 2.0 request" },
  METHOD_NOT_FOUND: { code: -32601, category: "protocol", message: "unknown method" },
  INVALID_PARAMS: { code: -32602, category: "protocol", message: "invalid parameters" },
  INTERNAL_ERROR: {
    code: -32603,
    category: "internal",
    message: "internal error; see the server's log",
  },
  AUTH_REQUIRED: { code: 1000, category: "auth", message: "call map/connect first" },
  AUTH_FAILED: { code: 1001, category: "auth", message: "authentication failed" },
  TOKEN_EXPIRED: { code: 1002, category: "auth", message: "the credential has expired" },
  PERMISSION_DENIED: { code: 1003, category: "auth", message: "permission denied" },
  ADDRESS_NOT_FOUND: { code: 2000, category: "routing", message: "unknown address" },
  AGENT_NOT_FOUND: { code: 2001, category: "routing", message: "unknown agent" },
  SCOPE_NOT_FOUND: { code: 2002, category: "routing", message: "unknown scope" },
  AGENT_EXISTS: { code: 3000, category: "agent", message: "the agent id is taken" },
  STATE_INVALID: { code: 3001, category: "agent", message: "invalid agent state" },
  EXHAUSTED: { code: 4000, category: "resource", message: "the server is busy", retryable: true },
  RATE_LIMITED: { code: 4001, category: "resource", message: "too many requests", retryable: true },
  QUOTA_EXCEEDED: { code: 4002, category: "resource", message: "limit reached", retryable: true },
  FEDERATION_UNAVAILABLE: {
    code: 5000,
    category: "federation",
    message: "this server does not route to other MAP systems",
  },
  CONVERSATION_NOT_FOUND: { code: 10000, category: "mail", message: "unknown conversation" },
  CONVERSATION_CLOSED: { code: 10001, category: "mail", message: "the conversation is closed" },
  NOT_A_PARTICIPANT: {
    code: 10002,
    category: "mail",
    message: "the caller is not a member of the conversation",
  },
  MAIL_PERMISSION_DENIED: { code: 10003, category: "mail", message: "permission denied" },
  PARTICIPANT_ALREADY_JOINED: {
    code: 10004,
    category: "mail",
    message: "the participant is already a member",
  },
  PARTICIPANT_NOT_FOUND: {
    code: 10005,
    category: "mail",
    message: "no member of the conversation has this id",
  },
  TURN_NOT_FOUND: { code: 10006, category: "mail", message: "unknown turn" },
  THREAD_NOT_FOUND: { code: 10007, category: "mail", message: "unknown thread" },
  INVALID_CONTENT_TYPE: {
    code: 10008,
    category: "mail",
    message: "invalid content type; use text, data, event, reference or x-<name>",
  },
  THREAD_NESTING_LIMIT: { code: 10009, category: "mail", message: "threads are nested too deeply" },
  MAIL_NOT_ENABLED: { code: 10010, category: "mail", message: "mail is switched off on this server" },
} as const satisfies Record<string, ErrorRow>;

export type MapErrorName = keyof typeof MAP_ERRORS;

const MAP_ERROR_NAMES = Object.keys(MAP_ERRORS).filter(isMapErrorName);

function isMapErrorName(text: string): text is MapErrorName {
  return Object.hasOwn(MAP_ERRORS, text);
}

export interface WireError {
  readonly code: number;
  readonly message: string;
  readonly data: {
    readonly category: ErrorCategory;
    readonly retryable: boolean;
    readonly retryAfterMs?: number;
    readonly details: Readonly<Record<string, unknown>> & { readonly name: MapErrorName };
  };
}

/** The request was rejected; no state changed. */
export class MapError extends MailroomError<MapErrorName> {
  override readonly name = "MapError";

  /** The code is stable, and on the wire as `data.details.name`: numbers differ between implementations (REF-28). */
  constructor(
    code: MapErrorName,
    message?: string,
    details: Readonly<Record<string, unknown>> = {},
    more: Pick<MailroomErrorOptions, "retryAfter" | "cause"> = {},
  ) {
    super(code, message ?? MAP_ERRORS[code].message, { details, ...more });
  }

  toWire(): WireError {
    const row: ErrorRow = MAP_ERRORS[this.code];
    return {
      code: row.code,
      message: this.message,
      data: {
        category: row.category,
        retryable: row.retryable === true,
        ...(this.retryAfter !== undefined && { retryAfterMs: this.retryAfter }),
        details: { ...this.details, name: this.code },
      },
    };
  }
}

const NAMES: ReadonlyMap<number, MapErrorName> = new Map(
  MAP_ERROR_NAMES.map((name) => [MAP_ERRORS[name].code, name]),
);

/** Translates an error of another module; its row in the error table gives the protocol's number. */
export function fromMailroomError(error: MailroomError): MapError {
  const { message, code, details, retryAfter } = error;
  const name = NAMES.get(describeError(code).jsonRpc) ?? "INTERNAL_ERROR";
  return new MapError(name, message, { ...details, reason: code }, { retryAfter, cause: error });
}

export function denied(reason: string): MapError {
  return new MapError("MAIL_PERMISSION_DENIED", reason);
}
