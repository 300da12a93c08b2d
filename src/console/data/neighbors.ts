/** Other servers: what is wrong with them, or waits for an admin, as numbers in the rail. */
import { caller, isAdmin, request } from "./api.js";
import { setAttention } from "./attention.js";
import { hello } from "./feed.js";
import type { MeshOverview, Peer } from "./shapes.js";

/** Between two looks while another screen is open. */
const EVERY = 60_000;

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
