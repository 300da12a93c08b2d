import { isRecord, MailroomError } from "../base/index.js";

/**
 * - `refused`: the server rejected the call, with the protocol's `number`, or the connection, for example because of the
 *   page's origin.
 * - `unreachable`: no connection to the server.
 * - `timeout`: no response in time. Whether a write took effect is unknown.
 * - `connection_lost`: the connection closed before the response. Whether a write took effect is unknown.
 * - `too_many_requests`: too many calls wait for their responses.
 * - `replaced`: another process serves the agent now.
 * - `closed`: `close()` was called.
 */
export type ConversationErrorCode =
  | "refused"
  | "unreachable"
  | "timeout"
  | "connection_lost"
  | "too_many_requests"
  | "replaced"
  | "closed";

/** How a connection ended: a WebSocket close code, and the reason in words. */
export interface Closing {
  readonly code: number;
  readonly reason: string;
}

/**
 * A call of {@link ConversationClient} failed. Test `code`, and `number` for the protocol's errors.
 * @example
 * ```ts
 * try {
 *   await client.say(id, "hello");
 * } catch (error) {
 *   if (!(error instanceof ConversationError) || error.number !== 10001) throw error;
 *   await client.reopen(id);
 * }
 * ```
 */
export class ConversationError extends MailroomError<ConversationErrorCode> {
  override readonly name = "ConversationError";
  /** The protocol's error number, if the server rejected the call. */
  readonly number: number | undefined;
  readonly data: unknown;
  /** How the connection ended, if it did. */
  readonly closing: Closing | undefined;

  constructor(
    code: ConversationErrorCode,
    message: string,
    more: {
      readonly number?: number;
      readonly data?: unknown;
      readonly closing?: Closing | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(code, message, { retryAfter: retryAfterOf(more.data), cause: more.cause });
    this.number = more.number;
    this.data = more.data;
    this.closing = more.closing;
  }

  static refused(
    method: string,
    { code, message, data }: { readonly code: number; readonly message: string; readonly data?: unknown },
  ): ConversationError {
    return new ConversationError("refused", `${method} failed with error ${code}: ${message}`, {
      number: code,
      data,
    });
  }
}

/** `data.details.reason` of a rejected call. */
export function reasonOf(error: unknown): string | undefined {
  const details = detailsOf(error);
  return typeof details.reason === "string" ? details.reason : undefined;
}

export function detailsOf(error: unknown): Readonly<Record<string, unknown>> {
  const data = error instanceof ConversationError ? error.data : undefined;
  return isRecord(data) && isRecord(data.details) ? data.details : {};
}

function retryAfterOf(data: unknown): number | undefined {
  return isRecord(data) && typeof data.retryAfterMs === "number" ? data.retryAfterMs : undefined;
}

/** The server is busy, or a limit is reached: the same call may succeed later. */
export function isTemporary({ number }: ConversationError): boolean {
  return number !== undefined && ((number >= 4000 && number <= 4002) || number === -32603);
}
