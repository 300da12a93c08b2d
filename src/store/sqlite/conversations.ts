import {
  CONVERSATION_STATUSES,
  CONVERSATION_TYPES,
  type ConversationStatus,
  type ConversationType,
} from "../../conversations/domain/types.js";
import type { ConversationIndex, ConversationQuery, ListedConversation } from "../../conversations/ports.js";
import type { Database } from "./driver.js";

interface StoredConversation {
  readonly id: string;
  readonly space: string;
  readonly type: string;
  readonly status: string;
  readonly parent_id: string | null;
  readonly created_at: number;
  readonly closed_at: number | null;
  readonly header: string;
  readonly members: number;
}

interface StoredSession {
  readonly id: string;
  readonly token_hash: string;
  readonly principal: string | null;
  readonly data: string;
  readonly lost_at: number | null;
}

const CONDITIONS = `c.space = @space AND c.id > @after
  AND (@types IS NULL OR c.type IN (SELECT value FROM json_each(@types)))
  AND (@statuses IS NULL OR c.status IN (SELECT value FROM json_each(@statuses)))
  AND (@parent IS NULL OR c.parent_id = @parent)
  AND (@createdAfter IS NULL OR c.created_at > @createdAfter)
  AND (@createdBefore IS NULL OR c.created_at < @createdBefore)
  AND (@participant IS NULL OR EXISTS (SELECT 1 FROM conversation_members p
    WHERE p.participant = @participant AND p.active = 1 AND p.conversation = c.id))`;

const COLUMNS = `c.id, c.space, c.type, c.status, c.parent_id, c.created_at, c.closed_at, c.header,
  (SELECT count(*) FROM conversation_members n WHERE n.conversation = c.id AND n.active = 1) AS members`;

/** The queries, by name, so that a test can ask for their plans. */
export const CONVERSATION_QUERIES = {
  all: `SELECT ${COLUMNS} FROM conversations c WHERE ${CONDITIONS} ORDER BY c.id LIMIT @limit`,
  // Begins with the members' own conversations, so that what it costs does not depend on everybody else's.
  ofMembers: `SELECT ${COLUMNS} FROM (
      SELECT DISTINCT m.conversation FROM json_each(@members) AS ids
      CROSS JOIN conversation_members m
        ON m.participant = ids.value AND m.active = 1 AND m.conversation > @after
    ) AS mine CROSS JOIN conversations c ON c.id = mine.conversation
    WHERE ${CONDITIONS} ORDER BY c.id LIMIT @limit`,
} as const;

export function createConversationIndex(db: Database, assertOpen: () => void): ConversationIndex {
  const all = db.prepare<[object], StoredConversation>(CONVERSATION_QUERIES.all);
  const ofMembers = db.prepare<[object], StoredConversation>(CONVERSATION_QUERIES.ofMembers);
  const byToken = db.prepare<[string], StoredSession>("SELECT * FROM map_sessions WHERE token_hash = ?");

  return {
    async list(query) {
      assertOpen();
      const values = bind(query);
      const rows =
        query.members === undefined
          ? all.all(values)
          : ofMembers.all({ ...values, members: JSON.stringify(query.members) });
      return rows.map(toListed);
    },

    async sessionByToken(tokenHash) {
      assertOpen();
      const stored = byToken.get(tokenHash);
      if (stored === undefined) return undefined;
      return {
        id: stored.id,
        tokenHash: stored.token_hash,
        data: stored.data,
        ...(stored.principal !== null && { principal: stored.principal }),
        ...(stored.lost_at !== null && { lostAt: stored.lost_at }),
      };
    },
  };
}

/** An empty list restricts nothing. */
function bind(query: ConversationQuery): object {
  const list = (values: readonly string[] | undefined): string | null =>
    values === undefined || values.length === 0 ? null : JSON.stringify(values);
  return {
    space: query.space,
    after: query.after ?? "",
    types: list(query.types),
    statuses: list(query.statuses),
    parent: query.parentId ?? null,
    createdAfter: query.createdAfter ?? null,
    createdBefore: query.createdBefore ?? null,
    participant: query.participantId ?? null,
    limit: query.limit,
  };
}

function toListed(stored: StoredConversation): ListedConversation {
  return {
    id: stored.id,
    space: stored.space,
    type: typeOf(stored.type),
    status: statusOf(stored.status),
    createdAt: stored.created_at,
    header: stored.header,
    participantCount: stored.members,
    ...(stored.parent_id !== null && { parentId: stored.parent_id }),
    ...(stored.closed_at !== null && { closedAt: stored.closed_at }),
  };
}

function typeOf(text: string): ConversationType {
  const type = CONVERSATION_TYPES.find((candidate) => candidate === text);
  if (type === undefined) throw new Error(`the database holds a conversation of unknown type "${text}"`);
  return type;
}

function statusOf(text: string): ConversationStatus {
  const status = CONVERSATION_STATUSES.find((candidate) => candidate === text);
  if (status === undefined) throw new Error(`the database holds a conversation of unknown status "${text}"`);
  return status;
}
