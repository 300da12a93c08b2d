/** The auth room: see README.md for what it promises. */
export { devAuthenticator } from "./dev.js";
export { AuthError, type AuthErrorCode } from "./errors.js";
export type { JwtAlgorithm } from "./jwt/algorithms.js";
export type { JwtOptions } from "./jwt/authenticator.js";
export type { ClaimMapping } from "./jwt/claims.js";
export type { JwtKey } from "./jwt/key.js";
export {
  instanceOf,
  type Principal,
  type Provider,
  ROLES,
  type Role,
  roleOf,
} from "./principal.js";
export type { AuthTrouble, ReportTrouble } from "./report.js";
export {
  type Authenticator,
  type AuthFailure,
  type AuthFailureReason,
  type AuthResult,
  authenticateHeader,
} from "./result.js";
export type { ServiceOptions } from "./service.js";
export { type AuthParts, type AuthSettings, createAuthenticator, type JwtSettings } from "./setup.js";
export type {
  AuthRowWrite,
  TokenIndex,
  TokenPage,
  TokenPut,
  TokenRevoke,
  TokenRow,
  TokenStore,
  TokenUsed,
} from "./tokens/port.js";
export {
  type CreatedToken,
  type TokenInfo,
  type TokenRequest,
  Tokens,
  type TokensOptions,
} from "./tokens/tokens.js";
