/** ASP: Join Swarm, at the master: one pure decision. The store enforces the invite's count again. */
import { refuse, type WireRefusal } from "../errors.js";
import { parsePublicKey } from "../identity/keys.js";
import { checkInviteTime, type ReadInvite } from "../invite/token.js";
import { LIMITS } from "../message/types.js";
import type { ViewWrite } from "../writes.js";
import type { Member, PendingJoin, Swarm } from "./types.js";

export interface JoinRequest {
  readonly invite: ReadInvite;
  readonly agentId: string;
  readonly endpoint: string;
  /** In raw form. */
  readonly publicKey: string;
  /** Whether the request is signed with this key. An extension: the reference does not sign join requests. */
  readonly proven: boolean;
  /** Whether a member only asks for the member list. Also an extension. */
  readonly asksOnly: boolean;
}

/** Whether a request proves that it comes from a member. Its invite does not matter then. */
export function isProvenMember(
  { agentId, publicKey, proven }: JoinRequest,
  swarm: Pick<Swarm, "members"> | undefined,
): boolean {
  return proven && swarm?.members.get(agentId)?.publicKey === publicKey;
}

export type JoinDecision =
  | {
      readonly refusal: WireRefusal;
      /** A member asks the wrong agent: it can be shown who the master is. */
      readonly formerMaster?: Swarm;
    }
  /** The request repeats an accepted join. Nothing changes. */
  | { readonly kind: "member"; readonly swarm: Swarm }
  | { readonly kind: "pending"; readonly swarm: Swarm; readonly writes: readonly ViewWrite[] }
  | {
      readonly kind: "admitted";
      readonly swarm: Swarm;
      readonly member: Member;
      readonly writes: readonly ViewWrite[];
    };

export function decideJoin(
  request: JoinRequest,
  swarm: Swarm | undefined,
  selfId: string,
  now: number,
): JoinDecision {
  const { invite, agentId, publicKey } = request;
  if (swarm === undefined) {
    return refuse("SWARM_NOT_FOUND", "unknown_swarm", "this agent is not a member of the swarm");
  }
  if (swarm.master !== selfId) {
    const refusal = refuse("NOT_MASTER", "not_master", "this agent is not the master of the swarm");
    return isProvenMember(request, swarm) ? { ...refusal, formerMaster: swarm } : refusal;
  }
  // For a member, an invite of a former master or key is still sufficient.
  if (isProvenMember(request, swarm)) return { kind: "member", swarm };
  const forged = checkIssuer(invite, swarm, selfId);
  if (forged !== undefined) return { refusal: forged };
  const ban = [...swarm.bans.values()].find((one) => one.agentId === agentId || one.publicKey === publicKey);
  if (ban !== undefined) return refuse("NOT_AUTHORIZED", "banned", "this agent was removed from the swarm");
  if (request.asksOnly)
    return refuse("NOT_AUTHORIZED", "not_a_member", "this agent is not a member of the swarm");
  const stale = checkInviteTime(invite.claims, now);
  if (stale !== undefined) return { refusal: stale };
  const member = swarm.members.get(agentId);
  if (member !== undefined) {
    // A request in a member's name must prove the member's key, or anyone could read the member list.
    return member.publicKey === publicKey
      ? { kind: "member", swarm }
      : refuse("NOT_AUTHORIZED", "id_taken", "another agent has this agent_id in the swarm");
  }
  const pending = swarm.pending.get(agentId);
  if (pending !== undefined && pending.publicKey === publicKey) {
    if (pending.status === "waiting") return { kind: "pending", swarm, writes: [] };
    return refuse("NOT_AUTHORIZED", "join_rejected", "the master rejected this request");
  }
  // A rejected request does not reserve its agent_id.
  if (pending?.status === "waiting") {
    return refuse("NOT_AUTHORIZED", "id_taken", "another agent has requested this agent_id");
  }
  const known = swarm.invites.get(invite.key);
  if (known?.revokedAt !== undefined) {
    return refuse("NOT_AUTHORIZED", "token_revoked", "the invite was revoked");
  }
  const maxUses = known?.maxUses ?? invite.claims.maxUses;
  if (maxUses !== undefined && (known?.uses ?? 0) >= maxUses) {
    return refuse("TOKEN_EXHAUSTED", "token_exhausted", "the invite has no uses left");
  }
  if (swarm.members.size >= LIMITS.members) {
    return refuse(
      "NOT_AUTHORIZED",
      "swarm_full",
      `the swarm has ${LIMITS.members} members, which is the limit`,
    );
  }
  const use: ViewWrite = { kind: "mesh.invite.use", invite: inviteRow(invite, swarm.id, now) };
  if (swarm.settings.requireApproval) {
    const asked: PendingJoin = {
      ...who(request),
      swarmId: swarm.id,
      inviteKey: invite.key,
      requestedAt: now,
      status: "waiting",
    };
    return { kind: "pending", swarm, writes: [use, { kind: "mesh.pending.put", pending: asked }] };
  }
  const admitted: Member = { ...who(request), joinedAt: now, inviteKey: invite.key };
  return {
    kind: "admitted",
    swarm,
    member: admitted,
    writes: [use, { kind: "mesh.member.put", swarmId: swarm.id, member: admitted }],
  };
}

/** Accepts invites of the master, and of members if the swarm's settings allow it. */
function checkIssuer(invite: ReadInvite, swarm: Swarm, selfId: string): WireRefusal | undefined {
  const issuer = invite.claims.issuer ?? selfId;
  const member = swarm.members.get(issuer);
  const key = member === undefined ? undefined : parsePublicKey(member.publicKey);
  if (key === undefined || "reason" in key || !invite.signedBy(key.key)) {
    return refuse(
      "INVALID_SIGNATURE",
      "token_signature",
      "the invite was not signed by the master or by a member that can invite",
    ).refusal;
  }
  if (issuer !== selfId && !swarm.settings.allowMemberInvite) {
    return refuse("INVITES_DISABLED", "invites_disabled", "members of this swarm cannot issue invites")
      .refusal;
  }
  return undefined;
}

function inviteRow({ key, claims }: ReadInvite, swarmId: string, now: number) {
  return {
    key,
    swarmId,
    createdAt: now,
    ...(claims.maxUses !== undefined && { maxUses: claims.maxUses }),
    ...(claims.expiresAt !== undefined && { expiresAt: claims.expiresAt }),
  };
}

function who({ agentId, endpoint, publicKey }: JoinRequest) {
  return { agentId, endpoint, publicKey };
}

/**
 * The fields that the joining agent signs. No message has such a content: messages of type system contain a JSON
 * object.
 */
export function joinFields(
  message_id: string,
  timestamp: string,
  swarm_id: string,
  master: string,
  token: string,
) {
  return {
    message_id,
    timestamp,
    swarm_id,
    recipient: master,
    type: "system",
    content: `join_request ${token}`,
  };
}
