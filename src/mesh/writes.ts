/** The row writes of the mesh. Decisions return them, the store carries them out, and the view in memory follows. */
import type { RowWrite } from "../engine/ports.js";
import type { Ban, CachedKey, Invite, Member, Mute, PendingJoin, SwarmRecord } from "./membership/types.js";
import type { BoxStatus, QueuedMessage, QueueStatus, SentMessage, SentStatus } from "./queue.js";

interface Of<Kind extends string> extends RowWrite {
  readonly kind: `mesh.${Kind}`;
}

export interface SwarmPut extends Of<"swarm.put"> {
  readonly swarm: SwarmRecord;
}
/** With its members, invites, pending joins and bans. Messages stay. */
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
/** Counts one use. Refused when the invite is used up or revoked, whatever the writer believed. */
export interface InviteUse extends Of<"invite.use"> {
  readonly invite: Pick<Invite, "key" | "swarmId" | "maxUses" | "expiresAt" | "createdAt">;
}
/** Gives a use back: the join it was reserved for was rejected. */
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
/** Whoever has this key seals what it sends. */
export interface SealPut extends Of<"seal.put"> {
  readonly publicKey: string;
  readonly since: number;
}

/** Nobody has this key any more. */
export interface SealRemove extends Of<"seal.remove"> {
  readonly publicKey: string;
}

/** What changes the view. */
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

/** Remembers that a message was taken. Refused when it was before: the batch then changes nothing. */
export interface SeenPut extends Of<"seen.put"> {
  readonly swarmId: string;
  readonly senderId: string;
  readonly messageId: string;
  readonly at: number;
}
export interface QueuePut extends Of<"queue.put"> {
  readonly message: QueuedMessage;
}
/** Moves a message on in the queue; refused unless it has one of the statuses named. */
export interface QueueMark extends Of<"queue.mark"> {
  readonly id: string;
  readonly from: readonly QueueStatus[];
  readonly status: QueueStatus;
  readonly at: number;
  readonly taskKey?: string;
}
/** Moves a message on in the inbox. No change if it is not in one of the places named. */
export interface BoxMark extends Of<"box.mark"> {
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
  /** Messages in both directions that nobody waits for: read or put away, become tasks or notes, delivered or failed. */
  readonly settledBefore?: number;
}
/** Clears all that the mesh knows but its identity, messages, and who seals: the first part of an import that replaces. */
export interface ViewClear extends Of<"clear"> {
  /** Swarms whose invites, bans and pending joins stay: no file tells of them, and forgetting them would undo them. */
  readonly sparing: readonly string[];
}

export type MeshRowWrite =
  | ViewWrite
  | SeenPut
  | QueuePut
  | QueueMark
  | BoxMark
  | SentPut
  | SentMark
  | Purge
  | ViewClear;
