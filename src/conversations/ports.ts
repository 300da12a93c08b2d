/** What this room asks of the store beside journals. The store implements it; nothing here knows SQL. */
import type { RowWrite } from "../engine/ports.js";
import type { ConversationStatus, ConversationType } from "./domain/types.js";

/** What can be known about a conversation without reading its journal. */
export interface ConversationRow {
  readonly id: string;
  readonly space: string;
  readonly type: ConversationType;
  readonly status: ConversationStatus;
  readonly parentId?: string;
  readonly createdAt: number;
  readonly closedAt?: number;
  /** The constant part of the conversation, as JSON. */
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

/** Somebody is a member now, or no longer. */
export interface ConversationMember extends RowWrite {
  readonly kind: "conversation.member";
  readonly conversation: string;
  readonly participant: string;
  readonly active: boolean;
}

/** A session that can be taken up again. `data` is the server's own business. */
export interface SessionRow {
  readonly id: string;
  /** Of the one token that resumes it (decisions C7: never the token itself). */
  readonly tokenHash: string;
  /** Who may resume it; absent for anonymous ones. */
  readonly principal?: string;
  readonly data: string;
  /** When its connection was lost; absent while it is connected. */
  readonly lostAt?: number;
}

export interface SessionPut extends RowWrite {
  readonly kind: "map_session.put";
  readonly row: SessionRow;
  /** The token that is used up by this: refused if the session has another one by now. */
  readonly replaces?: string;
}

export interface SessionRemove extends RowWrite {
  readonly kind: "map_session.remove";
  readonly id: string;
}

/** At a start: every session that was connected has lost its connection, and those lost too long ago are over. */
export interface SessionsSweep extends RowWrite {
  readonly kind: "map_session.sweep";
  readonly now: number;
  readonly lostBefore: number;
}

/**
 * An authenticated principal registers an agent under an id. From then on the id is theirs: membership of
 * conversations lasts, so nobody else may ever come back under it. Refused if it is somebody else's.
 */
export interface AgentClaim extends RowWrite {
  readonly kind: "map_agent.claim";
  readonly space: string;
  readonly id: string;
  readonly principal: string;
  /** For an agent of the swarm: the id is its member's, whoever had it before. */
  readonly takesOver?: boolean;
}

export type ConversationRowWrite =
  | AgentClaim
  | ConversationPut
  | ConversationMember
  | SessionPut
  | SessionRemove
  | SessionsSweep;

export interface ConversationQuery {
  readonly space: string;
  /** Only conversations that one of these is a member of; absent: all of the space. */
  readonly members?: readonly string[];
  readonly types?: readonly ConversationType[];
  readonly statuses?: readonly ConversationStatus[];
  readonly participantId?: string;
  readonly createdAfter?: number;
  readonly createdBefore?: number;
  readonly parentId?: string;
  /** The id of the last conversation already seen. */
  readonly after?: string;
  readonly limit: number;
}

export interface ConversationIndex {
  /** In order of creation, which is the order of ids. */
  list(query: ConversationQuery): Promise<ListedConversation[]>;
  sessionByToken(tokenHash: string): Promise<SessionRow | undefined>;
}
