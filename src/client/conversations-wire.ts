/** Conversations as the server tells of them. Field names are the protocol's. */
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
  /** Of a task: `task_id`, `task_owner`, `swarm`, `task_status`. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface Participant {
  readonly id: string;
  readonly type: "user" | "agent" | "system";
  readonly role: string;
  readonly joinedAt: number;
  readonly leftAt?: number;
}

export interface ConversationDetails {
  readonly conversation: Conversation;
  readonly participants: readonly Participant[];
  readonly stats: { readonly totalTurns: number; readonly activeParticipants: number };
}

export interface Turn {
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

export interface SummaryOptions {
  /** A thread, or the turns from one to another, both included. Default: all of it. */
  readonly scope?: { readonly fromTurnId?: string; readonly toTurnId?: string; readonly threadId?: string };
  /** Even if there is one that still holds. */
  readonly regenerate?: boolean;
  readonly include?: {
    readonly keyPoints?: boolean;
    readonly keyDecisions?: boolean;
    readonly openQuestions?: boolean;
    readonly participants?: boolean;
  };
}

export interface Summary {
  readonly summary: string;
  readonly keyPoints?: readonly string[];
  readonly keyDecisions?: readonly string[];
  readonly openQuestions?: readonly string[];
  readonly participants?: readonly string[];
  /** Whether it was made for this call. */
  readonly generated: boolean;
  readonly cachedAt?: number;
  /** Where the server has a model for it: who wrote this one, and why it was not the model. */
  readonly _meta?: { readonly summariser: string; readonly fallback?: "model_failed" | "model_busy" };
}

export interface ConversationEvent {
  readonly id: string;
  /** `mail.created`, `mail.turn.added`, … */
  readonly type: string;
  readonly timestamp: number;
  readonly source: string;
  readonly data: Readonly<Record<string, unknown>>;
}
