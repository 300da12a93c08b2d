/**
 * A shared secret is never used with a public-key algorithm, nor a public key with HMAC: with a public key as HMAC
 * secret, anyone could sign.
 */
export const SECRET_ALGORITHMS = ["HS256", "HS384", "HS512"] as const;
export const PUBLIC_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;
export type JwtAlgorithm = (typeof SECRET_ALGORITHMS | typeof PUBLIC_ALGORITHMS)[number];
