/** Replaces the agent's key: announced to every swarm with the old key, and proven with the new one. */
import type { RowWrite } from "../../journal/index.js";
import type { MeshContext } from "../context.js";
import { BROADCAST } from "../identity/agent-id.js";
import type { NextKey } from "../identity/key-file.js";
import { otherMembers } from "../membership/operations.js";
import { rotationText, writeSystemContent } from "../membership/system-content.js";
import type { Swarm } from "../membership/types.js";
import type { ViewWrite } from "../writes.js";

/**
 * Takes effect with one commit for all swarms. A member that misses the announcement fetches the key from the
 * endpoint (ASP: Key Refresh).
 */
export function rotateKey(
  context: MeshContext,
  next: Pick<NextKey, "pair" | "install">,
): Promise<{ readonly revokedInvites: number }> {
  return context.exclusive(async () => {
    const swarms = [...context.view.swarms.values()];
    const writes = swarms.map((swarm) => ownKey(context, swarm, next.pair.publicKey.text));
    const told = swarms.flatMap((swarm) => announcement(context, swarm, next));
    const invites = swarms.flatMap((swarm) => endedInvites(context, swarm));
    await context.parts.store.commit({ appends: [], rows: [...writes, ...invites, ...told] });
    context.follow([...writes, ...invites]);
    context.usePair(next.pair);
    context.onOutgoing();
    next.install();
    return { revokedInvites: invites.length };
  });
}

/** Invites are signed with the old key, which members no longer accept. */
function endedInvites({ id, now }: MeshContext, { id: swarmId, master, invites }: Swarm): ViewWrite[] {
  if (master !== id) return [];
  return [...invites.values()]
    .filter(({ revokedAt, expiresAt }) => revokedAt === undefined && (expiresAt ?? now + 1) > now)
    .map(({ key }) => ({ kind: "mesh.invite.revoke", swarmId, key, at: now }));
}

function ownKey({ self }: MeshContext, { id: swarmId, members }: Swarm, publicKey: string): ViewWrite {
  const member = { ...(members.get(self.agentId) ?? self), publicKey };
  return { kind: "mesh.member.put", swarmId, member };
}

/** Signed now, because the old key is about to be replaced. */
function announcement(context: MeshContext, swarm: Swarm, { pair }: Pick<NextKey, "pair">): RowWrite[] {
  const public_key = pair.publicKey.text;
  const proof = pair.sign(rotationText(swarm.id, context.id, public_key)).toString("base64");
  const content = writeSystemContent("key_rotated", context.id, { public_key, proof });
  const to = otherMembers(swarm, context.id);
  const outgoing = {
    recipient: BROADCAST,
    type: "system",
    content,
    to,
    signNow: true,
  } as const;
  return context.outgoingRows(swarm.id, outgoing).rows;
}
