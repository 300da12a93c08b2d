/** `refused`: the server said no; `number` is the protocol's. The others are about the connection. */
export type ConversationErrorCode = "refused" | "unreachable" | "timeout" | "connection_lost" | "too_slow";

export class ConversationError extends Error {
  override readonly name = "ConversationError";
  readonly code: ConversationErrorCode;
  /** The number of the protocol's error, where the server refused. */
  readonly number: number | undefined;
  readonly data: unknown;

  constructor(code: ConversationErrorCode, message: string, refusal?: { number: number; data: unknown }) {
    super(message);
    this.code = code;
    this.number = refusal?.number;
    this.data = refusal?.data;
  }

  static refused(
    method: string,
    { code, message, data }: { readonly code: number; readonly message: string; readonly data?: unknown },
  ): ConversationError {
    return new ConversationError("refused", `${method} was refused with ${code}: ${message}`, {
      number: code,
      data,
    });
  }
}
