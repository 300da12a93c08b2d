/** Making invites, and making them worthless. */
import type { MeshCore } from "../core.js";
import { MeshError } from "../errors.js";
import { masteredSwarm, swarmOf } from "../membership/operations.js";
import type { Invite } from "../membership/types.js";
import { readInvite, signInvite } from "./token.js";
import { formatInviteUrl } from "./url.js";

export interface InviteInput {
  /** Milliseconds; `null` for an invite that never expires. */
  readonly lifetime?: number | null;
  readonly maxUses?: number;
}

/** Beyond it the protocol has no spelling of a time. */
const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59);

/** An invite URL. Members may make one where the swarm's settings allow it. */
export async function issueInvite(
  core: MeshCore,
  swarmId: string,
  { lifetime, maxUses }: InviteInput,
): Promise<string> {
  if (maxUses !== undefined && (!Number.isSafeInteger(maxUses) || maxUses < 1)) {
    throw new MeshError("invalid_invite", "the number of uses must be a positive integer");
  }
  return core.exclusive(async () => {
    const swarm = swarmOf(core.view, swarmId);
    const isMaster = swarm.master === core.id;
    if (!isMaster && !swarm.settings.allowMemberInvite) {
      throw new MeshError("not_allowed", `only the master of ${swarm.name}, ${swarm.master}, may invite`);
    }
    const master = swarm.members.get(swarm.master);
    if (master === undefined) throw new MeshError("member_not_found", `${swarm.master} is unknown here`);
    const now = core.now;
    const span = lifetime === undefined ? core.parts.options.inviteLifetime : lifetime;
    if (span !== null && !(now + span <= LAST_TIME)) {
      throw new MeshError(
        "invalid_invite",
        "the invite would be valid beyond the year 9999: make one that never expires",
      );
    }
    const claims = {
      swarmId,
      master: swarm.master,
      endpoint: master.endpoint,
      issuedAt: Math.floor(now / 1_000),
      tokenId: core.parts.ids.uuid(),
      ...(span !== null && { expiresAt: now + span }),
      ...(maxUses !== undefined && { maxUses }),
      ...(!isMaster && { issuer: core.id }),
    };
    const token = signInvite(claims, core.pair);
    const reading = readInvite(token);
    if ("refusal" in reading) throw new MeshError("invalid_invite", reading.refusal.message);
    if (isMaster) {
      const invite: Invite = {
        key: reading.invite.key,
        swarmId,
        uses: 0,
        createdAt: now,
        ...(claims.expiresAt !== undefined && { expiresAt: claims.expiresAt }),
        ...(maxUses !== undefined && { maxUses }),
      };
      await core.commit([{ kind: "mesh.invite.put", invite }], swarmId);
    }
    return formatInviteUrl(swarmId, master.endpoint, token);
  });
}

/** By the key under which it is listed, or by the invite itself. */
export function revokeInvite(core: MeshCore, swarmId: string, keyOrUrl: string): Promise<void> {
  return core.exclusive(async () => {
    const swarm = masteredSwarm(core.view, swarmId, core.id);
    const token = /[?&]token=([^&#\s]+)/u.exec(keyOrUrl)?.[1];
    const reading = token === undefined ? undefined : readInvite(token);
    const key = reading !== undefined && "invite" in reading ? reading.invite.key : keyOrUrl;
    if (!swarm.invites.has(key)) throw new MeshError("invalid_invite", "there is no such invite here");
    await core.commit([{ kind: "mesh.invite.revoke", swarmId, key, at: core.now }], swarmId);
  });
}
