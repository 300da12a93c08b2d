/** Other swarms, as the HTTP door shows them. Federation implements it. */
import type { RowWrite } from "../engine/ports.js";
import type { Federation, SwarmEntry } from "../federation/index.js";

/** Never holds a credential (mail.md 14, no. 7). */
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
}

export interface SwarmRegistration {
  readonly name: string;
  readonly baseUrl: string;
  readonly authToken?: string;
  readonly volatile: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface Registry {
  /** Everything known about other swarms, or only what anybody may know. */
  list(scope: "all" | "public"): Promise<readonly SwarmListing[]>;
  /**
   * Adds or replaces a swarm. `rows` become durable together with it.
   * @throws HttpError where the caller is at fault
   */
  register(swarm: SwarmRegistration, rows: readonly RowWrite[]): Promise<void>;
}

/** What is known to the registry of a federation, as others may see it. */
export function registryOf({ registry }: Federation): Registry {
  return {
    async list(scope) {
      return registry
        .list()
        .filter((entry) => scope === "all" || entry.public)
        .map(listingOf);
    },
    async register(swarm, rows) {
      await registry.register(swarm, rows);
    },
  };
}

export function listingOf(entry: SwarmEntry): SwarmListing {
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
