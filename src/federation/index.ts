/** Federation: see README.md for what it promises. */
export { FederationError, type FederationErrorCode } from "./errors.js";
export {
  CAPABILITIES,
  Federation,
  type FederationOptions,
  type FederationProblem,
} from "./federation.js";
export type { Receipt } from "./inbound/inbound.js";
export {
  type FederationReads,
  type FederationRowWrite,
  type FederationStore,
  federationStoreOf,
  type Proposal,
} from "./ports.js";
export type { SwarmEntry } from "./registry/entry.js";
export type { HealthResult } from "./registry/health.js";
export type { SwarmRegistration } from "./registry/registry.js";
export type { TokenState } from "./registry/token.js";
export { DEFAULT_FEDERATION_SETTINGS, type FederationSettings } from "./settings.js";
