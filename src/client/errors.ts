/** How a call can fail. Every class has a stable `code`; decide by the class or the code, never by the text. */

/** The server answered, and the answer was no. */
export class MailClientError extends Error {
  override readonly name = "MailClientError";
  readonly status: number;
  /** The server's own words. */
  readonly detail: string;
  /** The server's code for what went wrong, or `http_<status>` where it gave none. */
  readonly code: string;
  /** Seconds to wait before trying again, where the server said so. */
  readonly retryAfter: number | undefined;
  /** The whole answer, for what else it may hold. */
  readonly body: unknown;

  constructor(parts: {
    request: string;
    status: number;
    detail: string;
    code?: string | undefined;
    retryAfter?: number | undefined;
    body?: unknown;
  }) {
    super(`${parts.request} was refused with ${parts.status}: ${parts.detail}`);
    this.status = parts.status;
    this.detail = parts.detail;
    this.code = parts.code ?? `http_${parts.status}`;
    this.retryAfter = parts.retryAfter;
    this.body = parts.body;
  }
}

/**
 * `unreachable`: no connection, or it broke before an answer was complete. `timeout`: no answer within the time limit.
 * `bad_answer`: an answer that no MAIL server gives.
 */
export type MailConnectionErrorCode = "unreachable" | "timeout" | "bad_answer";

/** There is no answer. Whether a write took effect is not known unless it was made with an idempotency key. */
export class MailConnectionError extends Error {
  override readonly name = "MailConnectionError";
  readonly code: MailConnectionErrorCode;
  readonly url: string;

  constructor(code: MailConnectionErrorCode, url: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.url = url;
  }
}

/** `stream_lost`: the connection broke and could not be resumed. `not_a_stream`: the server answered something else. */
export type MailStreamErrorCode = "stream_lost" | "not_a_stream";

/** A stream of events ended before the task did. The task itself goes on. */
export class MailStreamError extends Error {
  override readonly name = "MailStreamError";
  readonly code: MailStreamErrorCode;
  readonly taskId: string | undefined;
  /** Hand this to `taskEvents` as `after` to go on where the stream broke. */
  readonly lastEventId: string | undefined;

  constructor(
    code: MailStreamErrorCode,
    message: string,
    parts: { taskId?: string | undefined; lastEventId?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.code = code;
    this.taskId = parts.taskId;
    this.lastEventId = parts.lastEventId;
  }
}
