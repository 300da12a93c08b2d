/** The options of a mesh agent. */
import { defaultsOf } from "../base/index.js";
import type { RateLimits } from "./limits.js";
import { DEFAULT_FRESHNESS, type Freshness } from "./membership/admit.js";
import { type MeshSettings, meshSettings } from "./settings.js";

export interface MeshOptions {
  readonly freshness: Freshness;
  readonly rateLimits: RateLimits;
  /** Milliseconds after which an undelivered message is abandoned (decision G5). */
  readonly deadline: number;
  /** Age at which a pending message is re-signed with a fresh timestamp; receivers reject old ones. */
  readonly resignAfter: number;
  /** Maximum number of pending messages per peer. */
  readonly maxWaiting: number;
  /** ASP: Key Refresh. Milliseconds after which a cached key is fetched again. */
  readonly keyTtl: number;
  /** Minimum milliseconds between two fetches of an agent's key. */
  readonly keyRefreshPause: number;
  /** `refresh` accepts a changed key from the member's registered endpoint; `pin` requires a rotation message. */
  readonly keyPolicy: "refresh" | "pin";
  /** Whether outgoing messages are sealed: signed a second time, over the fields that the protocol leaves unsigned. */
  readonly sealMessages: boolean;
  /**
   * Which messages must be sealed. A seal that is present must always verify. `remember` requires one from every key
   * that has sealed before, so that a seal cannot be removed. `require` requires one from every peer, which only
   * Mailroom fulfills.
   */
  readonly sealPolicy: "optional" | "remember" | "require";
  /** Whether the endpoint of a joining agent must serve the key of its request. */
  readonly checkJoiners: "required" | "if_reachable" | "off";
  /** Default lifetime of an invite in milliseconds. */
  readonly inviteLifetime: number;
  /** Whether messages wait to become tasks. Otherwise they only stay in the inbox. */
  readonly awaitsTasks: boolean;
  /** Milliseconds for which a refused lifecycle message is retried: it may have overtaken an earlier one. */
  readonly rejectionWindow: number;
  /** Milliseconds after which finished messages are removed. Absent: never. */
  readonly retention?: number;
  readonly metadata?: { readonly name?: string; readonly description?: string };
}

/** The options of an agent with these settings, or with the defaults. */
export function meshOptions(settings: MeshSettings = defaultsOf(meshSettings)): MeshOptions {
  const { limits, name, description, retentionDays } = settings;
  const metadata = { ...(name !== "" && { name }), ...(description !== "" && { description }) };
  return {
    freshness: DEFAULT_FRESHNESS,
    rateLimits: {
      sender: { count: limits.senderPerMinute, window: MINUTE },
      senderBytes: { count: limits.senderBytesPerMinute, window: MINUTE },
      swarm: { count: limits.swarmPerMinute, window: MINUTE },
      join: { count: limits.joinsPerHour, window: 60 * MINUTE },
      failure: { count: limits.failuresPerMinute, window: MINUTE },
    },
    deadline: settings.deadline,
    resignAfter: settings.resignAfter,
    maxWaiting: settings.maxWaiting,
    keyTtl: settings.keyTtl,
    keyRefreshPause: settings.keyRefreshPause,
    keyPolicy: settings.keyPolicy,
    sealMessages: settings.seal,
    sealPolicy: settings.sealPolicy,
    checkJoiners: settings.checkJoiners,
    inviteLifetime: settings.inviteLifetime,
    awaitsTasks: settings.bridge.enabled,
    rejectionWindow: settings.rejectionWindow,
    ...(retentionDays > 0 && { retention: retentionDays * 24 * 60 * MINUTE }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

const MINUTE = 60_000;
