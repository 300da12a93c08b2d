import { MailroomError } from "../base/index.js";

/** `refused`: the server rejected the call, with the protocol's `number`. The others concern the connection. */
export type ConversationErrorCode = "refused" | "unreachable" | "timeout" | "connection_lost" | "too_slow";

/** A call of {@link ConversationClient} failed. Test `code`, and `number` for the protocol's errors. */
export class ConversationError extends MailroomError<ConversationErrorCode> {
  override readonly name = "ConversationError";
  /** The protocol's error number, if the server rejected the call. */
  readonly number: number | undefined;
  readonly data: unknown;

  constructor(code: ConversationErrorCode, message: string, refusal?: { number: number; data: unknown }) {
    super(code, message);
    this.number = refusal?.number;
    this.data = refusal?.data;
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
