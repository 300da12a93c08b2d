import { isRetryable, MailroomError } from "../base/index.js";

export type NetErrorCode =
  | "invalid_url"
  | "insecure_url"
  | "blocked_address"
  | "blocked_redirect"
  | "too_many_redirects"
  | "unresolved_host"
  | "unreachable"
  | "tls_failed"
  | "timed_out"
  | "response_too_large"
  | "bad_response"
  | "aborted";

/** A request failed before its response was complete. */
export class NetError extends MailroomError<NetErrorCode> {
  override readonly name = "NetError";
  /** Without query and fragment: they may contain secrets, and this text is logged. */
  readonly url: string;
  /** `false` means that no byte of the request reached the other side. `true` means that its effect is unknown. */
  readonly mayHaveArrived: boolean;
  constructor(
    code: NetErrorCode,
    message: string,
    options: { url: string | URL; mayHaveArrived?: boolean; cause?: unknown },
  ) {
    const url = loggable(options.url);
    super(code, `${url}: ${message}`, { cause: options.cause });
    this.url = url;
    this.mayHaveArrived = options.mayHaveArrived ?? false;
  }
}

/** Whether the same request could succeed later. */
export function isTransient(error: unknown): boolean {
  return error instanceof NetError && error.code !== "aborted" && isRetryable(error);
}

function loggable(url: string | URL): string {
  const parsed = typeof url === "string" ? (URL.canParse(url) ? new URL(url) : undefined) : url;
  return parsed === undefined ? "the URL" : `${parsed.origin}${parsed.pathname}`;
}
