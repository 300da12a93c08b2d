/** Moves this agent to another endpoint: announced to every swarm, signed as every message. Pure. */
import { BROADCAST } from "../identity/agent-id.js";
import { type Operation, otherMembers } from "./operations.js";
import { writeSystemContent } from "./system-content.js";
import type { MembershipView, MeshIdentity } from "./types.js";

/** One operation for each swarm whose members know another endpoint of this agent. */
export function announceEndpoint(
  view: MembershipView,
  { agentId, endpoint }: MeshIdentity,
): ReadonlyMap<string, Operation> {
  const operations = new Map<string, Operation>();
  for (const swarm of view.swarms.values()) {
    const known = swarm.members.get(agentId);
    if (known === undefined || known.endpoint === endpoint) continue;
    const content = writeSystemContent("endpoint_changed", agentId, { endpoint });
    operations.set(swarm.id, {
      writes: [{ kind: "mesh.member.put", swarmId: swarm.id, member: { ...known, endpoint } }],
      announcements: [{ recipient: BROADCAST, type: "system", content, to: otherMembers(swarm, agentId) }],
      event: { action: "endpoint_changed", agentId },
    });
  }
  return operations;
}
