/** MAP Mail, Events: what each entry tells the world, and whom (map-mail 4). */
import type { ConversationEntry } from "./entries.js";
import type { ConversationState, TurnRecord } from "./state.js";
import type { Caller } from "./types.js";
import { hasFullHistory, sees, type Viewer, viewerOfEvent, viewerOfReplay } from "./visibility.js";

export interface MailEvent {
  readonly type: MailEventType;
  readonly timestamp: number;
  /** Who made it happen. */
  readonly source: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export const MAIL_EVENT_TYPES = [
  "mail.created",
  "mail.closed",
  "mail.participant.joined",
  "mail.participant.left",
  "mail.turn.added",
  "mail.turn.updated",
  "mail.thread.created",
  "mail.summary.generated",
] as const;
export type MailEventType = (typeof MAIL_EVENT_TYPES)[number];

/** Nothing for a status that the server set: the seed has no event for it, and it is seen when asked for. */
export function eventOf(conversationId: string, entry: ConversationEntry): MailEvent | undefined {
  switch (entry.t) {
    case "created": {
      const { type, subject, createdBy } = entry.conversation;
      const data = { conversationId, type, ...(subject !== undefined && { subject }), createdBy };
      return { type: "mail.created", timestamp: entry.at, source: createdBy, data };
    }
    case "joined": {
      const data = { conversationId, participant: entry.participant };
      return { type: "mail.participant.joined", timestamp: entry.at, source: entry.by, data };
    }
    case "left": {
      const { participantId, reason } = entry;
      const data = { conversationId, participantId, ...(reason !== undefined && { reason }) };
      return { type: "mail.participant.left", timestamp: entry.at, source: entry.by, data };
    }
    case "turn": {
      const data = { conversationId, turn: entry.turn };
      return { type: "mail.turn.added", timestamp: entry.at, source: entry.turn.participant, data };
    }
    case "turn_updated": {
      const data = { conversationId, turnId: entry.turnId, status: entry.status };
      return { type: "mail.turn.updated", timestamp: entry.at, source: entry.by, data };
    }
    case "thread": {
      const thread = { ...entry.thread, turnCount: 0, participantCount: 0, updatedAt: entry.at };
      const data = { conversationId, thread };
      return { type: "mail.thread.created", timestamp: entry.at, source: entry.thread.createdBy, data };
    }
    case "closed": {
      const data = {
        conversationId,
        closedBy: entry.by,
        ...(entry.reason !== undefined && { reason: entry.reason }),
      };
      return { type: "mail.closed", timestamp: entry.at, source: entry.by, data };
    }
    case "summary": {
      const data = { conversationId, summary: entry.summary.summary };
      return { type: "mail.summary.generated", timestamp: entry.at, source: entry.by, data };
    }
    case "status":
      return undefined;
    default:
      return entry satisfies never;
  }
}

/** The turn that an entry is about, if it is about one. */
export function turnOf(state: ConversationState, entry: ConversationEntry): TurnRecord | undefined {
  switch (entry.t) {
    case "turn":
      return state.turnsById.get(entry.turn.id);
    case "turn_updated":
      return state.turnsById.get(entry.turnId);
    case "thread":
      return state.threads.get(entry.thread.id)?.root;
    default:
      return undefined;
  }
}

/** Whether the caller is told of the entry with this number as it happens. */
export function isToldLive(
  state: ConversationState,
  caller: Caller,
  number: number,
  entry: ConversationEntry,
): boolean {
  if (caller.space !== state.header.space) return false;
  return isTold(viewerOfEvent(state, caller, number), state, entry);
}

/** Whether the caller is told of it when it asks afterwards. */
export function isToldAgain(
  state: ConversationState,
  caller: Caller,
  number: number,
  entry: ConversationEntry,
  committed: number,
): boolean {
  if (caller.space !== state.header.space || !caller.capabilities.canViewHistory) return false;
  return isTold(viewerOfReplay(state, caller, number, committed), state, entry);
}

function isTold(viewer: Viewer, state: ConversationState, entry: ConversationEntry): boolean {
  if (viewer.kind === "stranger") return false;
  switch (entry.t) {
    case "turn":
    case "turn_updated":
    case "thread": {
      const turn = turnOf(state, entry);
      return turn !== undefined && sees(viewer, turn, "live");
    }
    case "summary":
      // It speaks of the whole past, so it is for those to whom the past is open.
      return hasFullHistory(viewer);
    case "joined":
      return observes(viewer) || isAbout(viewer, entry.participant.id);
    case "left":
      return observes(viewer) || isAbout(viewer, entry.participantId);
    case "created":
    case "closed":
    case "status":
      return observes(viewer);
    default:
      return entry satisfies never;
  }
}

function observes(viewer: Exclude<Viewer, { kind: "stranger" }>): boolean {
  return viewer.kind === "observer" || viewer.memberships.some(({ stint }) => stint.permissions.canObserve);
}

function isAbout(viewer: Exclude<Viewer, { kind: "stranger" }>, id: string): boolean {
  return viewer.kind === "member" && viewer.memberships.some((membership) => membership.id === id);
}
