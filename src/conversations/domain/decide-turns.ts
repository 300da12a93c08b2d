/**
 * What is said in a conversation: turns, intercepted messages, threads. Pure functions from a conversation, a caller
 * and a request to the entries that are to be added; they throw a MapError and change nothing when a rule forbids it.
 */
import {
  assertActive,
  assertCapability,
  assertPermission,
  requireMember,
  requireThread,
  requireTurn,
} from "./checks.js";
import { assertContentType } from "./content.js";
import type { Joined, ThreadCreated, TurnAdded, TurnUpdated } from "./entries.js";
import { MapError } from "./errors.js";
import { type DomainRules, type Moment, newParticipant, timeIn } from "./moment.js";
import type { ThreadCreateParams } from "./params.js";
import { permissionsFor, withinCeiling } from "./roles.js";
import type { ConversationState } from "./state.js";
import type { Caller, Metadata, Turn, TurnSource, TurnStatus, Visibility } from "./types.js";

export interface TurnDraft {
  readonly contentType: string;
  readonly content: unknown;
  readonly threadId?: string | undefined;
  readonly inReplyTo?: string | undefined;
  readonly visibility?: Visibility | undefined;
  readonly metadata?: Metadata | undefined;
}

export function decideTurn(
  state: ConversationState,
  caller: Caller,
  params: TurnDraft,
  moment: Moment,
  source?: TurnSource,
): TurnAdded {
  const { acting, viewer } = requireMember(state, caller, state.number);
  assertActive(state, state.number);
  assertPermission(acting, "canSend");
  assertContentType(params.contentType);
  if (params.threadId !== undefined) {
    requireThread(state, viewer, params.threadId, state.number, "reference");
  }
  if (params.inReplyTo !== undefined) {
    requireTurn(state, viewer, params.inReplyTo, state.number, "reference");
  }
  return turnEntry(state.header.id, acting.id, timeIn(state, moment), moment, params, source);
}

const EXPLICIT: TurnSource = { type: "explicit", method: "mail/turn" };

export interface Interception {
  readonly messageId: string;
  readonly payload: unknown;
  readonly threadId?: string | undefined;
  readonly inReplyTo?: string | undefined;
  readonly visibility?: Visibility | undefined;
  /** Agents the message was addressed to directly. */
  readonly recipients: readonly string[];
  readonly causedBy: readonly string[];
}

/** MAP Mail, Turn Interception: all rules of `mail/turn` hold. */
export function decideInterception(
  state: ConversationState,
  caller: Caller,
  message: Interception,
  moment: Moment,
  rules: DomainRules,
): (Joined | TurnAdded)[] {
  const { messageId, payload, threadId, inReplyTo, visibility, causedBy } = message;
  const turn = decideTurn(
    state,
    caller,
    { contentType: "data", content: payload ?? null, threadId, inReplyTo, visibility },
    moment,
    { type: "intercepted", messageId },
  );
  const enrolled = rules.autoEnrol ? enrolments(state, caller, message.recipients, moment) : [];
  return [...enrolled, { ...turn, ...(causedBy.length > 0 && { causedBy }) }];
}

/** Those who were members once are left alone: they went, or were sent away. */
function enrolments(
  state: ConversationState,
  caller: Caller,
  recipients: readonly string[],
  moment: Moment,
): Joined[] {
  const { acting } = requireMember(state, caller, state.number);
  const { permissions } = acting.stint;
  if (!permissions.canInvite || !caller.capabilities.canInvite) return [];
  const at = timeIn(state, moment);
  return [...new Set(recipients)]
    .filter((id) => !state.participants.has(id))
    .map((id) => ({
      t: "joined" as const,
      at,
      by: acting.id,
      participant: newParticipant(
        id,
        { role: "worker", permissions: withinCeiling(permissions, permissionsFor("worker")) },
        at,
        moment,
        { invitedBy: acting.id },
      ),
    }));
}

export function decideThread(
  state: ConversationState,
  caller: Caller,
  params: Omit<ThreadCreateParams, "conversationId" | "_meta">,
  moment: Moment,
  rules: DomainRules,
): ThreadCreated {
  assertCapability(caller, "canCreateThreads");
  const { acting, viewer } = requireMember(state, caller, state.number);
  assertActive(state, state.number);
  assertPermission(acting, "canCreateThreads");
  const parent =
    params.parentThreadId === undefined
      ? undefined
      : requireThread(state, viewer, params.parentThreadId, state.number, "reference");
  requireTurn(state, viewer, params.rootTurnId, state.number, "reference");
  const depth = (parent?.depth ?? 0) + 1;
  if (depth > rules.maxThreadDepth) {
    throw new MapError(
      "THREAD_NESTING_LIMIT",
      `threads can be nested ${rules.maxThreadDepth} deep, not ${depth}`,
      { limit: rules.maxThreadDepth },
    );
  }
  const at = timeIn(state, moment);
  return {
    t: "thread",
    at,
    depth,
    thread: {
      id: moment.id("thread"),
      conversationId: state.header.id,
      ...(params.parentThreadId !== undefined && { parentThreadId: params.parentThreadId }),
      ...(params.subject !== undefined && { subject: params.subject }),
      rootTurnId: params.rootTurnId,
      createdAt: at,
      createdBy: acting.id,
    },
  };
}

/** A turn keeps its place, whatever becomes of it. */
export function decideTurnStatus(
  state: ConversationState,
  turnId: string,
  status: TurnStatus,
  by: string,
  moment: Moment,
): TurnUpdated {
  if (!state.turnsById.has(turnId)) throw new MapError("TURN_NOT_FOUND", undefined, { turnId });
  return { t: "turn_updated", at: timeIn(state, moment), turnId, status, by };
}

export function turnEntry(
  conversationId: string,
  author: string,
  at: number,
  moment: Moment,
  params: TurnDraft,
  source: TurnSource = EXPLICIT,
): TurnAdded {
  const { contentType, content, threadId, inReplyTo, visibility, metadata = {} } = params;
  // The hot path: fields are set one by one, because spreading them together costs more than all the rest.
  const turn: Writable<Turn> = {
    id: moment.id("turn"),
    conversationId,
    participant: author,
    timestamp: at,
    contentType,
    content,
    source,
    status: "complete",
    metadata,
  };
  if (threadId !== undefined) turn.threadId = threadId;
  if (inReplyTo !== undefined) turn.inReplyTo = inReplyTo;
  if (visibility !== undefined) turn.visibility = visibility;
  return { t: "turn", at, turn };
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };
