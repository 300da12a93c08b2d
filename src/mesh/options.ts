/** The settings of a mesh node, with their defaults. */
import { DEFAULT_RATE_LIMITS, type RateLimits } from "./limits.js";
import { DEFAULT_FRESHNESS, type Freshness } from "./membership/admit.js";

export interface MeshOptions {
  readonly freshness: Freshness;
  readonly rateLimits: RateLimits;
  /** Milliseconds after which a message that was not delivered is given up (decisions G5). */
  readonly deadline: number;
  /** Age at which a message is signed anew with a new timestamp, because receivers refuse old ones. */
  readonly resignAfter: number;
  /** Messages that may wait for one peer. */
  readonly maxWaiting: number;
  /** How long cached keys are taken for granted. ASP: Key Refresh. */
  readonly keyTtl: number;
  /** At most one fetch of an agent's key in this time. */
  readonly keyRefreshPause: number;
  /** `refresh` takes a changed key from the member's registered endpoint; `pin` waits for a rotation message. */
  readonly keyPolicy: "refresh" | "pin";
  /** Whether what we send is sealed: signed a second time, over the fields that the protocol leaves unsigned. */
  readonly sealMessages: boolean;
  /**
   * What is asked of others. A seal that is there must hold in any case; `remember` demands one of every key that has
   * sealed before, so that it cannot be taken away; `require` demands one of everybody, and so of Mailrooms only.
   */
  readonly sealPolicy: "optional" | "remember" | "require";
  /** Whether a joiner's endpoint must answer with the key it asks to join with. */
  readonly checkJoiners: "required" | "if_reachable" | "off";
  /** Milliseconds that a new invite is valid unless something else is said. */
  readonly inviteLifetime: number;
  /** Whether what comes waits to become a task. Otherwise it is there to be read, and nothing more. */
  readonly awaitsTasks: boolean;
  /** How long a lifecycle message is tried although the peer refuses it: it may have overtaken an earlier one. */
  readonly lifecyclePatience: number;
  /** Milliseconds after which messages that nobody waits for are removed. Absent: never. */
  readonly retention?: number;
  readonly metadata?: { readonly name?: string; readonly description?: string };
}

export const DEFAULT_MESH_OPTIONS: MeshOptions = {
  freshness: DEFAULT_FRESHNESS,
  rateLimits: DEFAULT_RATE_LIMITS,
  deadline: 14 * 86_400_000,
  resignAfter: 12 * 3_600_000,
  maxWaiting: 10_000,
  keyTtl: 86_400_000,
  keyRefreshPause: 300_000,
  keyPolicy: "refresh",
  sealMessages: true,
  sealPolicy: "remember",
  checkJoiners: "if_reachable",
  inviteLifetime: 86_400_000,
  awaitsTasks: true,
  lifecyclePatience: 3_600_000,
};
