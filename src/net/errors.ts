/** How a request can fail before there is an answer. One class; decide by `code`. */

export const NET_ERROR_CODES = [
  /** The text is no URL, has another scheme than http(s), or carries a user name or password. */
  "invalid_url",
  /** `http:` to a host that is neither loopback nor allowed. */
  "insecure_url",
  /** The address belongs to a range that is not for us (see ranges.ts). */
  "blocked_address",
  /** A redirect that would take credentials, a body or encryption away from the origin it was meant for. */
  "blocked_redirect",
  "too_many_redirects",
  /** The name has no address, or the resolver did not answer. */
  "unresolved_host",
  /** No connection, or it broke. */
  "unreachable",
  /** The certificate was not accepted, or the handshake failed. */
  "tls_failed",
  "timed_out",
  /** The answer is longer than `maxBytes`. */
  "too_large",
  /** The other side does not speak HTTP. */
  "bad_answer",
  /** The caller's signal, or the client was closed. */
  "aborted",
] as const;
export type NetErrorCode = (typeof NET_ERROR_CODES)[number];

export class NetError extends Error {
  override readonly name = "NetError";
  readonly code: NetErrorCode;
  /** Without query and fragment: they may hold secrets, and this text goes to logs. */
  readonly url: string;
  /**
   * Whether a byte of the request may have reached the other side. `false` is certain; `true` means that nobody
   * knows what the other side did with it.
   */
  readonly sent: boolean;
  constructor(
    code: NetErrorCode,
    message: string,
    options: { url: string | URL; sent?: boolean; cause?: unknown },
  ) {
    const url = loggable(options.url);
    super(`${url}: ${message}`, { cause: options.cause });
    this.code = code;
    this.url = url;
    this.sent = options.sent ?? false;
  }
}

/** Whether trying the same request again later could end differently. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof NetError)) return false;
  switch (error.code) {
    case "unresolved_host":
    case "unreachable":
    case "timed_out":
    case "tls_failed":
    case "bad_answer":
      return true;
    case "invalid_url":
    case "insecure_url":
    case "blocked_address":
    case "blocked_redirect":
    case "too_many_redirects":
    case "too_large":
    case "aborted":
      return false;
    default:
      return error.code satisfies never;
  }
}

function loggable(url: string | URL): string {
  const parsed = typeof url === "string" ? (URL.canParse(url) ? new URL(url) : undefined) : url;
  return parsed === undefined ? "the URL" : `${parsed.origin}${parsed.pathname}`;
}
