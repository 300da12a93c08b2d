/** The client's errors. Every class has a stable `code`: test the class or the code, never the message. */
import { MailroomError } from "../base/index.js";

/**
 * The server rejected the call. `code` is the server's, or `http_<status>` if it sent none.
 * @example
 * ```ts
 * try {
 *   await client.cancelTask(taskId);
 * } catch (error) {
 *   if (!(error instanceof MailClientError) || error.status !== 409) throw error;
 * }
 * ```
 */
export class MailClientError extends MailroomError<string> {
  override readonly name = "MailClientError";
  readonly status: number;
  /** The server's message. */
  readonly detail: string;
  /** The whole response body. */
  readonly body: unknown;

  constructor(parts: {
    request: string;
    status: number;
    detail: string;
    code?: string | undefined;
    /** Milliseconds. */
    retryAfter?: number | undefined;
    body?: unknown;
  }) {
    super(
      parts.code ?? `http_${parts.status}`,
      `${parts.request} failed with status ${parts.status}: ${parts.detail}`,
      { retryAfter: parts.retryAfter },
    );
    this.status = parts.status;
    this.detail = parts.detail;
    this.body = parts.body;
  }
}

/**
 * `unreachable`: no connection, or it broke before the response was complete. `timeout`: no response within the time
 * limit. `bad_response`: the response does not come from a MAIL server.
 */
export type MailConnectionErrorCode = "unreachable" | "timeout" | "bad_response";

/** The call got no valid response. Whether a write took effect is unknown. */
export class MailConnectionError extends MailroomError<MailConnectionErrorCode> {
  override readonly name = "MailConnectionError";
  readonly url: string;

  constructor(code: MailConnectionErrorCode, url: string, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.url = url;
  }
}

/** `stream_lost`: the connection broke and could not be resumed. `not_a_stream`: the response is not a stream. */
export type MailStreamErrorCode = "stream_lost" | "not_a_stream";

/** A stream of events ended before the task did. The task continues. */
export class MailStreamError extends MailroomError<MailStreamErrorCode> {
  override readonly name = "MailStreamError";
  readonly taskId: string | undefined;
  /** Pass this to `taskEvents` as `after` to continue where the stream broke. */
  readonly lastEventId: string | undefined;

  constructor(
    code: MailStreamErrorCode,
    message: string,
    parts: { taskId?: string | undefined; lastEventId?: string | undefined; cause?: unknown } = {},
  ) {
    super(code, message, { cause: parts.cause });
    this.taskId = parts.taskId;
    this.lastEventId = parts.lastEventId;
  }
}
