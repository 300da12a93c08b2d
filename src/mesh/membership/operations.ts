/**
 * The operator's operations on memberships. Each is a pure decision: rows, announcements for the other members, and a
 * local event. Rows and announcements are committed together, so every completed operation is eventually announced.
 */
import { MailroomError } from "../../base/index.js";
import { BROADCAST, checkAgentId } from "../identity/agent-id.js";
import { toOneLine, tooLong } from "../message/check.js";
import { LIMITS, type MessageType } from "../message/types.js";
import { formatTime } from "../time.js";
import type { ViewWrite } from "../writes.js";
import { handoverTime, lastOf, proofsOf, writeHandover } from "./handover.js";
import { writeSystemContent } from "./system-content.js";
import type {
  Ban,
  HandoverProof,
  LifecycleEvent,
  Member,
  MembershipView,
  PendingJoin,
  Swarm,
  SwarmRecord,
  SwarmSettings,
} from "./types.js";

/** One message to several members, with the same id and content. */
export interface Announcement {
  readonly recipient: string;
  readonly type: MessageType;
  readonly content: string;
  readonly to: readonly Member[];
  /** The operation that the recipient's acceptance completes. */
  readonly completes?: { readonly transferTo: string };
}

export interface Operation {
  readonly writes: readonly ViewWrite[];
  readonly announcements: readonly Announcement[];
  readonly event?: LifecycleEvent;
}

export function requireSwarm(view: MembershipView, swarmId: string): Swarm {
  const swarm = view.swarms.get(swarmId);
  if (swarm === undefined)
    throw new MailroomError("swarm_not_found", `this agent is not a member of swarm ${swarmId}`);
  return swarm;
}

export function requireMasteredSwarm(view: MembershipView, swarmId: string, selfId: string): Swarm {
  const swarm = requireSwarm(view, swarmId);
  if (swarm.master !== selfId) {
    throw new MailroomError("not_master", `only the master of ${swarm.name}, ${swarm.master}, can do this`);
  }
  return swarm;
}

function requireMember(swarm: Swarm, agentId: string): Member {
  const member = swarm.members.get(agentId);
  if (member === undefined)
    throw new MailroomError("member_not_found", `${agentId} is not a member of ${swarm.name}`);
  return member;
}

export function otherMembers(swarm: Swarm, ...except: readonly string[]): Member[] {
  return [...swarm.members.values()].filter(({ agentId }) => !except.includes(agentId));
}

export function toSwarmRecord({
  id,
  name,
  master,
  joinedAt,
  settings,
  alias,
  handovers,
}: SwarmRecord): SwarmRecord {
  return { id, name, master, joinedAt, settings, alias, ...(handovers !== undefined && { handovers }) };
}

export function createSwarm(
  self: Member,
  { id, name, alias, settings }: { id: string; name: string; alias: string; settings: SwarmSettings },
): Operation {
  if (name.trim() === "" || tooLong(name, LIMITS.nameCharacters) || toOneLine(name) !== name) {
    throw new MailroomError(
      "invalid_name",
      `the name of a swarm must be one line of 1 to ${LIMITS.nameCharacters} characters`,
    );
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

/** ASP: Join Swarm, side effect. Includes the key, so that members need not fetch it. */
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
    to: otherMembers(swarm, swarm.master, agentId),
  };
}

export function approveJoin(
  view: MembershipView,
  swarmId: string,
  selfId: string,
  agentId: string,
  now: number,
): Operation {
  const swarm = requireMasteredSwarm(view, swarmId, selfId);
  const pending = swarm.pending.get(agentId);
  if (pending === undefined)
    throw new MailroomError("member_not_found", `${agentId} has not requested to join ${swarm.name}`);
  if (swarm.members.size >= LIMITS.members) {
    throw new MailroomError("not_allowed", `${swarm.name} has ${LIMITS.members} members, which is the limit`);
  }
  const { endpoint, publicKey, inviteKey } = pending;
  const member: Member = { agentId, endpoint, publicKey, joinedAt: now, inviteKey };
  return {
    writes: [
      ...useAgain(swarm, pending),
      { kind: "mesh.pending.remove", swarmId, agentId },
      { kind: "mesh.member.put", swarmId, member },
    ],
    // The joining agent is notified too: it asks again, and is then a member.
    announcements: [
      announceJoin(swarm, member),
      { ...announceJoin(swarm, member), recipient: agentId, to: [member] },
    ],
    event: { action: "member_joined", agentId, initiatedBy: selfId },
  };
}

/** The rejection released a use of the invite; the approval requires one again. */
function useAgain(swarm: Swarm, { status, inviteKey, agentId }: PendingJoin): ViewWrite[] {
  if (status === "waiting") return [];
  const invite = swarm.invites.get(inviteKey);
  const isLeft = invite?.maxUses === undefined || invite.uses < invite.maxUses;
  if (invite === undefined || invite.revokedAt !== undefined || !isLeft) {
    throw new MailroomError(
      "invalid_invite",
      `${agentId} was rejected, and its invite has since been used up or revoked: issue another invite`,
    );
  }
  return [{ kind: "mesh.invite.use", invite }];
}

export function rejectJoin(
  view: MembershipView,
  swarmId: string,
  selfId: string,
  agentId: string,
): Operation {
  const swarm = requireMasteredSwarm(view, swarmId, selfId);
  const pending = swarm.pending.get(agentId);
  // An earlier rejection has already released the use of the invite.
  if (pending?.status !== "waiting")
    throw new MailroomError("member_not_found", `${agentId} is not waiting to join ${swarm.name}`);
  return {
    writes: [
      { kind: "mesh.pending.put", pending: { ...pending, status: "rejected" } },
      { kind: "mesh.invite.release", swarmId, key: pending.inviteKey },
    ],
    announcements: [],
  };
}

export function leaveSwarm(view: MembershipView, swarmId: string, selfId: string): Operation {
  const swarm = requireSwarm(view, swarmId);
  if (swarm.master === selfId) {
    throw new MailroomError(
      "is_master",
      `the master of ${swarm.name} cannot leave: transfer or dissolve the swarm`,
    );
  }
  const joinedAt = swarm.members.get(selfId)?.joinedAt;
  const joined = joinedAt === undefined ? {} : { joined_at: formatTime(joinedAt) };
  return {
    writes: [{ kind: "mesh.swarm.remove", swarmId }],
    announcements: [
      {
        recipient: BROADCAST,
        type: "system",
        // Names the membership that ends, so that a later one outlasts a copy of this message.
        content: writeSystemContent("member_left", selfId, joined),
        to: otherMembers(swarm, selfId),
      },
    ],
    event: { action: "member_left", agentId: selfId },
  };
}

export function dissolveSwarm(
  view: MembershipView,
  swarmId: string,
  selfId: string,
  reason?: string,
): Operation {
  const swarm = requireMasteredSwarm(view, swarmId, selfId);
  const content = writeSystemContent("swarm_dissolved", selfId, { reason });
  return {
    writes: [{ kind: "mesh.swarm.remove", swarmId }],
    announcements: [{ recipient: BROADCAST, type: "system", content, to: otherMembers(swarm, selfId) }],
    event: { action: "swarm_dissolved", agentId: selfId },
  };
}

/** Removes a member and bans it until it is unbanned. */
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

/** @param at when another master kicked the member */
export function announceKick(
  swarm: Swarm,
  { agentId, reason }: Pick<Ban, "agentId" | "reason">,
  at?: number,
): Announcement {
  const kickedAt = at === undefined ? {} : { kicked_at: formatTime(at) };
  return {
    recipient: BROADCAST,
    type: "system",
    content: writeSystemContent("member_kicked", agentId, { reason, ...kickedAt }),
    to: otherMembers(swarm, swarm.master, agentId),
  };
}

/** The member is removed before it is notified, so the kick is effective even if it is unreachable. */
export function kickMember(
  view: MembershipView,
  swarmId: string,
  selfId: string,
  { agentId, reason, now }: { agentId: string; reason?: string; now: number },
): Operation {
  const swarm = requireMasteredSwarm(view, swarmId, selfId);
  if (agentId === selfId) throw new MailroomError("is_master", "the master cannot kick itself");
  const member = requireMember(swarm, agentId);
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
      announceKick(swarm, { agentId, ...why }),
    ],
    event: { action: "member_kicked", agentId, initiatedBy: selfId, ...why },
  };
}

/** How long a new master waits for the proof of the old one before it hands the swarm on without it. */
const CONFIRMATION = 3_600_000;

/**
 * ASP: Transfer Master Role. Sends only the offer to the new master. When it accepts, `completeTransfer` is committed
 * with the outcome. Until then the old master remains the master.
 */
export function offerTransfer(
  view: MembershipView,
  swarmId: string,
  selfId: string,
  { newMaster, now }: { newMaster: string; now: number },
): Announcement {
  const swarm = requireMasteredSwarm(view, swarmId, selfId);
  if (newMaster === selfId) throw new MailroomError("is_master", `${selfId} is already the master`);
  const to = [requireMember(swarm, newMaster)];
  const last = swarm.handovers?.at(-1);
  if (last?.to === selfId && last.proof === undefined && now - last.at < CONFIRMATION) {
    throw new MailroomError(
      "transfer_open",
      `${last.from} has not confirmed the transfer to ${selfId} yet: try again later`,
    );
  }
  const content = JSON.stringify({
    type: "system",
    action: "master_transfer",
    swarm_id: swarmId,
    old_master: selfId,
    new_master: newMaster,
    agent_id: newMaster,
  });
  return { recipient: newMaster, type: "system", content, to, completes: { transferTo: newMaster } };
}

export interface TransferCompletion {
  readonly newMaster: string;
  readonly now: number;
  /** Signs the content of a message to all members. */
  readonly prove: (content: string) => HandoverProof;
}

/** Returns `undefined` when the transfer was completed before, or the swarm no longer exists. */
export function completeTransfer(
  view: MembershipView,
  swarmId: string,
  selfId: string,
  { newMaster, now, prove }: TransferCompletion,
): Operation | undefined {
  const swarm = view.swarms.get(swarmId);
  const to = swarm?.members.get(newMaster);
  if (swarm?.master !== selfId || to === undefined) return undefined;
  const at = handoverTime(swarm, now);
  const proof = prove(writeHandover({ swarmId, from: selfId, to, at }));
  const handovers = lastOf([...(swarm.handovers ?? []), { from: selfId, to: newMaster, at, proof }]);
  return {
    writes: [
      { kind: "mesh.swarm.put", swarm: { ...toSwarmRecord(swarm), master: newMaster, handovers } },
      ...[...swarm.pending.keys()].map(
        (agentId): ViewWrite => ({ kind: "mesh.pending.remove", swarmId, agentId }),
      ),
    ],
    announcements: [announceMaster({ ...swarm, master: newMaster, handovers }, otherMembers(swarm, selfId))],
    event: { action: "master_changed", agentId: newMaster, initiatedBy: selfId },
  };
}

/** Announces the master to members, with the proofs. The last change must be the one to this master. */
export function announceMaster(swarm: Swarm, to: readonly Member[]): Announcement {
  const last = swarm.handovers?.at(-1);
  const master = requireMember(swarm, swarm.master);
  const { from = swarm.master, at = swarm.joinedAt } = last ?? {};
  const content = writeHandover({ swarmId: swarm.id, from, to: master, at, proofs: proofsOf(swarm) });
  return { recipient: BROADCAST, type: "system", content, to };
}

/** Returns the recipients of a message: one member, or all others. */
export function recipientsFor(swarm: Swarm, selfId: string, recipient: string): Member[] {
  if (recipient === BROADCAST) return otherMembers(swarm, selfId);
  const wrong = checkAgentId(recipient);
  if (wrong !== undefined) throw new MailroomError("invalid_message", `the recipient ${wrong}`);
  if (recipient === selfId) throw new MailroomError("invalid_message", "the recipient is this agent");
  return [requireMember(swarm, recipient)];
}
