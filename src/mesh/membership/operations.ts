/**
 * What the operator of an agent can do to its memberships. Each is a pure decision: the rows that change, the
 * messages that tell the others, and the event for those who watch here. Both are committed together, so that an
 * operation that was done is told, sooner or later, to everybody it concerns.
 */
import { MeshError } from "../errors.js";
import { BROADCAST, checkAgentId } from "../identity/agent-id.js";
import { tooLong } from "../message/check.js";
import { LIMITS, type MessageType } from "../message/types.js";
import { formatTime } from "../time.js";
import type { ViewWrite } from "../writes.js";
import type { LifecycleEvent } from "./lifecycle.js";
import { writeSystemContent } from "./system-content.js";
import type { Member, MeshView, PendingJoin, Swarm, SwarmRecord, SwarmSettings } from "./types.js";

/** One message for some members: the same id and content for all. */
export interface Announcement {
  readonly recipient: string;
  readonly type: MessageType;
  readonly content: string;
  readonly to: readonly Member[];
  /** What the recipient's acceptance completes. */
  readonly completes?: { readonly transferTo: string };
}

export interface Operation {
  readonly writes: readonly ViewWrite[];
  readonly announcements: readonly Announcement[];
  readonly event?: LifecycleEvent;
}

export function swarmOf(view: MeshView, swarmId: string): Swarm {
  const swarm = view.swarms.get(swarmId);
  if (swarm === undefined) throw new MeshError("swarm_not_found", `this agent is not in swarm ${swarmId}`);
  return swarm;
}

export function masteredSwarm(view: MeshView, swarmId: string, selfId: string): Swarm {
  const swarm = swarmOf(view, swarmId);
  if (swarm.master !== selfId) {
    throw new MeshError("not_master", `only the master of ${swarm.name}, ${swarm.master}, can do this`);
  }
  return swarm;
}

function memberOf(swarm: Swarm, agentId: string): Member {
  const member = swarm.members.get(agentId);
  if (member === undefined)
    throw new MeshError("member_not_found", `${agentId} is not a member of ${swarm.name}`);
  return member;
}

export function othersOf(swarm: Swarm, ...except: readonly string[]): Member[] {
  return [...swarm.members.values()].filter(({ agentId }) => !except.includes(agentId));
}

export function recordOf({ id, name, master, joinedAt, settings, alias }: Swarm): SwarmRecord {
  return { id, name, master, joinedAt, settings, alias };
}

export function createSwarm(
  self: Member,
  { id, name, alias, settings }: { id: string; name: string; alias: string; settings: SwarmSettings },
): Operation {
  if (name.trim() === "" || tooLong(name, LIMITS.nameCharacters)) {
    throw new MeshError("invalid_name", `a swarm's name has 1 to ${LIMITS.nameCharacters} characters`);
  }
  const swarm: SwarmRecord = { id, name, master: self.agentId, joinedAt: self.joinedAt, settings, alias };
  return {
    writes: [
      { kind: "mesh.swarm.put", swarm },
      { kind: "mesh.member.put", swarmId: id, member: self },
    ],
    announcements: [],
  };
}

/** ASP: Join Swarm, side effect. The key goes along, so that nobody has to fetch it. */
export function announceJoin(swarm: Swarm, member: Member): Announcement {
  const { agentId, endpoint, publicKey, joinedAt } = member;
  return {
    recipient: BROADCAST,
    type: "system",
    content: JSON.stringify({
      type: "system",
      action: "member_joined",
      swarm_id: swarm.id,
      agent_id: agentId,
      endpoint,
      joined_at: formatTime(joinedAt),
      public_key: publicKey,
    }),
    to: othersOf(swarm, swarm.master, agentId),
  };
}

export function approveJoin(
  view: MeshView,
  swarmId: string,
  selfId: string,
  agentId: string,
  now: number,
): Operation {
  const swarm = masteredSwarm(view, swarmId, selfId);
  const pending = swarm.pending.get(agentId);
  if (pending === undefined)
    throw new MeshError("member_not_found", `${agentId} has not asked to join ${swarm.name}`);
  const { endpoint, publicKey } = pending;
  const member: Member = { agentId, endpoint, publicKey, joinedAt: now };
  return {
    writes: [
      ...useAgain(swarm, pending),
      { kind: "mesh.pending.remove", swarmId, agentId },
      { kind: "mesh.member.put", swarmId, member },
    ],
    announcements: [announceJoin(swarm, member)],
    event: { action: "member_joined", agentId, initiatedBy: selfId },
  };
}

/** Who was rejected has given its use of the invite back; there must be one left. */
function useAgain(swarm: Swarm, { status, inviteKey, agentId }: PendingJoin): ViewWrite[] {
  if (status === "waiting") return [];
  const invite = swarm.invites.get(inviteKey);
  const isLeft = invite?.maxUses === undefined || invite.uses < invite.maxUses;
  if (invite === undefined || invite.revokedAt !== undefined || !isLeft) {
    throw new MeshError(
      "invalid_invite",
      `${agentId} was rejected, and its invite has been used up or revoked since: give it another`,
    );
  }
  return [{ kind: "mesh.invite.use", invite }];
}

export function rejectJoin(view: MeshView, swarmId: string, selfId: string, agentId: string): Operation {
  const swarm = masteredSwarm(view, swarmId, selfId);
  const pending = swarm.pending.get(agentId);
  // Rejected once, it has given its use of the invite back.
  if (pending?.status !== "waiting")
    throw new MeshError("member_not_found", `${agentId} is not waiting to join ${swarm.name}`);
  return {
    writes: [
      { kind: "mesh.pending.put", pending: { ...pending, status: "rejected" } },
      { kind: "mesh.invite.release", swarmId, key: pending.inviteKey },
    ],
    announcements: [],
  };
}

export function leaveSwarm(view: MeshView, swarmId: string, selfId: string): Operation {
  const swarm = swarmOf(view, swarmId);
  if (swarm.master === selfId) {
    throw new MeshError(
      "is_master",
      `the master of ${swarm.name} must transfer or dissolve it instead of leaving`,
    );
  }
  return {
    writes: [{ kind: "mesh.swarm.remove", swarmId }],
    announcements: [
      {
        recipient: BROADCAST,
        type: "system",
        content: writeSystemContent("member_left", selfId),
        to: othersOf(swarm, selfId),
      },
    ],
    event: { action: "member_left", agentId: selfId },
  };
}

export function dissolveSwarm(view: MeshView, swarmId: string, selfId: string, reason?: string): Operation {
  const swarm = masteredSwarm(view, swarmId, selfId);
  const content = writeSystemContent("swarm_dissolved", selfId, { reason });
  return {
    writes: [{ kind: "mesh.swarm.remove", swarmId }],
    announcements: [{ recipient: BROADCAST, type: "system", content, to: othersOf(swarm, selfId) }],
    event: { action: "swarm_dissolved", agentId: selfId },
  };
}

/** Out, and not to come back before it is unbanned. */
export function kickWrites(
  swarmId: string,
  { agentId, publicKey }: Member,
  at: number,
  reason: string | undefined,
): ViewWrite[] {
  const ban = { swarmId, agentId, publicKey, at, ...(reason !== undefined && { reason }) };
  return [
    { kind: "mesh.member.remove", swarmId, agentId },
    { kind: "mesh.ban.put", ban },
  ];
}

/** Removed first and told afterwards: an agent that does not answer is out all the same. */
export function kickMember(
  view: MeshView,
  swarmId: string,
  selfId: string,
  { agentId, reason, now }: { agentId: string; reason?: string; now: number },
): Operation {
  const swarm = masteredSwarm(view, swarmId, selfId);
  if (agentId === selfId) throw new MeshError("is_master", "the master cannot kick itself");
  const member = memberOf(swarm, agentId);
  const why = reason === undefined ? {} : { reason };
  return {
    writes: kickWrites(swarmId, member, now, reason),
    announcements: [
      {
        recipient: agentId,
        type: "system",
        content: writeSystemContent("kicked", agentId, why),
        to: [member],
      },
      {
        recipient: BROADCAST,
        type: "system",
        content: writeSystemContent("member_kicked", agentId, why),
        to: othersOf(swarm, selfId, agentId),
      },
    ],
    event: { action: "member_kicked", agentId, initiatedBy: selfId, ...why },
  };
}

/**
 * ASP: Transfer Master Role. Only the message to the new master goes out now; when it was taken, the rest follows
 * (`completeTransfer`), committed with the outcome. Until then the old master is the master.
 */
export function offerTransfer(
  view: MeshView,
  swarmId: string,
  selfId: string,
  newMaster: string,
): Announcement {
  const swarm = masteredSwarm(view, swarmId, selfId);
  if (newMaster === selfId) throw new MeshError("is_master", `${selfId} is the master already`);
  const to = [memberOf(swarm, newMaster)];
  const content = transferContent("master_transfer", swarmId, selfId, newMaster);
  return { recipient: newMaster, type: "system", content, to, completes: { transferTo: newMaster } };
}

/** `undefined` when it was completed before, or when the swarm is gone. */
export function completeTransfer(
  view: MeshView,
  swarmId: string,
  selfId: string,
  newMaster: string,
): Operation | undefined {
  const swarm = view.swarms.get(swarmId);
  if (swarm?.master !== selfId || !swarm.members.has(newMaster)) return undefined;
  const content = transferContent("master_changed", swarmId, selfId, newMaster);
  return {
    writes: [
      { kind: "mesh.swarm.put", swarm: { ...recordOf(swarm), master: newMaster } },
      ...[...swarm.pending.keys()].map(
        (agentId): ViewWrite => ({ kind: "mesh.pending.remove", swarmId, agentId }),
      ),
    ],
    announcements: [{ recipient: BROADCAST, type: "system", content, to: othersOf(swarm, selfId) }],
    event: { action: "master_changed", agentId: newMaster, initiatedBy: selfId },
  };
}

function transferContent(action: string, swarmId: string, oldMaster: string, newMaster: string): string {
  return JSON.stringify({
    type: "system",
    action,
    swarm_id: swarmId,
    old_master: oldMaster,
    new_master: newMaster,
    agent_id: newMaster,
  });
}

/** Who gets a message: one member, or everybody else. */
export function recipientsOf(swarm: Swarm, selfId: string, recipient: string): Member[] {
  if (recipient === BROADCAST) return othersOf(swarm, selfId);
  const wrong = checkAgentId(recipient);
  if (wrong !== undefined) throw new MeshError("invalid_message", `the recipient ${wrong}`);
  if (recipient === selfId) throw new MeshError("invalid_message", "the recipient is this agent itself");
  return [memberOf(swarm, recipient)];
}
