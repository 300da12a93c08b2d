/**
 * The entries of a conversation's journal. Everything that is shown is derived from them. Each entry yields
 * at most one `mail.*` event.
 *
 * Every version must be able to read what earlier versions wrote: entries only gain optional fields, and a
 * change of meaning is a new kind of entry.
 */
import type {
  ConversationStatus,
  ConversationType,
  Metadata,
  Participant,
  ParticipantRole,
  Permissions,
  Thread,
  Turn,
  TurnStatus,
} from "./types.js";

export const CONVERSATION_JOURNAL_VERSION = 1;

interface At {
  readonly at: number;
}

/** The conversation was created. */
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
  /** The number of `joined` entries that follow and add the first members. */
  readonly founders: number;
}

/** A participant joined, or was invited. */
export interface Joined extends At {
  readonly t: "joined";
  readonly participant: Participant;
  /** The participant itself, or the member that invited it. */
  readonly by: string;
  /** The authenticated caller that the participant's id belongs to, if that was known. */
  readonly principal?: string;
  /** The member of the same caller that this participant joined beside. It is removed with that member. */
  readonly beside?: string;
  readonly reserves?: Reservation;
}

/** An id without an owner is kept for those who have the invitation, and for the inviter itself. */
export interface Reservation {
  readonly id: string;
  /** The inviter's principal. */
  readonly principal: string;
  /** Hash of the invitation, never the invitation itself (decision C7). */
  readonly invitation: string;
}

/** A participant left, or was removed. */
export interface Left extends At {
  readonly t: "left";
  readonly participantId: string;
  readonly by: string;
  readonly reason?: string;
}

/** A MAP turn was added. */
export interface TurnAdded extends At {
  readonly t: "turn";
  readonly turn: Turn;
  /** Events that caused it: the `message_sent` of an intercepted turn. */
  readonly causedBy?: readonly string[];
  /** Ids that the turn addresses and that are not members. */
  readonly addressed?: readonly string[];
  readonly reserves?: readonly Reservation[];
}

/** The status of a MAP turn changed. */
export interface TurnUpdated extends At {
  readonly t: "turn_updated";
  readonly turnId: string;
  readonly status: TurnStatus;
  readonly by: string;
}

/** A thread was created. */
export interface ThreadCreated extends At {
  readonly t: "thread";
  readonly thread: Omit<Thread, "turnCount" | "participantCount" | "updatedAt">;
  readonly depth: number;
}

/** The conversation was closed. */
export interface Closed extends At {
  readonly t: "closed";
  readonly by: string;
  readonly reason?: string;
}

/** Paused, active again, failed, archived (decision F7). */
export interface StatusSet extends At {
  readonly t: "status";
  readonly status: ConversationStatus;
  readonly by: string;
  readonly reason?: string;
  /** For a paused task: the calls that wait for a result. */
  readonly openCalls?: readonly OpenCall[];
  /** For a paused task: the calls that wait for approval. */
  readonly approvals?: readonly OpenCall[];
}

export interface OpenCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: unknown;
}

/** A member's role and permissions from now on. */
export interface MemberChanged extends At {
  readonly t: "member";
  readonly participantId: string;
  readonly role: ParticipantRole;
  readonly permissions: Permissions;
  readonly by: string;
}

/** A summary was made. */
export interface SummaryMade extends At {
  readonly t: "summary";
  /** Identifies the range of turns that was summarized. */
  readonly scope: string;
  /** The journal number up to which turns were considered. */
  readonly upTo: number;
  readonly by: string;
  readonly summary: SummaryText;
}

export interface SummaryText {
  readonly summary: string;
  readonly keyPoints: readonly string[];
  readonly keyDecisions: readonly string[];
  readonly openQuestions: readonly string[];
  /** The name of the summarizer. Absent for extractive summaries when no model is configured. */
  readonly summariser?: string;
  /** Why the extractive summary was used instead of the model's. */
  readonly fallback?: SummaryFallback;
}

/** `model_failed`: the model gave no usable answer. `model_busy`: too many questions were running. */
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
  | MemberChanged
  | SummaryMade;
