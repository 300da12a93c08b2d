/** Federation with other MAIL swarms: see README.md. */
export {
  CAPABILITIES,
  Federation,
  type SwarmUpkeep,
} from "./federation.js";
export {
  type FederationReads,
  type FederationRowWrite,
  federationStoreOf,
  type Link,
  type LinkPut,
  type Proposal,
  type ProposalPut,
  type ProposalRemove,
  type Received,
  type ReceivedExpire,
  type ReceivedPut,
  type SwarmPut,
  type SwarmRemove,
} from "./ports.js";
export type { KnownSwarm } from "./registry/entry.js";
export { readRegistryFile } from "./registry/file.js";
export type { TokenState } from "./registry/token.js";
export { defaultReference, variableIn } from "./registry/token.js";
export { type FederationSettings, federationSettings } from "./settings.js";
