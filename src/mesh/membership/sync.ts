/** Member-list synchronisation: the master's list is the truth about who is in; keys that we have stay as they are. */
import type { ViewWrite } from "../writes.js";
import type { Member, Swarm, SwarmSettings } from "./types.js";

export interface MasterList {
  readonly members: readonly Member[];
  readonly name?: string;
  readonly settings?: SwarmSettings;
}

export interface SyncDecision {
  readonly writes: readonly ViewWrite[];
  /** Members for whom the master names another key than we have: somebody rotated, or somebody lies. */
  readonly conflicts: readonly string[];
}

export function decideSync(swarm: Swarm, selfId: string, list: MasterList): SyncDecision {
  const writes: ViewWrite[] = [];
  const conflicts: string[] = [];
  const named = new Set(list.members.map(({ agentId }) => agentId));
  for (const member of list.members) {
    const known = swarm.members.get(member.agentId);
    if (known === undefined) writes.push({ kind: "mesh.member.put", swarmId: swarm.id, member });
    else if (known.publicKey !== member.publicKey) conflicts.push(member.agentId);
  }
  for (const agentId of swarm.members.keys()) {
    if (named.has(agentId) || agentId === selfId || agentId === swarm.master) continue;
    writes.push({ kind: "mesh.member.remove", swarmId: swarm.id, agentId });
  }
  const { id, name, master, joinedAt, settings, alias } = swarm;
  const next = { id, name: list.name ?? name, master, joinedAt, settings: list.settings ?? settings, alias };
  const changed =
    next.name !== name ||
    next.settings.allowMemberInvite !== settings.allowMemberInvite ||
    next.settings.requireApproval !== settings.requireApproval;
  if (changed) writes.push({ kind: "mesh.swarm.put", swarm: next });
  return { writes, conflicts };
}
