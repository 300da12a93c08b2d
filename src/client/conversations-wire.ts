/** Types of conversations as the server returns them. Field names are the protocol's. */

/** A conversation. */
export interface Conversation {
  readonly id: string;
  readonly type: "user-session" | "agent-task" | "multi-agent" | "mixed";
  readonly status: "active" | "paused" | "completed" | "failed" | "archived";
  readonly subject?: string;
  readonly participantCount: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly closedAt?: number;
  readonly createdBy: string;
  /** A task's conversation has `task_id`, `task_owner`, `swarm` and `task_status`. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A participant of a conversation. */
export interface Participant {
  readonly id: string;
  readonly type: "user" | "agent" | "system";
  readonly role: string;
  readonly joinedAt: number;
  readonly leftAt?: number;
}

/** A conversation with its participants and statistics. */
export interface ConversationDetails {
  readonly conversation: Conversation;
  readonly participants: readonly Participant[];
  readonly stats: { readonly totalTurns: number; readonly activeParticipants: number };
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
  readonly status: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Options of `summary`. */
export interface SummaryOptions {
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

/** An event of a conversation. */
export interface ConversationEvent {
  readonly id: string;
  /** `mail.created`, `mail.turn.added`, … */
  readonly type: string;
  readonly timestamp: number;
  readonly source: string;
  readonly data: Readonly<Record<string, unknown>>;
}
