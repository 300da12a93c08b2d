/** Every error of the protocol, once: its number, its family, and whether trying again can help (map-mail 1.6). */

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
  METHOD_NOT_FOUND: { code: -32601, category: "protocol", message: "there is no such method" },
  INVALID_PARAMS: { code: -32602, category: "protocol", message: "invalid parameters" },
  INTERNAL_ERROR: {
    code: -32603,
    category: "internal",
    message: "internal error; the server's log says more",
  },
  AUTH_REQUIRED: { code: 1000, category: "auth", message: "call map/connect first" },
  AUTH_FAILED: { code: 1001, category: "auth", message: "authentication failed" },
  TOKEN_EXPIRED: { code: 1002, category: "auth", message: "the credential has expired" },
  PERMISSION_DENIED: { code: 1003, category: "auth", message: "permission denied" },
  ADDRESS_NOT_FOUND: { code: 2000, category: "routing", message: "nobody has this address" },
  AGENT_NOT_FOUND: { code: 2001, category: "routing", message: "there is no such agent" },
  SCOPE_NOT_FOUND: { code: 2002, category: "routing", message: "there is no such scope" },
  AGENT_EXISTS: { code: 3000, category: "agent", message: "the agent id is taken" },
  STATE_INVALID: { code: 3001, category: "agent", message: "not a state of an agent" },
  EXHAUSTED: { code: 4000, category: "resource", message: "the server is busy", retryable: true },
  RATE_LIMITED: { code: 4001, category: "resource", message: "too many requests", retryable: true },
  QUOTA_EXCEEDED: { code: 4002, category: "resource", message: "a limit is reached", retryable: true },
  FEDERATION_UNAVAILABLE: {
    code: 5000,
    category: "federation",
    message: "this server does not route to other MAP systems",
  },
  CONVERSATION_NOT_FOUND: { code: 10000, category: "mail", message: "there is no such conversation" },
  CONVERSATION_CLOSED: { code: 10001, category: "mail", message: "the conversation is closed" },
  NOT_A_PARTICIPANT: {
    code: 10002,
    category: "mail",
    message: "the caller is no member of the conversation",
  },
  MAIL_PERMISSION_DENIED: { code: 10003, category: "mail", message: "permission denied" },
  PARTICIPANT_ALREADY_JOINED: {
    code: 10004,
    category: "mail",
    message: "the participant is a member already",
  },
  PARTICIPANT_NOT_FOUND: {
    code: 10005,
    category: "mail",
    message: "no member of the conversation has this id",
  },
  TURN_NOT_FOUND: { code: 10006, category: "mail", message: "there is no such turn" },
  THREAD_NOT_FOUND: { code: 10007, category: "mail", message: "there is no such thread" },
  INVALID_CONTENT_TYPE: {
    code: 10008,
    category: "mail",
    message: "a content type is text, data, event, reference, or x- and a name",
  },
  THREAD_NESTING_LIMIT: { code: 10009, category: "mail", message: "threads are nested too deep" },
  MAIL_NOT_ENABLED: { code: 10010, category: "mail", message: "mail is switched off on this server" },
} as const satisfies Record<string, ErrorRow>;

export type MapErrorName = keyof typeof MAP_ERRORS;

export interface WireError {
  readonly code: number;
  readonly message: string;
  readonly data: {
    readonly category: ErrorCategory;
    readonly retryable: boolean;
    readonly details: Readonly<Record<string, unknown>> & { readonly name: MapErrorName };
  };
}

/** Something that was asked for and not done. Nothing has changed. */
export class MapError extends Error {
  override readonly name = "MapError";
  /** Stable, and on the wire as `data.details.name`: the numbers differ between sources (map-mail 6.1). */
  readonly code: MapErrorName;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: MapErrorName, message?: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message ?? MAP_ERRORS[code].message);
    this.code = code;
    this.details = details;
  }

  toWire(): WireError {
    const row: ErrorRow = MAP_ERRORS[this.code];
    return {
      code: row.code,
      message: this.message,
      data: {
        category: row.category,
        retryable: row.retryable === true,
        details: { ...this.details, name: this.code },
      },
    };
  }
}

export function denied(reason: string): MapError {
  return new MapError("MAIL_PERMISSION_DENIED", reason);
}
