/**
 * The one error class of Mailroom. Programs decide by `code`; `error-table.ts` has a row for every code, and the
 * row's kind decides what each protocol and the command line make of it.
 */
import {
  ERROR_KINDS,
  ERRORS,
  type ErrorCode,
  type ErrorRow,
  PUBLIC_ERRORS,
  type PublicErrorCode,
  type Transports,
} from "./error-table.js";

/** A row with what its kind adds. */
export type ErrorDescription = ErrorRow & Transports;

export interface MailroomErrorOptions {
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

const BRAND = Symbol.for("agent-mailroom.error");

/** An error with a code for programs and a message for people. Decide by the code: see `docs/errors.md`. */
export class MailroomError<Code extends string = ErrorCode> extends Error {
  override readonly name: string = "MailroomError";
  readonly code: Code;
  /** More about this failure; in HTTP answers its fields are beside `detail` and `code`. */
  readonly details: Readonly<Record<string, unknown>>;
  /** Milliseconds after which a retry makes sense. Default: from the table. */
  readonly retryAfter: number | undefined;

  // `NoInfer`: without a type argument the code must be one of the table.
  constructor(code: NoInfer<Code>, message: string, options: MailroomErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
    this.retryAfter = options.retryAfter ?? rowOf(code)?.retryAfter;
  }

  /** `isMailroomError` reads it: two copies of the package have two classes, so `instanceof` is not enough. */
  get [BRAND](): true {
    return true;
  }
}

/**
 * Whether a value is a `MailroomError`, also one from another copy of the package; with `code`, whether it has that code.
 * @example
 * try {
 *   await task.cancel();
 * } catch (error) {
 *   if (!isMailroomError(error, "already_ended")) throw error;
 * }
 */
export function isMailroomError<Code extends string = string>(
  error: unknown,
  code?: Code,
): error is MailroomError<Code> {
  if (typeof error !== "object" || error === null || !(BRAND in error)) return false;
  return code === undefined || ("code" in error && error.code === code);
}

/** Whether it is a Mailroom error with one of these codes. */
export function hasCode<Code extends string>(error: unknown, ...codes: Code[]): error is MailroomError<Code> {
  return codes.some((code) => isMailroomError(error, code));
}

/** Whether callers may see the error. All other errors are internal to the process that they happen in. */
export function isPublicError(error: unknown): error is MailroomError<PublicErrorCode> {
  return isMailroomError(error) && Object.hasOwn(PUBLIC_ERRORS, error.code);
}

/** Whether the same request may succeed later. */
export function isRetryable({ code }: Pick<MailroomError<string>, "code">): boolean {
  const kind = rowOf(code)?.kind;
  return kind === "unavailable" || kind === "limited";
}

export function describeError(code: ErrorCode): ErrorDescription {
  const row: ErrorRow = ERRORS[code];
  return { ...ERROR_KINDS[row.kind], ...row };
}

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

function rowOf(code: string): ErrorRow | undefined {
  return isErrorCode(code) ? ERRORS[code] : undefined;
}
