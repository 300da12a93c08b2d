/**
 * The checks that methods share, in the order in which each method runs them. A failed check writes nothing and emits
 * no event.
 */
import { denied, MapError } from "./errors.js";
import { type ConversationState, isClosed, statusAt, type ThreadRecord, type TurnRecord } from "./state.js";
import type { Actor, MailCapability, PermissionFlag } from "./types.js";
import { canReadHistory, type Membership, sees, type Viewer, viewerAt } from "./visibility.js";

/** Requires one of the capabilities. @throws MapError MAIL_PERMISSION_DENIED */
export function assertCapability(actor: Actor, ...capabilities: readonly MailCapability[]): void {
  if (capabilities.some((capability) => actor.capabilities[capability])) return;
  throw denied(`this connection was not granted ${capabilities.join(" or ")}`);
}

export interface ConversationMember {
  readonly viewer: Extract<Viewer, { kind: "member" }>;
  /** The acting id if it is a member, else another of the actor's ids. */
  readonly acting: Membership;
}

/** @throws MapError NOT_A_PARTICIPANT */
export function requireMember(state: ConversationState, actor: Actor, number: number): ConversationMember {
  const viewer = viewerAt(state, actor, number);
  if (viewer.kind !== "member") throw new MapError("NOT_A_PARTICIPANT");
  return { viewer, acting: viewer.memberships[0] };
}

/** Members and observers may read. @throws MapError NOT_A_PARTICIPANT */
export function requireReader(state: ConversationState, actor: Actor, number: number): Viewer {
  const viewer = viewerAt(state, actor, number);
  if (viewer.kind === "outsider") throw new MapError("NOT_A_PARTICIPANT");
  return viewer;
}

/** @throws MapError NOT_A_PARTICIPANT, MAIL_PERMISSION_DENIED */
export function requireHistoryReader(state: ConversationState, actor: Actor, number: number): Viewer {
  const viewer = requireReader(state, actor, number);
  if (!canReadHistory(viewer)) throw denied('the caller\'s history access is "none"');
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
export function assertPermission({ id, period }: Membership, flag: PermissionFlag): void {
  if (!period.permissions[flag]) throw denied(`${id} has no ${flag} in this conversation`);
}

/** A turn that the viewer cannot see does not exist for it. @throws MapError TURN_NOT_FOUND */
export function requireTurn(
  state: ConversationState,
  viewer: Viewer,
  id: string,
  number: number,
  access: "history" | "reference",
): TurnRecord {
  const turn = state.turnsById.get(id);
  if (turn === undefined || turn.number > number || !sees(viewer, turn, access)) {
    throw new MapError("TURN_NOT_FOUND", undefined, { turnId: id });
  }
  return turn;
}

/** A thread is visible to those who see its root turn. @throws MapError THREAD_NOT_FOUND */
export function requireThread(
  state: ConversationState,
  viewer: Viewer,
  id: string,
  number: number,
  access: "history" | "reference",
): ThreadRecord {
  const thread = state.threads.get(id);
  if (thread === undefined || thread.number > number || !sees(viewer, thread.root, access)) {
    throw new MapError("THREAD_NOT_FOUND", undefined, { threadId: id });
  }
  return thread;
}
