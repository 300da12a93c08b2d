/** What the decisions of a conversation share. */
import { type ConversationState, lastTime } from "./state.js";
import type { Identity, Participant, ParticipantRole, Permissions } from "./types.js";

/** What a decision needs of the world, handed in so that it stays pure. */
export interface Moment {
  readonly now: number;
  readonly id: (prefix: "turn" | "thread") => string;
  readonly identify: (id: string) => Identity;
}

export interface DomainRules {
  /** Default 10; a thread that is in no other has depth 1. */
  readonly maxThreadDepth: number;
  readonly closing: "leaders" | "members";
  /** Agents that a member with `canInvite` writes to become members by it (map-mail 3.8). */
  readonly autoEnrol: boolean;
}

export const DEFAULT_RULES: DomainRules = { maxThreadDepth: 10, closing: "leaders", autoEnrol: true };

/** Timestamps never go backwards inside a conversation, whatever the clock does. */
export function timeIn(state: ConversationState, { now }: Moment): number {
  return Math.max(now, lastTime(state));
}

export function newParticipant(
  id: string,
  grant: { readonly role: ParticipantRole; readonly permissions: Permissions },
  at: number,
  moment: Moment,
  invitation?: Participant["_meta"],
): Participant {
  const { type, agentInfo } = moment.identify(id);
  return {
    id,
    type,
    role: grant.role,
    joinedAt: at,
    permissions: grant.permissions,
    ...(agentInfo !== undefined && { agentInfo }),
    ...(invitation !== undefined && { _meta: invitation }),
  };
}
