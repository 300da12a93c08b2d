/** Authentication: see README.md for what it promises. */
export { fingerprint } from "./cache.js";
export { devAuthenticator } from "./dev.js";
export type {
  AuthRowWrite,
  TokenPut,
  TokenReads,
  TokenRevoke,
  TokenRow,
  TokenUsed,
} from "./ports.js";
export { instanceOf, type Principal, roleOf } from "./principal.js";
export {
  type Authenticator,
  type AuthFailureReason,
  type AuthResult,
  authenticateHeader,
} from "./result.js";
export { ROLES, type Role } from "./roles.js";
export { createAuthenticator } from "./setup.js";
export {
  type CreatedToken,
  type TokenInfo,
  Tokens,
} from "./tokens/tokens.js";
