/**
 * MAP Mail as data. Field names are the protocol's.
 *
 * Terms
 * - conversation: a container of turns with members and a lifecycle.
 * - member: a participant that has joined and not left.
 * - turn: one contribution to a conversation (a MAP turn); a thread starts at a turn.
 * - actor: the participant that makes a request, with all of its ids.
 */

export const CONVERSATION_TYPES = ["user-session", "agent-task", "multi-agent", "mixed"] as const;
export type ConversationType = (typeof CONVERSATION_TYPES)[number];

export const CONVERSATION_STATUSES = ["active", "paused", "completed", "failed", "archived"] as const;
export type ConversationStatus = (typeof CONVERSATION_STATUSES)[number];

export const PARTICIPANT_ROLES = ["initiator", "assistant", "worker", "observer", "moderator"] as const;
export type ParticipantRole = (typeof PARTICIPANT_ROLES)[number];

export const HISTORY_ACCESS = ["none", "from-join", "full"] as const;
export type HistoryAccess = (typeof HISTORY_ACCESS)[number];

export const TURN_STATUSES = ["pending", "streaming", "complete", "failed"] as const;
export type TurnStatus = (typeof TURN_STATUSES)[number];

export const PERMISSION_FLAGS = [
  "canSend",
  "canObserve",
  "canInvite",
  "canRemove",
  "canCreateThreads",
  "canSeeInternal",
] as const;
export type PermissionFlag = (typeof PERMISSION_FLAGS)[number];

export type Permissions = { readonly [flag in PermissionFlag]: boolean } & {
  readonly historyAccess: HistoryAccess;
};

export type Metadata = Readonly<Record<string, unknown>>;

export interface Conversation {
  readonly id: string;
  readonly type: ConversationType;
  readonly status: ConversationStatus;
  readonly subject?: string;
  readonly participantCount: number;
  readonly parentConversationId?: string;
  readonly parentTurnId?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly closedAt?: number;
  readonly createdBy: string;
  readonly metadata: Metadata;
}

export interface AgentInfo {
  readonly agentId: string;
  readonly name?: string;
  readonly role?: string;
}

export type ParticipantType = "user" | "agent" | "system";

export interface Participant {
  readonly id: string;
  readonly type: ParticipantType;
  readonly role: ParticipantRole;
  readonly joinedAt: number;
  readonly leftAt?: number;
  readonly permissions: Permissions;
  readonly agentInfo?: AgentInfo;
  /** The inviter and its message: the protocol has a message but no field to keep it in. */
  readonly _meta?: { readonly invitedBy: string; readonly message?: string };
}

export type Visibility =
  | { readonly type: "all" }
  | { readonly type: "participants"; readonly ids: readonly string[] }
  | { readonly type: "role"; readonly roles: readonly ParticipantRole[] }
  | { readonly type: "private" };

export type TurnSource =
  | { readonly type: "explicit"; readonly method: "mail/turn" }
  | { readonly type: "intercepted"; readonly messageId: string };

export interface Turn {
  readonly id: string;
  readonly conversationId: string;
  readonly participant: string;
  readonly timestamp: number;
  readonly contentType: string;
  readonly content: unknown;
  readonly threadId?: string;
  readonly inReplyTo?: string;
  readonly source: TurnSource;
  readonly visibility?: Visibility;
  readonly status: TurnStatus;
  readonly metadata: Metadata;
}

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

export const MAIL_CAPABILITIES = [
  "canCreate",
  "canJoin",
  "canInvite",
  "canViewHistory",
  "canCreateThreads",
] as const;
export type MailCapability = (typeof MAIL_CAPABILITIES)[number];
/** MAP Mail, Capability Negotiation: what this participant may do on this server. */
export type MailCapabilities = { readonly [capability in MailCapability]: boolean };

/** The participant that makes a request, with all of its ids (REF-32). */
export interface Actor {
  /** The id that the actor writes under. */
  readonly acting: string;
  /** Every id of the actor, including `acting`. Any of them can be a member. */
  readonly identities: ReadonlySet<string>;
  /** May watch public turns of conversations without being a member (decision F3). */
  readonly observer: boolean;
  readonly capabilities: MailCapabilities;
  /** Conversations of other spaces do not exist for this actor (`isolate`). */
  readonly space: string;
  /** An observer that sees the conversations of all spaces. */
  readonly allSpaces?: true;
  /** The authenticated caller behind all of these ids, such as `user:ann`. Absent for anonymous clients. */
  readonly principal?: string;
  /** The authenticated user behind the actor. Tasks belong to it by this, never by an id (decision F4). */
  readonly instance?: { readonly role: "user" | "admin"; readonly id: string };
}

/** What is known about a new member. */
export interface ParticipantIdentity {
  readonly type: ParticipantType;
  readonly agentInfo?: AgentInfo;
  /** The authenticated caller that the id belongs to, if it belongs to one. */
  readonly principal?: string;
}
