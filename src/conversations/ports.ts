/** What this module needs from the store beside journals. The store implements it. */
import type { RowWrite } from "../journal/index.js";
import type { ConversationStatus, ConversationType } from "./rules/types.js";

/** The facts about a conversation that lists need without reading its journal. */
export interface ConversationRow {
  readonly id: string;
  readonly space: string;
  readonly type: ConversationType;
  readonly status: ConversationStatus;
  readonly parentId?: string;
  readonly createdAt: number;
  readonly closedAt?: number;
  /** The immutable part of the conversation, as JSON. */
  readonly header: string;
}

export interface ListedConversation extends ConversationRow {
  readonly participantCount: number;
}

/** Inserts a conversation's row, or updates its status. */
export interface ConversationPut extends RowWrite {
  readonly kind: "conversation.put";
  readonly row: ConversationRow;
}

/** Removes a conversation with its journal. Fails if the journal has moved past `expected`. */
export interface ConversationRemove extends RowWrite {
  readonly kind: "conversation.remove";
  readonly id: string;
  readonly expected: number;
}

/** How far a reader has read a conversation. */
export interface ReadCursorPut extends RowWrite {
  readonly kind: "conversation.read";
  readonly conversation: string;
  readonly reader: string;
  /** The journal number of the last turn that was read. */
  readonly number: number;
}

/** An admin lets a caller observe all conversations, or no longer. */
export interface ObserverPut extends RowWrite {
  readonly kind: "map_observer.put";
  readonly principal: string;
  readonly observes: boolean;
}

/** A participant is now a member, or no longer one. */
export interface ConversationMemberPut extends RowWrite {
  readonly kind: "conversation.member";
  readonly conversation: string;
  readonly participant: string;
  readonly active: boolean;
}

/** A session that can be resumed. Only the MAP server interprets `data`. */
export interface SessionRow {
  readonly id: string;
  /** Hash of the one token that resumes it, never the token itself (decision C7). */
  readonly tokenHash: string;
  /** The principal that may resume it. Absent for anonymous sessions. */
  readonly principal?: string;
  readonly data: string;
  /** When the connection was lost. Absent while the session is connected. */
  readonly lostAt?: number;
  /** Its agents in the order of registration; set by reads only. */
  readonly agents?: readonly string[];
}

export interface SessionPut extends RowWrite {
  readonly kind: "map_session.put";
  readonly row: SessionRow;
  /** The hash of the token that this replaces. Fails if the session has another token by now. */
  readonly replaces?: string;
}

/** An agent of a session was registered or changed, or without `data` removed. */
export interface SessionAgentPut extends RowWrite {
  readonly kind: "map_session.agent";
  readonly session: string;
  readonly id: string;
  readonly data?: string;
}

export interface SessionRemove extends RowWrite {
  readonly kind: "map_session.remove";
  readonly id: string;
}

/** At startup: marks every session as disconnected, and removes those disconnected before `lostBefore`. */
export interface SessionsSweep extends RowWrite {
  readonly kind: "map_session.sweep";
  readonly now: number;
  readonly lostBefore: number;
}

/**
 * An authenticated principal registers an agent under an id. The id then belongs to the principal
 * permanently, because membership of conversations is durable. Fails if the id belongs to another principal,
 * or is reserved for an invitation that the principal does not have.
 */
export interface AgentClaim extends RowWrite {
  readonly kind: "map_agent.claim";
  readonly space: string;
  readonly id: string;
  readonly principal: string;
  /** Hash of the invitation that the principal has. */
  readonly invitation?: string;
  /** Fails unless the id already belongs to the principal. */
  readonly existing?: boolean;
  /** For an agent of the swarm: the id passes to its member token, even if another principal had it. */
  readonly takesOver?: boolean;
}

/** A principal names an id without an owner. Does nothing if the id has an owner by now. */
export interface AgentReserve extends RowWrite {
  readonly kind: "map_agent.reserve";
  readonly space: string;
  readonly id: string;
  readonly principal: string;
  /** Hash of the invitation (decision C7). */
  readonly invitation: string;
}

export type ConversationRowWrite =
  | AgentClaim
  | AgentReserve
  | ConversationPut
  | ConversationRemove
  | ObserverPut
  | ReadCursorPut
  | ConversationMemberPut
  | SessionAgentPut
  | SessionPut
  | SessionRemove
  | SessionsSweep;

export interface IdOwner {
  readonly principal: string;
  /** True if the id was only named by this principal, and has not been registered yet. */
  readonly reserved: boolean;
}

export interface ConversationQuery {
  /** Absent: all spaces. */
  readonly space?: string;
  /** Only conversations of which one of these is a member. Absent: all of the space. */
  readonly members?: readonly string[];
  readonly types?: readonly ConversationType[];
  readonly statuses?: readonly ConversationStatus[];
  readonly participantId?: string;
  readonly createdAfter?: number;
  readonly createdBefore?: number;
  readonly parentId?: string;
  /** Only conversations that were closed or archived before this time. */
  readonly closedBefore?: number;
  /** The id of the last conversation of the previous page. */
  readonly after?: string;
  /** Default `asc`: in order of creation. */
  readonly order?: "asc" | "desc";
  readonly limit: number;
}

export interface ConversationReads {
  /** By creation, which is the order of ids. */
  list(query: ConversationQuery): Promise<ListedConversation[]>;
  sessionByToken(tokenHash: string): Promise<SessionRow | undefined>;
  /** Callers that an admin lets observe all conversations. */
  observers(): Promise<string[]>;
  /** The journal number up to which the reader has read each conversation. */
  readCursors(reader: string, conversations: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Owners of ids of agents and of sessions that can be resumed. Absent: the id has no owner. */
  owners(space: string, ids: readonly string[]): Promise<ReadonlyMap<string, IdOwner>>;
}
