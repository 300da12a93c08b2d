/** Authentication: see README.md for what it promises. */
export { fingerprint } from "./cache.js";
export { devAuthenticator } from "./dev.js";
export type { JwtAlgorithm } from "./jwt/algorithms.js";
export type { JwtOptions } from "./jwt/authenticator.js";
export type { ClaimMapping } from "./jwt/claims.js";
export type { JwtKey } from "./jwt/key.js";
export type {
  AuthRowWrite,
  TokenPage,
  TokenPut,
  TokenReads,
  TokenRevoke,
  TokenRow,
  TokenStore,
  TokenUsed,
} from "./ports.js";
export { instanceOf, type Principal, type Provider, roleOf } from "./principal.js";
export type { AuthTrouble, ReportTrouble } from "./report.js";
export {
  type Authenticator,
  type AuthFailure,
  type AuthFailureReason,
  type AuthResult,
  authenticateHeader,
} from "./result.js";
export { ROLES, type Role } from "./roles.js";
export type { ServiceOptions } from "./service.js";
export { type AuthSettings, authSettings, type JwtSettings } from "./settings.js";
export { type AuthParts, createAuthenticator } from "./setup.js";
export {
  type CreatedToken,
  type TokenInfo,
  type TokenRequest,
  Tokens,
  type TokensOptions,
} from "./tokens/tokens.js";
