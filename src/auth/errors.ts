/** Mistakes of whoever sets up or administers authentication. What callers do wrong is an AuthResult instead. */
export type AuthErrorCode = "bad_token_request" | "unknown_token" | "bad_auth_settings";

export class AuthError extends Error {
  override readonly name = "AuthError";
  readonly code: AuthErrorCode;
  constructor(code: AuthErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
