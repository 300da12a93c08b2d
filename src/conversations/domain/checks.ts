/** The checks that methods share, in the order in which each method makes them (map-mail 3.6). */
import { denied, MapError } from "./errors.js";
import { type ConversationState, isClosed, statusAt, type ThreadRecord, type TurnRecord } from "./state.js";
import type { Caller, MailCapability, PermissionFlag } from "./types.js";
import { type Membership, mayAskForHistory, sees, type Viewer, viewerAt } from "./visibility.js";

/** One of the capabilities is enough. @throws MapError MAIL_PERMISSION_DENIED */
export function assertCapability(caller: Caller, ...capabilities: readonly MailCapability[]): void {
  if (capabilities.some((capability) => caller.capabilities[capability])) return;
  throw denied(`this connection was not granted ${capabilities.join(" or ")}`);
}

export interface Member {
  readonly viewer: Extract<Viewer, { kind: "member" }>;
  /** The one that acts: the caller's acting id if it is a member, else another of its ids. */
  readonly acting: Membership;
}

/** @throws MapError NOT_A_PARTICIPANT */
export function requireMember(state: ConversationState, caller: Caller, number: number): Member {
  const viewer = viewerAt(state, caller, number);
  if (viewer.kind !== "member") throw new MapError("NOT_A_PARTICIPANT");
  return { viewer, acting: viewer.memberships[0] };
}

/** Members and holders of the observer grant. @throws MapError NOT_A_PARTICIPANT */
export function requireReader(state: ConversationState, caller: Caller, number: number): Viewer {
  const viewer = viewerAt(state, caller, number);
  if (viewer.kind === "stranger") throw new MapError("NOT_A_PARTICIPANT");
  return viewer;
}

/** @throws MapError NOT_A_PARTICIPANT, MAIL_PERMISSION_DENIED */
export function requireHistoryReader(state: ConversationState, caller: Caller, number: number): Viewer {
  const viewer = requireReader(state, caller, number);
  if (!mayAskForHistory(viewer)) throw denied('the caller\'s history access is "none"');
  return viewer;
}

/** Turns, threads, joins and invitations need an active conversation. @throws MapError CONVERSATION_CLOSED */
export function assertActive(state: ConversationState, number: number): void {
  const { status } = statusAt(state, number);
  if (status === "active") return;
  throw new MapError(
    "CONVERSATION_CLOSED",
    isClosed(status) ? `the conversation is closed (${status})` : `the conversation is ${status}`,
    { status },
  );
}

/** @throws MapError MAIL_PERMISSION_DENIED */
export function assertPermission({ id, stint }: Membership, flag: PermissionFlag): void {
  if (!stint.permissions[flag]) throw denied(`${id} has no ${flag} in this conversation`);
}

/** A turn that the viewer cannot see does not exist for it. @throws MapError TURN_NOT_FOUND */
export function requireTurn(
  state: ConversationState,
  viewer: Viewer,
  id: string,
  number: number,
  occasion: "history" | "reference",
): TurnRecord {
  const turn = state.turnsById.get(id);
  if (turn === undefined || turn.number > number || !sees(viewer, turn, occasion)) {
    throw new MapError("TURN_NOT_FOUND", undefined, { turnId: id });
  }
  return turn;
}

/** A thread is seen by those who see the turn it begins at. @throws MapError THREAD_NOT_FOUND */
export function requireThread(
  state: ConversationState,
  viewer: Viewer,
  id: string,
  number: number,
  occasion: "history" | "reference",
): ThreadRecord {
  const thread = state.threads.get(id);
  if (thread === undefined || thread.number > number || !sees(viewer, thread.root, occasion)) {
    throw new MapError("THREAD_NOT_FOUND", undefined, { threadId: id });
  }
  return thread;
}
