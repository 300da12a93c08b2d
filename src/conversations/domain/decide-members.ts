/**
 * Who is in a conversation, and how it begins and ends. Pure functions from a conversation, a caller and a request to
 * the entries that are to be added; they throw a MapError and change nothing when a rule forbids it.
 */
import { assertActive, assertCapability, assertPermission, requireMember } from "./checks.js";
import { assertContentType } from "./content.js";
import { turnEntry } from "./decide-turns.js";
import {
  type Closed,
  CONVERSATION_JOURNAL_VERSION,
  type Created,
  type Joined,
  type Left,
  type StatusSet,
  type TurnAdded,
} from "./entries.js";
import { denied, MapError } from "./errors.js";
import { type DomainRules, type Moment, newParticipant, timeIn } from "./moment.js";
import type { CreateParams, InviteParams, JoinParams } from "./params.js";
import { assertMayGrant, DEFAULT_ROLE, LEADING_ROLES, permissionsFor, SELF_CHOSEN_ROLES } from "./roles.js";
import { activeStint, type ConversationState, isClosed, statusAt } from "./state.js";
import type { Caller, ConversationStatus } from "./types.js";

export type Founding = readonly [Created, ...(Joined | TurnAdded)[]];

/** The parent was checked before: it lies in another journal. */
export function decideCreate(id: string, caller: Caller, params: CreateParams, moment: Moment): Founding {
  const at = moment.now;
  const joined: Joined[] = [
    {
      t: "joined",
      at,
      by: caller.acting,
      participant: newParticipant(
        caller.acting,
        { role: "initiator", permissions: permissionsFor("initiator") },
        at,
        moment,
      ),
    },
  ];
  const seen = new Set([caller.acting]);
  for (const wanted of params.initialParticipants ?? []) {
    if (seen.has(wanted.id)) continue;
    seen.add(wanted.id);
    const role = wanted.role ?? DEFAULT_ROLE;
    const grant = { role, permissions: permissionsFor(role, wanted.permissions) };
    assertMayGrant({ role: "initiator", permissions: permissionsFor("initiator") }, grant);
    joined.push({
      t: "joined",
      at,
      by: caller.acting,
      participant: newParticipant(wanted.id, grant, at, moment),
    });
  }
  const { initialTurn } = params;
  const turns: TurnAdded[] = [];
  if (initialTurn !== undefined) {
    assertContentType(initialTurn.contentType);
    turns.push(turnEntry(id, caller.acting, at, moment, initialTurn));
  }
  const created: Created = {
    t: "created",
    v: CONVERSATION_JOURNAL_VERSION,
    at,
    founders: joined.length,
    conversation: {
      id,
      type: params.type ?? "multi-agent",
      ...(params.subject !== undefined && { subject: params.subject }),
      ...(params.parentConversationId !== undefined && { parentConversationId: params.parentConversationId }),
      ...(params.parentTurnId !== undefined && { parentTurnId: params.parentTurnId }),
      createdBy: caller.acting,
      metadata: params.metadata ?? {},
      space: caller.space,
    },
  };
  return [created, ...joined, ...turns];
}

export function decideClose(
  state: ConversationState,
  caller: Caller,
  reason: string | undefined,
  moment: Moment,
  rules: DomainRules,
): Closed {
  const { acting } = requireMember(state, caller, state.number);
  const { status } = statusAt(state, state.number);
  if (isClosed(status)) {
    throw new MapError("CONVERSATION_CLOSED", `the conversation is closed already (${status})`, { status });
  }
  if (rules.closing === "leaders" && !LEADING_ROLES.has(acting.stint.role)) {
    throw denied("only the initiator or a moderator can close the conversation");
  }
  return {
    t: "closed",
    at: timeIn(state, moment),
    by: acting.id,
    ...(reason !== undefined && { reason }),
  };
}

export function decideJoin(
  state: ConversationState,
  caller: Caller,
  params: Pick<JoinParams, "role">,
  moment: Moment,
): Joined {
  assertCapability(caller, "canJoin");
  assertActive(state, state.number);
  for (const id of caller.identities) {
    if (activeStint(state.participants.get(id), state.number) !== undefined) {
      throw new MapError("PARTICIPANT_ALREADY_JOINED", `${id} is a member already`, { participantId: id });
    }
  }
  for (const id of caller.identities) {
    if (state.participants.get(id)?.stints.at(-1)?.removed === true) {
      throw denied(`${id} was removed from the conversation, and comes back by invitation only`);
    }
  }
  const former = state.participants.get(caller.acting)?.stints.at(-1);
  const at = timeIn(state, moment);
  if (former !== undefined) {
    // Whoever comes back is who they were: leaving must not be a way to shed a restriction.
    return {
      t: "joined",
      at,
      by: caller.acting,
      participant: newParticipant(caller.acting, former, at, moment, former.invitation),
    };
  }
  const role = params.role ?? DEFAULT_ROLE;
  if (!SELF_CHOSEN_ROLES.has(role)) throw denied(`nobody can join as ${role}: the role is given`);
  if (state.header.metadata.joinPolicy === "invite") {
    throw denied("the conversation is open to invited participants only");
  }
  return {
    t: "joined",
    at,
    by: caller.acting,
    participant: newParticipant(caller.acting, { role, permissions: permissionsFor(role) }, at, moment),
  };
}

/** With `participantId`, which the seed does not have, a member with `canRemove` removes another. */
export function decideLeave(
  state: ConversationState,
  caller: Caller,
  params: { readonly participantId?: string | undefined; readonly reason?: string | undefined },
  moment: Moment,
): Left {
  const { acting, viewer } = requireMember(state, caller, state.number);
  const target = params.participantId ?? acting.id;
  const own = viewer.memberships.some(({ id }) => id === target);
  if (!own) {
    assertPermission(acting, "canRemove");
    const stint = activeStint(state.participants.get(target), state.number);
    if (stint === undefined) {
      throw new MapError("PARTICIPANT_NOT_FOUND", undefined, { participantId: target });
    }
    if (stint.role === "initiator") throw denied("nobody can remove the initiator");
  }
  return {
    t: "left",
    at: timeIn(state, moment),
    participantId: target,
    // Whoever leaves, under whichever of their ids, was not removed by somebody else.
    by: own ? target : acting.id,
    ...(params.reason !== undefined && { reason: params.reason }),
  };
}

export function decideInvite(
  state: ConversationState,
  caller: Caller,
  { participant: wanted, message }: Pick<InviteParams, "participant" | "message">,
  moment: Moment,
): Joined {
  assertCapability(caller, "canInvite");
  const { acting } = requireMember(state, caller, state.number);
  assertActive(state, state.number);
  assertPermission(acting, "canInvite");
  if (activeStint(state.participants.get(wanted.id), state.number) !== undefined) {
    throw new MapError("PARTICIPANT_ALREADY_JOINED", `${wanted.id} is a member already`, {
      participantId: wanted.id,
    });
  }
  const role = wanted.role ?? DEFAULT_ROLE;
  const grant = { role, permissions: permissionsFor(role, wanted.permissions) };
  assertMayGrant(acting.stint, grant);
  const at = timeIn(state, moment);
  return {
    t: "joined",
    at,
    by: acting.id,
    participant: newParticipant(wanted.id, grant, at, moment, {
      invitedBy: acting.id,
      ...(message !== undefined && { message }),
    }),
  };
}

/** Decisions F7: no wire method does this. */
export function decideStatus(
  state: ConversationState,
  status: ConversationStatus,
  by: string,
  moment: Moment,
): StatusSet {
  return { t: "status", at: timeIn(state, moment), status, by };
}
