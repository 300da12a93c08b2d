/** Other servers: what is wrong with them, or waits for an admin, as numbers in the rail. */
import { caller, isAdmin, request } from "./api.js";
import { setAttention } from "./attention.js";
import { hello } from "./feed.js";
import type { Peer } from "./shapes.js";

/** Between two looks while another screen is open. */
const EVERY = 60_000;

interface MeshAgent {
  readonly agent_id: string;
  readonly endpoint: string;
  readonly fingerprint: string;
}

export interface MeshSwarm {
  readonly swarm_id: string;
  readonly name: string;
  readonly alias: string;
  readonly master: string;
  readonly is_master: boolean;
  readonly joined_at: number;
  readonly muted: boolean;
  readonly settings: { readonly allow_member_invite: boolean; readonly require_approval: boolean };
  readonly members: readonly (MeshAgent & { readonly joined_at: number; readonly sealed: boolean })[];
  readonly pending: readonly (MeshAgent & { readonly requested_at: number })[];
  readonly invites: readonly {
    readonly key: string;
    readonly uses: number;
    readonly max_uses: number | null;
    readonly created_at: number;
    readonly expires_at: number | null;
    readonly revoked_at: number | null;
  }[];
  readonly bans: readonly {
    readonly agent_id: string;
    readonly at: number;
    readonly reason: string | null;
  }[];
}

/** Response of `GET /admin/mesh`. */
export interface MeshOverview extends MeshAgent {
  readonly muted_agents: readonly string[];
  readonly muted_swarms: readonly string[];
  readonly inbox: Readonly<Record<string, number>>;
  readonly outbox: Readonly<Record<string, number>>;
  readonly swarms: readonly MeshSwarm[];
}

/** Without this server's own swarm. */
export function otherSwarms(swarms: readonly Peer[]): Peer[] {
  return swarms.filter(({ base_url, swarm_name }) => base_url !== null && swarm_name !== hello.value?.swarm);
}

export function noteSwarms(swarms: readonly Peer[]): void {
  setAttention("federation", otherSwarms(swarms).filter(({ is_active }) => is_active === false).length);
}

export function noteMesh({ swarms }: MeshOverview): void {
  setAttention(
    "mesh",
    swarms.reduce((total, { pending }) => total + pending.length, 0),
  );
}

function look(): void {
  if (document.hidden || caller.value == null || !isAdmin()) return;
  request<{ swarms: Peer[] }>("swarms").then(({ swarms }) => noteSwarms(swarms), ignore);
  request<MeshOverview>("admin/mesh").then(noteMesh, ignore);
}

/** A server without a mesh answers 404; a server that is gone is shown by the feed. */
function ignore(): void {}

export function startNeighbors(): void {
  caller.subscribe(() => setTimeout(look));
  setInterval(look, EVERY);
}
