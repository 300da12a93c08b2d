/** Member-list synchronisation: the master's list is the truth about who is in; keys that we have stay as they are. */
import type { ViewWrite } from "../writes.js";
import { recordOf } from "./operations.js";
import type { Member, Swarm, SwarmSettings } from "./types.js";

export interface MasterList {
  readonly members: readonly Member[];
  readonly name?: string;
  readonly settings?: SwarmSettings;
}

export interface SyncDecision {
  /** Who comes and who goes. */
  readonly members: readonly ViewWrite[];
  /** Its name and settings, where they have changed. */
  readonly record: readonly ViewWrite[];
  /** Members for whom the master names another key than we have: somebody rotated, or somebody lies. */
  readonly conflicts: readonly string[];
}

export function decideSync(swarm: Swarm, selfId: string, list: MasterList): SyncDecision {
  const members: ViewWrite[] = [];
  const conflicts: string[] = [];
  const named = new Set(list.members.map(({ agentId }) => agentId));
  for (const member of list.members) {
    const known = swarm.members.get(member.agentId);
    if (known === undefined) members.push(...memberWrites(swarm, member));
    else if (known.publicKey !== member.publicKey) conflicts.push(member.agentId);
  }
  for (const agentId of swarm.members.keys()) {
    if (named.has(agentId) || agentId === selfId || agentId === swarm.master) continue;
    members.push({ kind: "mesh.member.remove", swarmId: swarm.id, agentId });
  }
  const { name, settings } = swarm;
  const next = { ...recordOf(swarm), name: list.name ?? name, settings: list.settings ?? settings };
  const changed =
    next.name !== name ||
    next.settings.allowMemberInvite !== settings.allowMemberInvite ||
    next.settings.requireApproval !== settings.requireApproval;
  return { members, record: changed ? [{ kind: "mesh.swarm.put", swarm: next }] : [], conflicts };
}

/** A new member. That it was banned is over: the master has let it in. */
export function memberWrites(swarm: Pick<Swarm, "id" | "bans">, member: Member): ViewWrite[] {
  const { id: swarmId, bans } = swarm;
  const put: ViewWrite = { kind: "mesh.member.put", swarmId, member };
  const { agentId } = member;
  return bans.has(agentId) ? [put, { kind: "mesh.ban.remove", swarmId, agentId }] : [put];
}
