/** The event of each entry [MAP-EVNT-01], and who receives it. */
import type { ConversationEntry } from "./entries.js";
import type { ConversationState, TurnRecord } from "./state.js";
import type { Actor } from "./types.js";
import { hasFullHistory, isInReach, sees, type Viewer, viewerOfEvent, viewerOfReplay } from "./visibility.js";

export interface MailEvent {
  readonly type: MailEventType | AddedEventType;
  readonly timestamp: number;
  /** The participant that caused it. */
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

/** Events that the protocol does not have. */
export const ADDED_EVENT_TYPES = ["mailroom.conversation.status", "mailroom.participant.changed"] as const;
export type AddedEventType = (typeof ADDED_EVENT_TYPES)[number];

export function toMailEvent(conversationId: string, entry: ConversationEntry): MailEvent {
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
    case "status": {
      const { status, by, reason, openCalls, approvals } = entry;
      const data = {
        conversationId,
        status,
        ...(reason !== undefined && { reason }),
        ...(openCalls !== undefined && { openCalls }),
        ...(approvals !== undefined && { approvals }),
      };
      return { type: "mailroom.conversation.status", timestamp: entry.at, source: by, data };
    }
    case "member": {
      const { participantId, role, permissions, by } = entry;
      const data = { conversationId, participantId, role, permissions };
      return { type: "mailroom.participant.changed", timestamp: entry.at, source: by, data };
    }
    default:
      return entry satisfies never;
  }
}

/** The turn that an entry refers to, if any. */
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

/** Whether the actor receives the entry's event when it happens. */
export function isVisibleLive(
  state: ConversationState,
  actor: Actor,
  number: number,
  entry: ConversationEntry,
): boolean {
  if (!isInReach(state, actor)) return false;
  return isVisible(viewerOfEvent(state, actor, number), state, entry);
}

/** Whether the actor sees the entry's event in a replay. */
export function isVisibleInReplay(
  state: ConversationState,
  actor: Actor,
  number: number,
  entry: ConversationEntry,
  committed: number,
): boolean {
  if (!isInReach(state, actor) || !actor.capabilities.canViewHistory) return false;
  return isVisible(viewerOfReplay(state, actor, number, committed), state, entry);
}

function isVisible(viewer: Viewer, state: ConversationState, entry: ConversationEntry): boolean {
  if (viewer.kind === "outsider") return false;
  switch (entry.t) {
    case "turn":
    case "turn_updated":
    case "thread": {
      const turn = turnOf(state, entry);
      return turn !== undefined && sees(viewer, turn, "live");
    }
    case "summary":
      // A summary covers all of the past, so only members with full history may see it.
      return hasFullHistory(viewer);
    case "joined":
      return observes(viewer) || isAbout(viewer, entry.participant.id);
    case "left":
    case "member":
      return observes(viewer) || isAbout(viewer, entry.participantId);
    case "created":
    case "closed":
    case "status":
      return observes(viewer);
    default:
      return entry satisfies never;
  }
}

function observes(viewer: Exclude<Viewer, { kind: "outsider" }>): boolean {
  return viewer.kind === "observer" || viewer.memberships.some(({ period }) => period.permissions.canObserve);
}

function isAbout(viewer: Exclude<Viewer, { kind: "outsider" }>, id: string): boolean {
  return viewer.kind === "member" && viewer.memberships.some((membership) => membership.id === id);
}
