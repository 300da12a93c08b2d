/**
 * The row writes of the mesh. Decisions return them, the store executes them, and the membership state applies them.
 */
import type { RowWrite } from "../journal/index.js";
import type { Ban, CachedKey, Invite, Member, Mute, PendingJoin, SwarmRecord } from "./membership/types.js";
import type { BoxStatus, QueuedMessage, QueueStatus, SentMessage, SentStatus } from "./messages.js";

interface Of<Kind extends string> extends RowWrite {
  readonly kind: `mesh.${Kind}`;
}

export interface SwarmPut extends Of<"swarm.put"> {
  readonly swarm: SwarmRecord;
}
/** Includes its members, invites, pending joins and bans. Messages are kept. */
export interface SwarmRemove extends Of<"swarm.remove"> {
  readonly swarmId: string;
}
export interface MemberPut extends Of<"member.put"> {
  readonly swarmId: string;
  readonly member: Member;
}
export interface MemberRemove extends Of<"member.remove"> {
  readonly swarmId: string;
  readonly agentId: string;
}
export interface InvitePut extends Of<"invite.put"> {
  readonly invite: Invite;
}
/** Counts one use. Refused when the invite is used up or revoked in the store. */
export interface InviteUse extends Of<"invite.use"> {
  readonly invite: Pick<Invite, "key" | "swarmId" | "maxUses" | "expiresAt" | "createdAt">;
}
/** Releases a use, after the join that reserved it was rejected. */
export interface InviteRelease extends Of<"invite.release"> {
  readonly swarmId: string;
  readonly key: string;
}
export interface InviteRevoke extends Of<"invite.revoke"> {
  readonly swarmId: string;
  readonly key: string;
  readonly at: number;
}
export interface PendingPut extends Of<"pending.put"> {
  readonly pending: PendingJoin;
}
export interface PendingRemove extends Of<"pending.remove"> {
  readonly swarmId: string;
  readonly agentId: string;
}
export interface BanPut extends Of<"ban.put"> {
  readonly ban: Ban;
}
export interface BanRemove extends Of<"ban.remove"> {
  readonly swarmId: string;
  readonly agentId: string;
}
export interface MutePut extends Of<"mute.put"> {
  readonly mute: Mute;
}
export interface MuteRemove extends Of<"mute.remove"> {
  readonly of: Mute["of"];
  readonly id: string;
}
export interface KeyPut extends Of<"key.put"> {
  readonly key: CachedKey;
}
/** The owner of this key seals its messages. */
export interface SealPut extends Of<"seal.put"> {
  readonly publicKey: string;
  readonly since: number;
}

/** The key is no longer in use. */
export interface SealRemove extends Of<"seal.remove"> {
  readonly publicKey: string;
}

/** Writes that change the membership state. */
export type ViewWrite =
  | SwarmPut
  | SwarmRemove
  | MemberPut
  | MemberRemove
  | InvitePut
  | InviteUse
  | InviteRelease
  | InviteRevoke
  | PendingPut
  | PendingRemove
  | BanPut
  | BanRemove
  | MutePut
  | MuteRemove
  | KeyPut
  | SealPut
  | SealRemove;

/** Records that a message was accepted. Refused if it was recorded before; the batch then changes nothing. */
export interface SeenPut extends Of<"seen.put"> {
  readonly swarmId: string;
  readonly senderId: string;
  readonly messageId: string;
  readonly at: number;
}
export interface QueuePut extends Of<"queue.put"> {
  readonly message: QueuedMessage;
}
/** Changes the status of a queued message. Refused unless it has one of the statuses in `from`. */
export interface QueueStatusChange extends Of<"queue.mark"> {
  readonly id: string;
  readonly from: readonly QueueStatus[];
  readonly status: QueueStatus;
  readonly at: number;
  readonly taskKey?: string;
}
/** Moves a message in the inbox. No change unless it has one of the statuses in `from`. */
export interface InboxMove extends Of<"box.mark"> {
  readonly id: string;
  readonly from: readonly BoxStatus[];
  readonly status: BoxStatus;
  readonly at: number;
}
export interface SentPut extends Of<"sent.put"> {
  readonly sent: SentMessage;
}
export interface SentMark extends Of<"sent.mark"> {
  readonly messageId: string;
  readonly recipientId: string;
  readonly status: SentStatus;
  readonly at: number;
  readonly error?: string;
}
export interface Purge extends Of<"purge"> {
  readonly seenBefore?: number;
  readonly deletedBefore?: number;
  readonly archivedBefore?: number;
  /** Finished messages in both directions: read or archived, processed, delivered or failed. */
  readonly settledBefore?: number;
}
/** Removes everything but identity, messages and seals: the first part of an import that replaces the state. */
export interface ViewClear extends Of<"clear"> {
  /** Swarms whose invites, bans and pending joins are kept: state files do not contain them, so they would be lost. */
  readonly sparing: readonly string[];
}

export type MeshRowWrite =
  | ViewWrite
  | SeenPut
  | QueuePut
  | QueueStatusChange
  | InboxMove
  | SentPut
  | SentMark
  | Purge
  | ViewClear;
