/** What all decisions about a conversation need. */

import type { Joined, Reservation } from "./entries.js";
import { type ConversationState, lastTime } from "./state.js";
import type { Participant, ParticipantIdentity, ParticipantRole, Permissions } from "./types.js";

/** The inputs of a decision from outside the journal. They are passed in so that decisions stay pure. */
export interface DecisionContext {
  readonly now: number;
  readonly id: (prefix: "turn" | "thread") => string;
  readonly identify: (id: string) => ParticipantIdentity;
  /** The reservation of an id without an owner. @throws MapError AGENT_EXISTS if another caller has reserved it */
  readonly reservation: (id: string) => Reservation | undefined;
}

/** Timestamps never decrease within a conversation, even when the clock is set back. */
export function timeIn(state: ConversationState, { now }: DecisionContext): number {
  return Math.max(now, lastTime(state));
}

export function joinedEntry(
  id: string,
  grant: { readonly role: ParticipantRole; readonly permissions: Permissions },
  {
    at,
    by,
    invitation,
  }: { readonly at: number; readonly by: string; readonly invitation?: Participant["_meta"] },
  context: DecisionContext,
): Joined {
  const { type, agentInfo, principal } = context.identify(id);
  const reserves = context.reservation(id);
  return {
    t: "joined",
    at,
    by,
    participant: {
      id,
      type,
      role: grant.role,
      joinedAt: at,
      permissions: grant.permissions,
      ...(agentInfo !== undefined && { agentInfo }),
      ...(invitation !== undefined && { _meta: invitation }),
    },
    ...(principal !== undefined && { principal }),
    ...(reserves !== undefined && { reserves }),
  };
}
