/** Headers that cost nothing and take away what a browser could be made to do with an answer. */
export function securityHeaders(tls: boolean): Readonly<Record<string, string>> {
  return {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    ...(tls && { "strict-transport-security": "max-age=31536000" }),
  };
}
