/**
 * A shared secret never meets a public-key algorithm or the other way round: a public key taken for an HMAC secret
 * would let everybody sign.
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
