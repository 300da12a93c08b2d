/**
 * Membership of a conversation, its creation and its end. Pure functions from a conversation, an actor and a
 * request to the new entries. When a rule forbids the request, they throw a MapError and change nothing.
 */

import type { ConversationRules } from "../settings.js";
import { assertActive, assertCapability, assertPermission, requireMember } from "./checks.js";
import { assertContentType } from "./content.js";
import { addressing, turnEntry } from "./decide-turns.js";
import { type DecisionContext, joinedEntry, timeIn } from "./decision-context.js";
import {
  type Closed,
  CONVERSATION_JOURNAL_VERSION,
  type Created,
  type Joined,
  type Left,
  type MemberChanged,
  type StatusSet,
  type TurnAdded,
} from "./entries.js";
import { denied, MapError } from "./errors.js";
import type { CloseParams, CreateParams, InviteParams, JoinParams, MemberParams } from "./params.js";
import { commonPermissions, idsWith, type Owners, standingOf } from "./principals.js";
import {
  assertCanGrant,
  DEFAULT_ROLE,
  type Grant,
  LEADING_ROLES,
  type PartialPermissions,
  permissionsFor,
  SELF_CHOSEN_ROLES,
  withinCeiling,
} from "./roles.js";
import {
  activePeriod,
  type ConversationState,
  isClosed,
  latestPeriod,
  type MembershipPeriod,
  statusAt,
} from "./state.js";
import type { Actor, ConversationStatus, ParticipantRole } from "./types.js";
import type { Membership } from "./visibility.js";

export type NewConversation = readonly [Created, ...(Joined | TurnAdded)[]];

/** The caller has checked the parent, which is in another journal. */
export function decideCreate(
  id: string,
  actor: Actor,
  params: CreateParams,
  context: DecisionContext,
): NewConversation {
  const at = context.now;
  const by = actor.acting;
  const creator = { role: "initiator", permissions: permissionsFor("initiator") } as const;
  const joined: Joined[] = [joinedEntry(by, creator, { at, by }, context)];
  const seen = new Set([actor.acting]);
  for (const wanted of params.initialParticipants ?? []) {
    if (seen.has(wanted.id)) continue;
    seen.add(wanted.id);
    const role = wanted.role ?? DEFAULT_ROLE;
    const grant = { role, permissions: permissionsFor(role, wanted.permissions) };
    assertCanGrant(creator, grant);
    joined.push(joinedEntry(wanted.id, grant, { at, by }, context));
  }
  const { initialTurn } = params;
  const turns: TurnAdded[] = [];
  if (initialTurn !== undefined) {
    assertContentType(initialTurn.contentType);
    const turn = turnEntry(id, by, at, context, initialTurn);
    turns.push(addressing(turn, (addressee) => seen.has(addressee), context));
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
      createdBy: actor.acting,
      metadata: params.metadata ?? {},
      space: actor.space,
    },
  };
  return [created, ...joined, ...turns];
}

export function decideClose(
  state: ConversationState,
  actor: Actor,
  { reason, status: outcome = "completed" }: Pick<CloseParams, "reason" | "status">,
  context: DecisionContext,
  rules: ConversationRules,
): readonly [Closed, ...StatusSet[]] {
  const { acting } = requireMember(state, actor, state.number);
  const { status } = statusAt(state, state.number);
  if (isClosed(status)) {
    throw new MapError("CONVERSATION_CLOSED", `the conversation is already closed (${status})`, { status });
  }
  if (rules.closing === "leaders" && !LEADING_ROLES.has(acting.period.role)) {
    throw denied("only the initiator or a moderator can close the conversation");
  }
  const at = timeIn(state, context);
  const closed: Closed = { t: "closed", at, by: acting.id, ...(reason !== undefined && { reason }) };
  // A close entry without a status means completion.
  return outcome === "completed" ? [closed] : [closed, { t: "status", at, status: outcome, by: acting.id }];
}

/** What each status can follow. */
const TRANSITIONS = {
  active: ["paused", "completed", "failed", "archived"],
  paused: ["active"],
  archived: ["active", "paused", "completed", "failed"],
} as const satisfies Partial<Record<ConversationStatus, readonly ConversationStatus[]>>;

/** Pauses a conversation, makes it active again, or archives it. */
export function decideChange(
  state: ConversationState,
  actor: Actor,
  wanted: keyof typeof TRANSITIONS,
  reason: string | undefined,
  context: DecisionContext,
): StatusSet {
  // Admins keep order; they need not be members for that.
  const admin = wanted === "archived" && actor.instance?.role === "admin";
  const by = admin ? actor.acting : requireLeader(state, actor).id;
  const { status } = statusAt(state, state.number);
  if (!TRANSITIONS[wanted].some((from) => from === status)) {
    throw new MapError("CONVERSATION_CLOSED", `the conversation is ${status}`, { status });
  }
  return {
    t: "status",
    at: timeIn(state, context),
    status: wanted,
    by,
    ...(reason !== undefined && { reason }),
  };
}

function requireLeader(state: ConversationState, actor: Actor): Membership {
  const { acting } = requireMember(state, actor, state.number);
  if (LEADING_ROLES.has(acting.period.role)) return acting;
  throw denied("only the initiator or a moderator can do this");
}

/**
 * Changes the role and the permissions of a member, and of the ids that go with it: a mute must not be shed by writing
 * under another id. The initiator keeps both. The last entry is that of the member itself.
 */
export function decideMember(
  state: ConversationState,
  actor: Actor,
  { participantId, role, permissions }: Pick<MemberParams, "participantId" | "role" | "permissions">,
  context: DecisionContext,
  owners?: Owners,
): MemberChanged[] {
  const leader = requireLeader(state, actor);
  const { status } = statusAt(state, state.number);
  if (isClosed(status)) throw new MapError("CONVERSATION_CLOSED", undefined, { status });
  const current = activePeriod(state.participants.get(participantId), state.number);
  if (current === undefined) throw new MapError("PARTICIPANT_NOT_FOUND", undefined, { participantId });
  if (current.role === "initiator") throw denied("the initiator keeps its role and permissions");
  const at = timeIn(state, context);
  const others = idsWith(state, participantId, owners).filter((id) => id !== participantId);
  return [...others, participantId].flatMap((id): MemberChanged | MemberChanged[] => {
    const period = activePeriod(state.participants.get(id), state.number);
    if (period === undefined || period.role === "initiator") return [];
    const grant = changed(period, role, permissions);
    assertCanGrant(leader.period, grant);
    return { t: "member", at, participantId: id, ...grant, by: leader.id };
  });
}

/** A new role brings its own permissions. */
function changed(
  { role: current, permissions: held }: Grant,
  role: ParticipantRole | undefined,
  permissions: PartialPermissions | undefined,
): Grant {
  if (role !== undefined) return { role, permissions: permissionsFor(role, permissions) };
  return { role: current, permissions: permissionsFor(current, { ...held, ...given(permissions) }) };
}

function given(permissions: PartialPermissions = {}): PartialPermissions {
  return Object.fromEntries(Object.entries(permissions).filter(([, value]) => value !== undefined));
}

/**
 * A participant joins by itself. Everybody may who was a member before, and further ids of such a caller, with no more
 * rights than it has. Others need to be addressed in the conversation, unless its policy is `open`.
 */
export function decideJoin(
  state: ConversationState,
  actor: Actor,
  params: Pick<JoinParams, "role">,
  context: DecisionContext,
  rules: ConversationRules,
  owners?: Owners,
): Joined {
  assertCapability(actor, "canJoin");
  assertActive(state, state.number);
  for (const id of actor.identities) {
    if (activePeriod(state.participants.get(id), state.number) !== undefined) {
      throw new MapError("PARTICIPANT_ALREADY_JOINED", `${id} is already a member`, { participantId: id });
    }
  }
  const id = actor.acting;
  const standing = standingOf(state, actor, owners);
  const former = latestPeriod(state.participants.get(id));
  if (standing.removed || former?.removed === true) {
    throw denied(`${id} was removed from the conversation and can return by invitation only`);
  }
  const by = { at: timeIn(state, context), by: id };
  const common = commonPermissions(standing);
  // A returning member keeps its role and permissions, so that leaving does not remove a restriction.
  if (former !== undefined) {
    const permissions = withinCeiling(former.permissions, common ?? former.permissions);
    const { invitation } = former;
    const origin = { ...by, ...(invitation !== undefined && { invitation }) };
    return joinedEntry(id, { role: former.role, permissions }, origin, context);
  }
  if (params.role !== undefined && !SELF_CHOSEN_ROLES.has(params.role)) {
    throw denied(`the role ${params.role} cannot be chosen when joining; it must be granted`);
  }
  const { latest } = standing;
  if (latest !== undefined && common !== undefined) {
    // A leader may give any of these roles anyway. Others keep theirs, because turns can be visible to roles.
    const free = LEADING_ROLES.has(latest.period.role);
    const role = free ? (params.role ?? DEFAULT_ROLE) : latest.period.role;
    const permissions = withinCeiling(common, permissionsFor(role));
    return { ...joinedEntry(id, { role, permissions }, by, context), beside: latest.id };
  }
  const role = params.role ?? DEFAULT_ROLE;
  const wanted = permissionsFor(role, { historyAccess: rules.historyOnJoin });
  if (joinPolicyOf(state, rules) === "open")
    return joinedEntry(id, { role, permissions: wanted }, by, context);
  const host = addresserOf(state, actor);
  if (host === undefined) throw denied("the conversation is open to invited participants only");
  return joinedEntry(id, { role, permissions: withinCeiling(host.permissions, wanted) }, by, context);
}

function joinPolicyOf({ header }: ConversationState, rules: ConversationRules): "open" | "invite" {
  const { joinPolicy } = header.metadata;
  return joinPolicy === "open" || joinPolicy === "invite" ? joinPolicy : (rules.joining ?? "invite");
}

/** The member that addressed the actor in a turn, with its latest permissions. */
function addresserOf(state: ConversationState, actor: Actor): MembershipPeriod | undefined {
  for (const id of actor.identities) {
    const by = state.addressed.get(id);
    const host = by === undefined ? undefined : latestPeriod(state.participants.get(by));
    if (host !== undefined) return host;
  }
  return undefined;
}

/**
 * With `participantId`, a field that the protocol does not have, a member with `canRemove` removes another. The id of a
 * caller (`user:bob`) stands for all of its ids.
 */
export function decideLeave(
  state: ConversationState,
  actor: Actor,
  params: { readonly participantId?: string | undefined; readonly reason?: string | undefined },
  context: DecisionContext,
  owners?: Owners,
): Left[] {
  const { acting, viewer } = requireMember(state, actor, state.number);
  const target = params.participantId ?? acting.id;
  const own = viewer.memberships.some(({ id }) => id === target);
  if (!own) assertPermission(acting, "canRemove");
  const leaving = own ? [target] : idsWith(state, target, owners);
  if (leaving.length === 0) {
    throw new MapError("PARTICIPANT_NOT_FOUND", undefined, { participantId: target });
  }
  const roles = leaving.map((id) => activePeriod(state.participants.get(id), state.number)?.role);
  if (!own && roles.includes("initiator")) throw denied("the initiator cannot be removed");
  const at = timeIn(state, context);
  return leaving.map((id) => ({
    t: "left",
    at,
    participantId: id,
    // An actor that leaves under any of its own ids was not removed by another.
    by: own ? id : acting.id,
    ...(params.reason !== undefined && { reason: params.reason }),
  }));
}

export function decideInvite(
  state: ConversationState,
  actor: Actor,
  { participant: wanted, message }: Pick<InviteParams, "participant" | "message">,
  context: DecisionContext,
): Joined {
  assertCapability(actor, "canInvite");
  const { acting } = requireMember(state, actor, state.number);
  assertActive(state, state.number);
  assertPermission(acting, "canInvite");
  if (activePeriod(state.participants.get(wanted.id), state.number) !== undefined) {
    throw new MapError("PARTICIPANT_ALREADY_JOINED", `${wanted.id} is already a member`, {
      participantId: wanted.id,
    });
  }
  const role = wanted.role ?? DEFAULT_ROLE;
  const grant = { role, permissions: permissionsFor(role, wanted.permissions) };
  assertCanGrant(acting.period, grant);
  const invitation = { invitedBy: acting.id, ...(message !== undefined && { message }) };
  return joinedEntry(wanted.id, grant, { at: timeIn(state, context), by: acting.id, invitation }, context);
}

/** Sets the status of a conversation; no wire method does this (decision F7). */
export function decideStatus(
  state: ConversationState,
  status: ConversationStatus,
  by: string,
  context: DecisionContext,
): StatusSet {
  return { t: "status", at: timeIn(state, context), status, by };
}
