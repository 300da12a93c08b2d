/** Member list synchronization: the master's list decides who is a member; known keys are kept. */
import type { ViewWrite } from "../writes.js";
import { listedHandovers } from "./handover.js";
import { toSwarmRecord } from "./operations.js";
import type { HandoverProof, Member, Swarm, SwarmSettings } from "./types.js";

export interface MasterList {
  readonly members: readonly Member[];
  readonly name?: string;
  readonly settings?: SwarmSettings;
  readonly handovers?: readonly HandoverProof[];
}

export interface SyncDecision {
  /** Added and removed members. */
  readonly members: readonly ViewWrite[];
  /** The swarm's name and settings, if they changed. */
  readonly record: readonly ViewWrite[];
  /** Members whose key at the master differs from the known one: a missed rotation, or an attack. */
  readonly conflicts: readonly string[];
}

export function decideSync(swarm: Swarm, selfId: string, list: MasterList, now: number): SyncDecision {
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
  const handovers = listedHandovers(swarm, list.handovers ?? [], now);
  const next = {
    ...toSwarmRecord(swarm),
    name: list.name ?? name,
    settings: list.settings ?? settings,
    ...(handovers !== undefined && { handovers }),
  };
  const changed =
    handovers !== undefined ||
    next.name !== name ||
    next.settings.allowMemberInvite !== settings.allowMemberInvite ||
    next.settings.requireApproval !== settings.requireApproval;
  return { members, record: changed ? [{ kind: "mesh.swarm.put", swarm: next }] : [], conflicts };
}

/** Adds a member. Its ban ends, because the master admitted it. */
export function memberWrites(swarm: Pick<Swarm, "id" | "bans">, member: Member): ViewWrite[] {
  const { id: swarmId, bans } = swarm;
  const put: ViewWrite = { kind: "mesh.member.put", swarmId, member };
  const { agentId } = member;
  return bans.has(agentId) ? [put, { kind: "mesh.ban.remove", swarmId, agentId }] : [put];
}
