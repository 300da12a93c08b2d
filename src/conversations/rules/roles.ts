/** What each role may do by default, and what one member may grant another (REF-33). */
import { denied } from "./errors.js";
import {
  HISTORY_ACCESS,
  type HistoryAccess,
  type ParticipantRole,
  PERMISSION_FLAGS,
  type Permissions,
} from "./types.js";

const LEADER: Permissions = {
  canSend: true,
  canObserve: true,
  canInvite: true,
  canRemove: true,
  canCreateThreads: true,
  canSeeInternal: true,
  historyAccess: "full",
};

const CONTRIBUTOR: Permissions = { ...LEADER, canInvite: false, canRemove: false, canSeeInternal: false };

export const ROLE_DEFAULTS: Readonly<Record<ParticipantRole, Permissions>> = {
  initiator: LEADER,
  moderator: LEADER,
  assistant: CONTRIBUTOR,
  worker: CONTRIBUTOR,
  observer: { ...CONTRIBUTOR, canSend: false, canCreateThreads: false },
};

export const DEFAULT_ROLE: ParticipantRole = "assistant";

/** Roles that a participant can choose when joining; the others must be granted. */
export const SELF_CHOSEN_ROLES: ReadonlySet<ParticipantRole> = new Set(["assistant", "worker", "observer"]);

/** Roles that can close a conversation and appoint moderators. */
export const LEADING_ROLES: ReadonlySet<ParticipantRole> = new Set(["initiator", "moderator"]);

export type PartialPermissions = { readonly [key in keyof Permissions]?: Permissions[key] | undefined };

export function permissionsFor(role: ParticipantRole, wanted: PartialPermissions = {}): Permissions {
  const defaults = ROLE_DEFAULTS[role];
  return {
    canSend: wanted.canSend ?? defaults.canSend,
    canObserve: wanted.canObserve ?? defaults.canObserve,
    canInvite: wanted.canInvite ?? defaults.canInvite,
    canRemove: wanted.canRemove ?? defaults.canRemove,
    canCreateThreads: wanted.canCreateThreads ?? defaults.canCreateThreads,
    canSeeInternal: wanted.canSeeInternal ?? defaults.canSeeInternal,
    historyAccess: wanted.historyAccess ?? defaults.historyAccess,
  };
}

export interface Grant {
  readonly role: ParticipantRole;
  readonly permissions: Permissions;
}

/**
 * A member cannot grant a permission that it does not have. A conversation has one initiator, and only
 * leading roles appoint moderators.
 * @throws MapError MAIL_PERMISSION_DENIED
 */
export function assertCanGrant(granter: Grant, grant: Grant): void {
  if (grant.role === "initiator") throw denied("a conversation has one initiator, its creator");
  if (grant.role === "moderator" && !LEADING_ROLES.has(granter.role)) {
    throw denied("only the initiator or a moderator can appoint a moderator");
  }
  for (const flag of PERMISSION_FLAGS) {
    if (grant.permissions[flag] && !granter.permissions[flag]) {
      throw denied(`the inviter cannot grant ${flag}, which it does not have`);
    }
  }
  if (historyRank(grant.permissions.historyAccess) > historyRank(granter.permissions.historyAccess)) {
    throw denied(`the inviter's own history access is "${granter.permissions.historyAccess}"`);
  }
}

/** The part of a grant that the granter has itself, for members that are enrolled automatically [MAP-OURS-06]. */
export function withinCeiling(granter: Permissions, wanted: Permissions): Permissions {
  return {
    canSend: wanted.canSend && granter.canSend,
    canObserve: wanted.canObserve && granter.canObserve,
    canInvite: wanted.canInvite && granter.canInvite,
    canRemove: wanted.canRemove && granter.canRemove,
    canCreateThreads: wanted.canCreateThreads && granter.canCreateThreads,
    canSeeInternal: wanted.canSeeInternal && granter.canSeeInternal,
    historyAccess:
      historyRank(wanted.historyAccess) <= historyRank(granter.historyAccess)
        ? wanted.historyAccess
        : granter.historyAccess,
  };
}

function historyRank(access: HistoryAccess): number {
  return HISTORY_ACCESS.indexOf(access);
}
