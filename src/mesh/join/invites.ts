/** Issues and revokes invites. */
import { MailroomError } from "../../base/index.js";
import type { MeshContext } from "../context.js";
import { readInvite, signInvite } from "../invite/token.js";
import { formatInviteUrl } from "../invite/url.js";
import { requireMasteredSwarm, requireSwarm } from "../membership/operations.js";
import type { Invite } from "../membership/types.js";

export interface InviteInput {
  /** Milliseconds; `null` for an invite that never expires. */
  readonly lifetime?: number | null;
  readonly maxUses?: number;
}

/** The last time that the protocol can represent. */
const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59);

/** Returns an invite URL. Members can issue invites if the swarm's settings allow it. */
export async function issueInvite(
  context: MeshContext,
  swarmId: string,
  { lifetime, maxUses }: InviteInput,
): Promise<string> {
  if (maxUses !== undefined && (!Number.isSafeInteger(maxUses) || maxUses < 1)) {
    throw new MailroomError("invalid_invite", "the number of uses must be a positive integer");
  }
  return context.exclusive(async () => {
    const swarm = requireSwarm(context.view, swarmId);
    const isMaster = swarm.master === context.id;
    if (!isMaster && !swarm.settings.allowMemberInvite) {
      throw new MailroomError(
        "not_allowed",
        `only the master of ${swarm.name}, ${swarm.master}, can issue invites`,
      );
    }
    const master = swarm.members.get(swarm.master);
    if (master === undefined)
      throw new MailroomError("member_not_found", `the master ${swarm.master} is not in the member list`);
    const now = context.now;
    const span = lifetime === undefined ? context.parts.options.inviteLifetime : lifetime;
    if (span !== null && !(now + span <= LAST_TIME)) {
      throw new MailroomError(
        "invalid_invite",
        "the invite would be valid beyond the year 9999: issue one that never expires",
      );
    }
    const claims = {
      swarmId,
      master: swarm.master,
      endpoint: master.endpoint,
      issuedAt: Math.floor(now / 1_000),
      tokenId: context.parts.ids.uuid(),
      ...(span !== null && { expiresAt: now + span }),
      ...(maxUses !== undefined && { maxUses }),
      ...(!isMaster && { issuer: context.id }),
    };
    const token = signInvite(claims, context.pair);
    const reading = readInvite(token);
    if ("refusal" in reading) throw new MailroomError("invalid_invite", reading.refusal.message);
    if (isMaster) {
      const invite: Invite = {
        key: reading.invite.key,
        swarmId,
        uses: 0,
        createdAt: now,
        ...(claims.expiresAt !== undefined && { expiresAt: claims.expiresAt }),
        ...(maxUses !== undefined && { maxUses }),
      };
      await context.commit([{ kind: "mesh.invite.put", invite }], swarmId);
    }
    return formatInviteUrl(swarmId, master.endpoint, token);
  });
}

/** Revokes an invite, given by its listed key or its URL. */
export function revokeInvite(context: MeshContext, swarmId: string, keyOrUrl: string): Promise<void> {
  return context.exclusive(async () => {
    const swarm = requireMasteredSwarm(context.view, swarmId, context.id);
    const token = /[?&]token=([^&#\s]+)/u.exec(keyOrUrl)?.[1];
    const reading = token === undefined ? undefined : readInvite(token);
    const key = reading !== undefined && "invite" in reading ? reading.invite.key : keyOrUrl;
    if (!swarm.invites.has(key)) throw new MailroomError("invalid_invite", "unknown invite");
    await context.commit([{ kind: "mesh.invite.revoke", swarmId, key, at: context.now }], swarmId);
  });
}
