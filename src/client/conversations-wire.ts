/** Types of conversations as the server returns them. Field names are the protocol's. */
import type { CallOptions } from "./transport.js";

/** A conversation. */
export interface Conversation {
  readonly id: string;
  readonly type: "user-session" | "agent-task" | "multi-agent" | "mixed";
  readonly status: "active" | "paused" | "completed" | "failed" | "archived";
  readonly subject?: string;
  readonly participantCount: number;
  readonly parentConversationId?: string;
  readonly parentTurnId?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly closedAt?: number;
  readonly createdBy: string;
  /** A task's conversation has `task_id`, `task_owner`, `swarm` and `task_status`. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** The role of a participant, which brings its permissions. */
export type ParticipantRole = "initiator" | "assistant" | "worker" | "observer" | "moderator";

/** What a participant may do. */
export interface Permissions {
  readonly canSend: boolean;
  readonly canObserve: boolean;
  readonly canInvite: boolean;
  readonly canRemove: boolean;
  readonly canCreateThreads: boolean;
  readonly canSeeInternal: boolean;
  readonly historyAccess: "none" | "from-join" | "full";
}

/** A participant of a conversation. */
export interface Participant {
  readonly id: string;
  readonly type: "user" | "agent" | "system";
  readonly role: ParticipantRole;
  readonly joinedAt: number;
  readonly leftAt?: number;
  readonly permissions: Permissions;
  readonly agentInfo?: { readonly agentId: string; readonly name?: string; readonly role?: string };
  readonly _meta?: { readonly invitedBy: string; readonly message?: string };
}

/** Who sees a turn. */
export type Visibility =
  | { readonly type: "all" }
  | { readonly type: "participants"; readonly ids: readonly string[] }
  | { readonly type: "role"; readonly roles: readonly ParticipantRole[] }
  | { readonly type: "private" };

/** A thread of a conversation, which begins at a turn. */
export interface Thread {
  readonly id: string;
  readonly conversationId: string;
  readonly parentThreadId?: string;
  readonly subject?: string;
  readonly rootTurnId: string;
  readonly turnCount: number;
  readonly participantCount: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly createdBy: string;
}

/** A conversation with its participants and statistics. */
export interface ConversationDetails {
  readonly conversation: Conversation;
  readonly participants: readonly Participant[];
  readonly stats: { readonly totalTurns: number; readonly activeParticipants: number };
}

/** How many turns of others a caller has not read. */
export interface Unread {
  readonly conversationId: string;
  readonly unread: number;
  /** Whether there are more than were counted. */
  readonly more?: true;
}

/** Whether a participant is connected. */
export interface Presence {
  readonly participantId: string;
  readonly role: ParticipantRole;
  readonly joinedAt: number;
  readonly presence: "online" | "offline";
}

/** A call that a paused task waits for. */
export interface OpenCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: unknown;
}

/** A MAP turn: one contribution to a conversation. */
export interface ConversationTurn {
  readonly id: string;
  readonly conversationId: string;
  readonly participant: string;
  readonly timestamp: number;
  readonly contentType: string;
  readonly content: unknown;
  readonly threadId?: string;
  readonly inReplyTo?: string;
  readonly source:
    | { readonly type: "explicit"; readonly method: "mail/turn" }
    | { readonly type: "intercepted"; readonly messageId: string };
  readonly visibility?: Visibility;
  readonly status: "pending" | "streaming" | "complete" | "failed";
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Options of `summary`. */
export interface SummaryOptions extends CallOptions {
  /**
   * A thread, or the turns from one to another, both included.
   * @defaultValue the whole conversation
   */
  readonly scope?: { readonly fromTurnId?: string; readonly toTurnId?: string; readonly threadId?: string };
  /**
   * Whether to create a new summary even if the stored one is current.
   * @defaultValue false
   */
  readonly regenerate?: boolean;
  /** What the summary also contains. */
  readonly include?: {
    readonly keyPoints?: boolean;
    readonly keyDecisions?: boolean;
    readonly openQuestions?: boolean;
    readonly participants?: boolean;
  };
}

/** A summary of a conversation. */
export interface Summary {
  readonly summary: string;
  readonly keyPoints?: readonly string[];
  readonly keyDecisions?: readonly string[];
  readonly openQuestions?: readonly string[];
  readonly participants?: readonly string[];
  /** Whether it was created for this call. */
  readonly generated: boolean;
  readonly cachedAt?: number;
  /** On servers with a summary model: the writer of this summary, and why it is not the model. */
  readonly _meta?: { readonly summariser: string; readonly fallback?: "model_failed" | "model_busy" };
}
