/**
 * The vocabulary of a conversation's journal. The list of entries is the truth about the conversation; everything
 * that is shown is derived from it. Each entry that people are told about gives exactly one `mail.*` event.
 *
 * What a version has written must load for ever: entries only ever gain optional fields, and a change of meaning is a
 * new kind of entry.
 */
import type {
  ConversationStatus,
  ConversationType,
  Metadata,
  Participant,
  Thread,
  Turn,
  TurnStatus,
} from "./types.js";

export const CONVERSATION_JOURNAL_VERSION = 1;

interface At {
  readonly at: number;
}

export interface Created extends At {
  readonly t: "created";
  readonly v: number;
  readonly conversation: {
    readonly id: string;
    readonly type: ConversationType;
    readonly subject?: string;
    readonly parentConversationId?: string;
    readonly parentTurnId?: string;
    readonly createdBy: string;
    readonly metadata: Metadata;
    readonly space: string;
  };
  /** How many of the entries that follow let in its first members. */
  readonly founders: number;
}

export interface Joined extends At {
  readonly t: "joined";
  readonly participant: Participant;
  /** Who made it happen: the participant itself, or who invited it. */
  readonly by: string;
}

export interface Left extends At {
  readonly t: "left";
  readonly participantId: string;
  readonly by: string;
  readonly reason?: string;
}

export interface TurnAdded extends At {
  readonly t: "turn";
  readonly turn: Turn;
  /** Events that led to it: the `message_sent` of an intercepted turn. */
  readonly causedBy?: readonly string[];
}

export interface TurnUpdated extends At {
  readonly t: "turn_updated";
  readonly turnId: string;
  readonly status: TurnStatus;
  readonly by: string;
}

export interface ThreadCreated extends At {
  readonly t: "thread";
  readonly thread: Omit<Thread, "turnCount" | "participantCount" | "updatedAt">;
  readonly depth: number;
}

export interface Closed extends At {
  readonly t: "closed";
  readonly by: string;
  readonly reason?: string;
}

/** Set through the server's own API: paused, active again, failed, archived (decisions F7). */
export interface StatusSet extends At {
  readonly t: "status";
  readonly status: ConversationStatus;
  readonly by: string;
}

export interface SummaryMade extends At {
  readonly t: "summary";
  /** Names the part of the conversation that was summarised. */
  readonly scope: string;
  /** The number up to which turns were considered. */
  readonly upTo: number;
  readonly by: string;
  readonly summary: SummaryText;
}

export interface SummaryText {
  readonly summary: string;
  readonly keyPoints: readonly string[];
  readonly keyDecisions: readonly string[];
  readonly openQuestions: readonly string[];
  /** Who has written it; absent for the extractive one where nothing else is configured. */
  readonly summariser?: string;
  /** Why it was not written by whom it should have been. */
  readonly fallback?: SummaryFallback;
}

/** `model_failed`: it gave no answer that could be used. `model_busy`: too many were asked for at once. */
export type SummaryFallback = "model_failed" | "model_busy";

export type ConversationEntry =
  | Created
  | Joined
  | Left
  | TurnAdded
  | TurnUpdated
  | ThreadCreated
  | Closed
  | StatusSet
  | SummaryMade;
