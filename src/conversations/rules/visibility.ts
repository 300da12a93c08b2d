/**
 * Decides who sees a turn ([MAP-CONV-07], [MAP-CONV-08], [MAP-CONV-09]). One predicate for every access: lists,
 * replay, catch-up, summaries, threads, counts, live events and their replay [MAP-OURS-02].
 */
import {
  activePeriod,
  type ConversationState,
  type MembershipPeriod,
  periodAsOf,
  type TurnRecord,
} from "./state.js";
import type { Actor } from "./types.js";

export interface Membership {
  readonly id: string;
  readonly period: MembershipPeriod;
}

/**
 * - member: in the conversation under one or more of its ids;
 * - observer: not a member, but allowed to see public turns;
 * - outsider: anyone else, including former members.
 */
export type Viewer =
  | {
      readonly kind: "member";
      readonly memberships: readonly [Membership, ...Membership[]];
      readonly identities: ReadonlySet<string>;
    }
  | { readonly kind: "observer" }
  | { readonly kind: "outsider" };

/** What visibility depends on: the turn itself or its record. */
export type TurnFacts = Pick<TurnRecord, "number" | "author" | "visibility" | "internal"> & {
  readonly root?: TurnFacts | undefined;
};

/**
 * - live: as it happens;
 * - history: read later, so the member's history access also applies;
 * - reference: named by the actor in a request. A member with limited history access has still seen what was
 * added while it was a member, and may reply to it.
 */
export type AccessContext = "live" | "history" | "reference";

const OUTSIDER: Viewer = { kind: "outsider" };
const OBSERVER: Viewer = { kind: "observer" };

/** Whether the conversation exists for the actor at all. */
export function isInReach({ header }: ConversationState, actor: Actor): boolean {
  return actor.space === header.space || (actor.observer && actor.allSpaces === true);
}

/** The actor's relation to the conversation as of a number. */
export function viewerAt(state: ConversationState, actor: Actor, number: number): Viewer {
  return viewerOf(
    actor,
    membershipsAt(state, actor, (id) => activePeriod(state.participants.get(id), number)),
  );
}

/**
 * The actor's relation to the conversation when an event happened. A participant that joins or leaves sees
 * that event, and the first members see the whole creation.
 */
export function viewerOfEvent(state: ConversationState, actor: Actor, number: number): Viewer {
  const at = Math.max(number, Math.min(state.foundingUpTo, state.number));
  return viewerOf(
    actor,
    membershipsAt(state, actor, (id) => {
      const period = state.participants
        .get(id)
        ?.periods.find(({ joined, left }) => joined <= at && (left === undefined || left >= at));
      return period === undefined ? undefined : periodAsOf(period, at);
    }),
  );
}

/**
 * The same for `map/replay`: covers the actor's current membership period, and of a closed period only its
 * end. A replay therefore never shows more than was shown live, and nothing to former members.
 */
export function viewerOfReplay(
  state: ConversationState,
  actor: Actor,
  number: number,
  committed: number,
): Viewer {
  const then = viewerOfEvent(state, actor, number);
  if (then.kind !== "member") return then;
  const [first, ...others] = then.memberships.filter(
    ({ id, period }) =>
      period.left === number || activePeriod(state.participants.get(id), committed)?.joined === period.joined,
  );
  if (first === undefined) return actor.observer ? OBSERVER : OUTSIDER;
  return { ...then, memberships: [first, ...others] };
}

function membershipsAt(
  state: ConversationState,
  actor: Actor,
  periodOf: (id: string) => MembershipPeriod | undefined,
): Membership[] {
  const memberships: Membership[] = [];
  // The same id in another space belongs to another caller.
  if (actor.space !== state.header.space) return memberships;
  for (const id of actor.identities) {
    if (!state.participants.has(id)) continue;
    const period = periodOf(id);
    if (period === undefined) continue;
    // The acting id comes first, because it is the one that writes.
    if (id === actor.acting) memberships.unshift({ id, period });
    else memberships.push({ id, period });
  }
  return memberships;
}

function viewerOf(actor: Actor, [first, ...others]: Membership[]): Viewer {
  if (first !== undefined) {
    return { kind: "member", memberships: [first, ...others], identities: actor.identities };
  }
  return actor.observer ? OBSERVER : OUTSIDER;
}

export function sees(viewer: Viewer, turn: TurnFacts, access: AccessContext): boolean {
  switch (viewer.kind) {
    case "outsider":
      return false;
    case "observer":
      return isPublic(turn);
    case "member": {
      const author = viewer.identities.has(turn.author);
      if (!author && turn.root !== undefined && !sees(viewer, turn.root, "live")) return false;
      return viewer.memberships.some(({ period }) =>
        memberSees(period, turn, { author, identities: viewer.identities, access }),
      );
    }
    default:
      return viewer satisfies never;
  }
}

/** Whether everyone who can read the conversation can see the turn. */
export function isPublic({
  visibility,
  internal,
  root,
}: Pick<TurnFacts, "visibility" | "internal" | "root">): boolean {
  if (internal || (visibility !== undefined && visibility.type !== "all")) return false;
  return root === undefined || isPublic(root);
}

function memberSees(
  { role, permissions, joined }: MembershipPeriod,
  turn: TurnFacts,
  asker: {
    readonly author: boolean;
    readonly identities: ReadonlySet<string>;
    readonly access: AccessContext;
  },
): boolean {
  if (asker.author) return true;
  if (!permissions.canObserve) return false;
  if (turn.internal && !permissions.canSeeInternal) return false;
  const { visibility } = turn;
  switch (visibility?.type) {
    case undefined:
    case "all":
      break;
    case "participants":
      if (!visibility.ids.some((id) => asker.identities.has(id))) return false;
      break;
    case "role":
      if (!visibility.roles.includes(role)) return false;
      break;
    case "private":
      return false;
    default:
      return visibility satisfies never;
  }
  if (asker.access === "live") return true;
  switch (permissions.historyAccess) {
    case "full":
      return true;
    case "from-join":
      // Compare numbers, not times: turns before and after a join can share a millisecond.
      return turn.number > joined;
    case "none":
      return asker.access === "reference" && turn.number > joined;
    default:
      return permissions.historyAccess satisfies never;
  }
}

/** Whether the viewer may read history at all. */
export function canReadHistory(viewer: Viewer): boolean {
  switch (viewer.kind) {
    case "outsider":
      return false;
    case "observer":
      return true;
    case "member":
      return viewer.memberships.some(({ period }) => period.permissions.historyAccess !== "none");
    default:
      return viewer satisfies never;
  }
}

/** Whether the viewer's history access covers the whole past. */
export function hasFullHistory(viewer: Viewer): boolean {
  switch (viewer.kind) {
    case "outsider":
      return false;
    case "observer":
      return true;
    case "member":
      return viewer.memberships.some(
        ({ period }) => period.permissions.historyAccess === "full" && period.permissions.canObserve,
      );
    default:
      return viewer satisfies never;
  }
}
