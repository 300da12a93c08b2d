/** Other swarms, as `GET /swarms` shows them. */
import { keyFingerprint } from "../../base/node.js";
import type { Federation, KnownSwarm, SwarmUpkeep, TokenState } from "../../federation/index.js";
import type { RowWrite } from "../../journal/index.js";

/** Never contains a credential [MAIL-REST-08]. */
export interface SwarmListing {
  readonly swarm_name: string;
  readonly base_url: string | null;
  readonly version: string | null;
  readonly last_seen: string | null;
  readonly is_active: boolean;
  readonly latency: number | null;
  readonly swarm_description: string | null;
  readonly keywords: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** For admins: forgotten at the next start. */
  readonly volatile?: boolean;
  /** For admins: where its token is looked up, and whether one is set (decision E4). */
  readonly auth_ref?: string | null;
  readonly auth_state?: AuthState;
  /** For admins: failed health checks in a row, why the last one failed, and when it was. */
  readonly failures?: number;
  readonly last_error?: string | null;
  readonly checked_at?: string | null;
  /** For admins: the last health checks, oldest first: time and latency in seconds, null for one that failed. */
  readonly checks?: readonly (readonly [at: number, latency: number | null])[];
  /** For admins: mail that is not delivered. */
  readonly waiting?: number;
  /** For admins: the fingerprint of the key that was seen at registration. */
  readonly public_key?: string | null;
}

export const AUTH_STATES = ["ready", "needs token", "none"] as const;
export type AuthState = (typeof AUTH_STATES)[number];

export interface SwarmRegistration {
  readonly name: string;
  readonly baseUrl: string;
  readonly authToken?: string;
  readonly volatile: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** What is shown without a token, to callers, and to admins. */
export type ListScope = "public" | "all" | "admin";

export interface SwarmRegistry {
  list(scope: ListScope): Promise<readonly SwarmListing[]>;
  /**
   * Adds or replaces a swarm. `rows` become durable together with it.
   * @throws MailroomError where the caller is at fault
   */
  register(swarm: SwarmRegistration, rows: readonly RowWrite[]): Promise<void>;
}

/** What is known to the registry of a federation, as others may see it. */
export function registryOf(federation: Federation): SwarmRegistry {
  const { registry } = federation;
  return {
    async list(scope) {
      const upkeep = scope === "admin" ? await federation.upkeep() : undefined;
      return registry
        .list()
        .filter((entry) => scope !== "public" || entry.public)
        .map((entry) => ({
          ...listingOf(entry),
          ...(upkeep !== undefined && {
            volatile: entry.volatile,
            auth_ref: entry.authRef,
            auth_state: AUTH_STATE_OF[registry.tokenOf(entry.name).kind],
            ...upkeepOf(upkeep(entry.name)),
            public_key: entry.publicKey === null ? null : keyFingerprint(entry.publicKey),
          }),
        }));
    },
    async register(swarm, rows) {
      await registry.register(swarm, rows);
    },
  };
}

const AUTH_STATE_OF: Readonly<Record<TokenState["kind"], AuthState>> = {
  ready: "ready",
  unset: "needs token",
  none: "none",
};

function upkeepOf({ failures, lastError, checkedAt, checks, waiting }: SwarmUpkeep) {
  return {
    failures,
    last_error: lastError,
    checked_at: checkedAt === null ? null : new Date(checkedAt).toISOString(),
    checks: [...checks],
    waiting,
  };
}

function listingOf(entry: KnownSwarm): SwarmListing {
  return {
    swarm_name: entry.name,
    base_url: entry.baseUrl,
    version: entry.version,
    last_seen: entry.lastSeen === null ? null : new Date(entry.lastSeen).toISOString(),
    is_active: entry.isActive,
    latency: entry.latency,
    swarm_description: entry.description,
    keywords: entry.keywords,
    metadata: entry.metadata,
  };
}
