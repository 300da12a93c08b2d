/** ASP: Join Swarm, at the master. One pure decision; the store's conditions stand behind it. */
import { type Refusal, refuse } from "../errors.js";
import { parsePublicKey } from "../identity/keys.js";
import { checkInviteTime, type ReadInvite } from "../invite/token.js";
import type { ViewWrite } from "../writes.js";
import type { Member, PendingJoin, Swarm } from "./types.js";

export interface JoinRequest {
  readonly invite: ReadInvite;
  readonly agentId: string;
  readonly endpoint: string;
  /** In its raw form. */
  readonly publicKey: string;
  /** The joiner signed the request with this key. Ours: the reference sends nothing of the kind. */
  readonly proven: boolean;
  /** Only asks who is in, as the member that it is; ours, too. */
  readonly asksOnly: boolean;
}

/** Whether a request comes from a member, beyond doubt. What invite it has does not matter then. */
export function isProvenMember(
  { agentId, publicKey, proven }: JoinRequest,
  swarm: Pick<Swarm, "members"> | undefined,
): boolean {
  return proven && swarm?.members.get(agentId)?.publicKey === publicKey;
}

export type JoinDecision =
  | { readonly refusal: Refusal }
  /** The request repeats a join that was accepted. Nothing changes. */
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
    return refuse("SWARM_NOT_FOUND", "unknown_swarm", "this agent is not in the swarm");
  }
  if (swarm.master !== selfId) {
    return refuse("NOT_MASTER", "not_master", "this agent is not the master of the swarm");
  }
  // An invite of a master or a key that has been replaced is as good as any for who is in already.
  if (isProvenMember(request, swarm)) return { kind: "member", swarm };
  const forged = checkIssuer(invite, swarm, selfId);
  if (forged !== undefined) return { refusal: forged };
  const ban = [...swarm.bans.values()].find((one) => one.agentId === agentId || one.publicKey === publicKey);
  if (ban !== undefined) return refuse("NOT_AUTHORIZED", "banned", "this agent was removed from the swarm");
  if (request.asksOnly) return refuse("NOT_AUTHORIZED", "not_a_member", "this agent is not in the swarm");
  const stale = checkInviteTime(invite.claims, now);
  if (stale !== undefined) return { refusal: stale };
  const member = swarm.members.get(agentId);
  if (member !== undefined) {
    // Whoever names a member must have the member's key, or the list of members would be anybody's.
    return member.publicKey === publicKey
      ? { kind: "member", swarm }
      : refuse("NOT_AUTHORIZED", "id_taken", "another agent has this agent_id in the swarm");
  }
  const pending = swarm.pending.get(agentId);
  if (pending !== undefined && pending.publicKey === publicKey) {
    if (pending.status === "waiting") return { kind: "pending", swarm, writes: [] };
    return refuse("NOT_AUTHORIZED", "join_rejected", "the master rejected this request");
  }
  // Who was rejected holds no name.
  if (pending?.status === "waiting") {
    return refuse("NOT_AUTHORIZED", "id_taken", "another agent has asked for this agent_id");
  }
  const known = swarm.invites.get(invite.key);
  if (known?.revokedAt !== undefined) {
    return refuse("NOT_AUTHORIZED", "token_revoked", "the invite was revoked");
  }
  const maxUses = known?.maxUses ?? invite.claims.maxUses;
  if (maxUses !== undefined && (known?.uses ?? 0) >= maxUses) {
    return refuse("TOKEN_EXHAUSTED", "token_exhausted", "the invite has been used as often as it may be");
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
  const admitted: Member = { ...who(request), joinedAt: now };
  return {
    kind: "admitted",
    swarm,
    member: admitted,
    writes: [use, { kind: "mesh.member.put", swarmId: swarm.id, member: admitted }],
  };
}

/** Invites of the master, and of members where the swarm's settings allow it. */
function checkIssuer(invite: ReadInvite, swarm: Swarm, selfId: string): Refusal | undefined {
  const issuer = invite.claims.issuer ?? selfId;
  const member = swarm.members.get(issuer);
  const key = member === undefined ? undefined : parsePublicKey(member.publicKey);
  if (key === undefined || "reason" in key || !invite.signedBy(key.key)) {
    return refuse("INVALID_SIGNATURE", "token_signature", "the invite was not signed by who could").refusal;
  }
  if (issuer !== selfId && !swarm.settings.allowMemberInvite) {
    return refuse("INVITES_DISABLED", "invites_disabled", "members of this swarm may not invite").refusal;
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
