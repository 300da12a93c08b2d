/**
 * Who sees a turn (map-mail 3.4). One predicate for every door: lists, replay, catch-up, summaries, threads, counts,
 * live events and their replay.
 */
import { activeStint, type ConversationState, type Stint, type TurnRecord } from "./state.js";
import type { Caller } from "./types.js";

export interface Membership {
  readonly id: string;
  readonly stint: Stint;
}

/**
 * - member: somebody who is in the conversation, by one or more of the ids that are theirs;
 * - observer: no member, but allowed to watch what is public;
 * - stranger: everybody else, those who left included.
 */
export type Viewer =
  | {
      readonly kind: "member";
      readonly memberships: readonly [Membership, ...Membership[]];
      readonly identities: ReadonlySet<string>;
    }
  | { readonly kind: "observer" }
  | { readonly kind: "stranger" };

/** What decides about a turn's visibility: the turn itself or its record. */
export type TurnFacts = Pick<TurnRecord, "number" | "author" | "visibility" | "internal">;

/**
 * - live: as it happens;
 * - history: asked for afterwards, so that the member's window into the past counts, too;
 * - reference: named by the caller in what it writes. A member with a narrow window has still seen what came while it
 *   was there, and may reply to it.
 */
export type Occasion = "live" | "history" | "reference";

const STRANGER: Viewer = { kind: "stranger" };
const OBSERVER: Viewer = { kind: "observer" };

/** Who the caller is in the conversation as of a number. */
export function viewerAt(state: ConversationState, caller: Caller, number: number): Viewer {
  return viewerOf(
    caller,
    membershipsAt(state, caller, (id) => activeStint(state.participants.get(id), number)),
  );
}

/**
 * Who the caller was when an event happened. Whoever joins or leaves sees that event itself, and founding members see
 * the whole founding.
 */
export function viewerOfEvent(state: ConversationState, caller: Caller, number: number): Viewer {
  const at = Math.max(number, Math.min(state.foundingUpTo, state.number));
  return viewerOf(
    caller,
    membershipsAt(state, caller, (id) =>
      state.participants
        .get(id)
        ?.stints.find(({ joined, left }) => joined <= at && (left === undefined || left >= at)),
    ),
  );
}

/**
 * The same for somebody who asks later (`map/replay`): what the caller's present stay in the conversation has covered,
 * and of a stay that is over only its end. So replay never shows more than was shown live, and to those who left
 * nothing.
 */
export function viewerOfReplay(
  state: ConversationState,
  caller: Caller,
  number: number,
  committed: number,
): Viewer {
  const then = viewerOfEvent(state, caller, number);
  if (then.kind !== "member") return then;
  const [first, ...others] = then.memberships.filter(
    ({ id, stint }) => stint.left === number || activeStint(state.participants.get(id), committed) === stint,
  );
  if (first === undefined) return caller.observer ? OBSERVER : STRANGER;
  return { ...then, memberships: [first, ...others] };
}

function membershipsAt(
  state: ConversationState,
  caller: Caller,
  stintOf: (id: string) => Stint | undefined,
): Membership[] {
  const memberships: Membership[] = [];
  for (const id of caller.identities) {
    if (!state.participants.has(id)) continue;
    const stint = stintOf(id);
    if (stint === undefined) continue;
    // The acting id comes first: it is the one that writes.
    if (id === caller.acting) memberships.unshift({ id, stint });
    else memberships.push({ id, stint });
  }
  return memberships;
}

function viewerOf(caller: Caller, [first, ...others]: Membership[]): Viewer {
  if (first !== undefined) {
    return { kind: "member", memberships: [first, ...others], identities: caller.identities };
  }
  return caller.observer ? OBSERVER : STRANGER;
}

export function sees(viewer: Viewer, turn: TurnFacts, occasion: Occasion): boolean {
  switch (viewer.kind) {
    case "stranger":
      return false;
    case "observer":
      return isPublic(turn);
    case "member": {
      const author = viewer.identities.has(turn.author);
      return viewer.memberships.some(({ stint }) =>
        memberSees(stint, turn, { author, identities: viewer.identities, occasion }),
      );
    }
    default:
      return viewer satisfies never;
  }
}

/** Safe for everybody who may look at the conversation at all. */
export function isPublic({ visibility, internal }: Pick<TurnFacts, "visibility" | "internal">): boolean {
  return !internal && (visibility === undefined || visibility.type === "all");
}

function memberSees(
  { role, permissions, joined }: Stint,
  turn: TurnFacts,
  asker: {
    readonly author: boolean;
    readonly identities: ReadonlySet<string>;
    readonly occasion: Occasion;
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
  if (asker.occasion === "live") return true;
  switch (permissions.historyAccess) {
    case "full":
      return true;
    case "from-join":
      // By number, not by time: two turns around a join may have the same millisecond.
      return turn.number > joined;
    case "none":
      return asker.occasion === "reference" && turn.number > joined;
    default:
      return permissions.historyAccess satisfies never;
  }
}

/** Whether the caller may ask for the past at all. */
export function mayAskForHistory(viewer: Viewer): boolean {
  switch (viewer.kind) {
    case "stranger":
      return false;
    case "observer":
      return true;
    case "member":
      return viewer.memberships.some(({ stint }) => stint.permissions.historyAccess !== "none");
    default:
      return viewer satisfies never;
  }
}

/** Whether nothing of the past is closed to the viewer by its window. */
export function hasFullHistory(viewer: Viewer): boolean {
  switch (viewer.kind) {
    case "stranger":
      return false;
    case "observer":
      return true;
    case "member":
      return viewer.memberships.some(
        ({ stint }) => stint.permissions.historyAccess === "full" && stint.permissions.canObserve,
      );
    default:
      return viewer satisfies never;
  }
}
