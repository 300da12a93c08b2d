/** Membership in memory: all committed writes, applied in commit order. */
import type {
  Ban,
  CachedKey,
  Invite,
  Member,
  MembershipView,
  Mute,
  PendingJoin,
  Swarm,
  SwarmRecord,
} from "./membership/types.js";
import type { ViewWrite } from "./writes.js";

interface LiveSwarm extends Swarm {
  readonly members: Map<string, Member>;
  readonly invites: Map<string, Invite>;
  readonly pending: Map<string, PendingJoin>;
  readonly bans: Map<string, Ban>;
}

export class MembershipState implements MembershipView {
  readonly swarms = new Map<string, LiveSwarm>();
  readonly mutedAgents = new Map<string, Mute>();
  readonly mutedSwarms = new Map<string, Mute>();
  readonly keys = new Map<string, CachedKey>();
  readonly sealingKeys = new Map<string, number>();
  readonly #changes = new Map<string, number>();

  /**
   * Increases with every change of a swarm's members or bans, so that a decision can detect that its input is
   * outdated.
   */
  changesOf(swarmId: string): number {
    return this.#changes.get(swarmId) ?? 0;
  }

  clear(): void {
    for (const map of [this.swarms, this.mutedAgents, this.mutedSwarms, this.keys, this.sealingKeys])
      map.clear();
  }

  apply(write: ViewWrite): void {
    this.#count(write);
    switch (write.kind) {
      case "mesh.swarm.put":
        this.#putSwarm(write.swarm);
        return;
      case "mesh.swarm.remove":
        this.swarms.delete(write.swarmId);
        return;
      case "mesh.member.put":
        this.swarms.get(write.swarmId)?.members.set(write.member.agentId, write.member);
        return;
      case "mesh.member.remove":
        this.swarms.get(write.swarmId)?.members.delete(write.agentId);
        return;
      case "mesh.invite.put":
        this.swarms.get(write.invite.swarmId)?.invites.set(write.invite.key, write.invite);
        return;
      case "mesh.invite.use":
        this.#changeInvite(write.invite.swarmId, write.invite.key, (invite) => ({
          ...(invite ?? { ...write.invite, uses: 0 }),
          uses: (invite?.uses ?? 0) + 1,
        }));
        return;
      case "mesh.invite.release":
        this.#changeInvite(write.swarmId, write.key, (invite) =>
          invite === undefined ? undefined : { ...invite, uses: Math.max(0, invite.uses - 1) },
        );
        return;
      case "mesh.invite.revoke":
        this.#changeInvite(write.swarmId, write.key, (invite) =>
          invite === undefined ? undefined : { ...invite, revokedAt: write.at },
        );
        return;
      case "mesh.pending.put":
        this.swarms.get(write.pending.swarmId)?.pending.set(write.pending.agentId, write.pending);
        return;
      case "mesh.pending.remove":
        this.swarms.get(write.swarmId)?.pending.delete(write.agentId);
        return;
      case "mesh.ban.put":
        this.swarms.get(write.ban.swarmId)?.bans.set(write.ban.agentId, write.ban);
        return;
      case "mesh.ban.remove":
        this.swarms.get(write.swarmId)?.bans.delete(write.agentId);
        return;
      case "mesh.mute.put":
        this.#mutes(write.mute.of).set(write.mute.id, write.mute);
        return;
      case "mesh.mute.remove":
        this.#mutes(write.of).delete(write.id);
        return;
      case "mesh.key.put":
        this.keys.set(write.key.agentId, write.key);
        return;
      case "mesh.seal.put":
        this.sealingKeys.set(write.publicKey, write.since);
        return;
      case "mesh.seal.remove":
        this.sealingKeys.delete(write.publicKey);
        return;
      default:
        write satisfies never;
    }
  }

  #count(write: ViewWrite): void {
    const swarmId = changedSwarm(write);
    if (swarmId !== undefined) this.#changes.set(swarmId, this.changesOf(swarmId) + 1);
  }

  #putSwarm(record: SwarmRecord): void {
    const old = this.swarms.get(record.id);
    this.swarms.set(record.id, {
      ...record,
      members: old?.members ?? new Map(),
      invites: old?.invites ?? new Map(),
      pending: old?.pending ?? new Map(),
      bans: old?.bans ?? new Map(),
    });
  }

  #changeInvite(
    swarmId: string,
    key: string,
    change: (invite: Invite | undefined) => Invite | undefined,
  ): void {
    const invites = this.swarms.get(swarmId)?.invites;
    const changed = change(invites?.get(key));
    if (changed !== undefined) invites?.set(key, changed);
  }

  #mutes(of: Mute["of"]): Map<string, Mute> {
    return of === "agent" ? this.mutedAgents : this.mutedSwarms;
  }
}

/** The swarm whose members or bans a write changes. */
function changedSwarm(write: ViewWrite): string | undefined {
  switch (write.kind) {
    case "mesh.swarm.put":
      return write.swarm.id;
    case "mesh.ban.put":
      return write.ban.swarmId;
    case "mesh.swarm.remove":
    case "mesh.member.put":
    case "mesh.member.remove":
    case "mesh.ban.remove":
      return write.swarmId;
    default:
      return undefined;
  }
}
