import {
  type AgentClaim,
  type AgentReserve,
  CONVERSATION_STATUSES,
  CONVERSATION_TYPES,
  type ConversationMemberPut,
  type ConversationPut,
  type ConversationQuery,
  type ConversationReads,
  type ConversationRemove,
  type ConversationRowWrite,
  type ConversationStatus,
  type ConversationType,
  type ListedConversation,
  type ObserverPut,
  type ReadCursorPut,
  type SessionAgentPut,
  type SessionPut,
  type SessionRemove,
  type SessionsSweep,
} from "../../conversations/index.js";
import { RowConflictError } from "../../journal/index.js";
import type { Database } from "../database.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/**
 * MAP's tables: conversations, their members, and sessions that can be resumed. Turns are in journals: rows change with
 * membership and status, never with a turn.
 */
export const conversationTables = defineTableSet<ConversationRowWrite>({
  name: "conversations",
  migrations: [
    {
      number: 1,
      name: "conversations, members and sessions",
      sql: `
        CREATE TABLE conversations (
          id TEXT PRIMARY KEY,
          space TEXT NOT NULL,
          type TEXT NOT NULL,
          status TEXT NOT NULL,
          parent_id TEXT,
          created_at INTEGER NOT NULL,
          closed_at INTEGER,
          header TEXT NOT NULL
        ) STRICT;
        CREATE INDEX conversations_by_parent ON conversations (parent_id, id) WHERE parent_id IS NOT NULL;
        CREATE TABLE conversation_members (
          participant TEXT NOT NULL,
          conversation TEXT NOT NULL,
          active INTEGER NOT NULL,
          PRIMARY KEY (participant, active, conversation)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX conversation_members_of ON conversation_members (conversation, active);
        CREATE TABLE map_sessions (
          id TEXT PRIMARY KEY,
          token_hash TEXT NOT NULL UNIQUE,
          principal TEXT,
          data TEXT NOT NULL,
          lost_at INTEGER
        ) STRICT;
        CREATE TABLE map_agents (
          space TEXT NOT NULL,
          id TEXT NOT NULL,
          principal TEXT NOT NULL,
          PRIMARY KEY (space, id)
        ) STRICT, WITHOUT ROWID;
      `,
    },
    {
      number: 2,
      name: "ids reserved for invitations",
      // The hash of the invitation; null once the id is registered.
      sql: "ALTER TABLE map_agents ADD COLUMN invitation TEXT;",
    },
    {
      number: 3,
      name: "a row for each agent of a session",
      // Ordered by rowid: the first agent of a session acts for it. Sessions of earlier builds list theirs in `data`.
      sql: `
        CREATE TABLE map_session_agents (
          session TEXT NOT NULL,
          id TEXT NOT NULL,
          data TEXT NOT NULL,
          UNIQUE (session, id)
        ) STRICT;
      `,
    },
    {
      number: 4,
      name: "read cursors and observers",
      sql: `
        CREATE TABLE conversation_reads (
          reader TEXT NOT NULL,
          conversation TEXT NOT NULL,
          number INTEGER NOT NULL,
          PRIMARY KEY (reader, conversation)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX conversation_reads_of ON conversation_reads (conversation);
        CREATE TABLE map_observers (principal TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
      `,
    },
  ],
  writes: {
    "conversation.put": putConversation,
    "conversation.member": putMember,
    "conversation.remove": removeConversation,
    "conversation.read": putReadCursor,
    "map_observer.put": putObserver,
    "map_session.put": putSession,
    "map_session.agent": putSessionAgent,
    "map_session.remove": removeSession,
    "map_session.sweep": sweepSessions,
    "map_agent.claim": claimAgent,
    "map_agent.reserve": reserveAgent,
  },
});

function putConversation({ db }: WriteContext): (write: ConversationPut) => void {
  const put = db.prepare(`
    INSERT INTO conversations (id, space, type, status, parent_id, created_at, closed_at, header)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, closed_at = excluded.closed_at
  `);
  return ({ row }) => {
    put.run(
      row.id,
      row.space,
      row.type,
      row.status,
      row.parentId ?? null,
      row.createdAt,
      row.closedAt ?? null,
      row.header,
    );
  };
}

function removeConversation({ db, journals, removals }: WriteContext): (write: ConversationRemove) => void {
  const tables = ["conversation_members", "conversation_reads"] as const;
  const deletions = tables.map((table) => db.prepare(`DELETE FROM ${table} WHERE conversation = ?`));
  const removeRow = db.prepare("DELETE FROM conversations WHERE id = ?");
  return ({ kind, id, expected }) => {
    const last = journals.lastNumber(id);
    if (last !== expected) {
      throw new RowConflictError(kind, `conversation ${id} is at ${last}, not at ${expected}`);
    }
    for (const remove of deletions) remove.run(id);
    removeRow.run(id);
    removals.remove(id);
  };
}

/** A cursor never moves back. */
function putReadCursor({ db }: WriteContext): (write: ReadCursorPut) => void {
  const put = db.prepare(`
    INSERT INTO conversation_reads (reader, conversation, number) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET number = max(number, excluded.number)
  `);
  return ({ reader, conversation, number }) => {
    put.run(reader, conversation, number);
  };
}

function putObserver({ db }: WriteContext): (write: ObserverPut) => void {
  const add = db.prepare("INSERT INTO map_observers (principal) VALUES (?) ON CONFLICT DO NOTHING");
  const remove = db.prepare("DELETE FROM map_observers WHERE principal = ?");
  return ({ principal, observes }) => {
    (observes ? add : remove).run(principal);
  };
}

function putMember({ db }: WriteContext): (write: ConversationMemberPut) => void {
  const remove = db.prepare(
    "DELETE FROM conversation_members WHERE participant = ? AND active = ? AND conversation = ?",
  );
  const put = db.prepare(
    "INSERT OR REPLACE INTO conversation_members (participant, active, conversation) VALUES (?, ?, ?)",
  );
  return ({ participant, conversation, active }) => {
    remove.run(participant, active ? 0 : 1, conversation);
    put.run(participant, active ? 1 : 0, conversation);
  };
}

function putSession({ db }: WriteContext): (write: SessionPut) => void {
  const put = db.prepare(`
    INSERT INTO map_sessions (id, token_hash, principal, data, lost_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET token_hash = excluded.token_hash, data = excluded.data, lost_at = excluded.lost_at
  `);
  const tokenOf = db.prepare<[string], string>("SELECT token_hash FROM map_sessions WHERE id = ?").pluck();
  return ({ kind, row, replaces }) => {
    if (replaces !== undefined && tokenOf.get(row.id) !== replaces) {
      throw new RowConflictError(kind, `the resume token of session ${row.id} has been used`);
    }
    put.run(row.id, row.tokenHash, row.principal ?? null, row.data, row.lostAt ?? null);
  };
}

function putSessionAgent({ db }: WriteContext): (write: SessionAgentPut) => void {
  const put = db.prepare(`
    INSERT INTO map_session_agents (session, id, data) VALUES (?, ?, ?)
    ON CONFLICT (session, id) DO UPDATE SET data = excluded.data
  `);
  const remove = db.prepare("DELETE FROM map_session_agents WHERE session = ? AND id = ?");
  return ({ session, id, data }) => {
    if (data === undefined) remove.run(session, id);
    else put.run(session, id, data);
  };
}

function removeSession({ db }: WriteContext): (write: SessionRemove) => void {
  const remove = db.prepare("DELETE FROM map_sessions WHERE id = ?");
  const removeAgents = db.prepare("DELETE FROM map_session_agents WHERE session = ?");
  return ({ id }) => {
    remove.run(id);
    removeAgents.run(id);
  };
}

function sweepSessions({ db }: WriteContext): (write: SessionsSweep) => void {
  const remove = db.prepare("DELETE FROM map_sessions WHERE lost_at < ?");
  const removeAgents = db.prepare(
    "DELETE FROM map_session_agents WHERE session NOT IN (SELECT id FROM map_sessions)",
  );
  const lose = db.prepare("UPDATE map_sessions SET lost_at = ? WHERE lost_at IS NULL");
  return ({ now, lostBefore }) => {
    remove.run(lostBefore);
    removeAgents.run();
    lose.run(now);
  };
}

function claimAgent({ db }: WriteContext): (write: AgentClaim) => void {
  const holder = db.prepare<[string, string], { principal: string; invitation: string | null }>(
    "SELECT principal, invitation FROM map_agents WHERE space = ? AND id = ?",
  );
  const put = db.prepare(`
    INSERT INTO map_agents (space, id, principal) VALUES (?, ?, ?)
    ON CONFLICT (space, id) DO UPDATE SET principal = excluded.principal, invitation = NULL
  `);
  return ({ kind, space, id, principal, takesOver, invitation, existing }) => {
    const held = holder.get(space, id);
    if (takesOver !== true) {
      if (held === undefined ? existing === true : !mayClaim(held, principal, invitation)) {
        throw new RowConflictError(kind, `the agent id ${id} belongs to another principal`);
      }
      if (held?.principal === principal && held.invitation === null) return;
    }
    put.run(space, id, principal);
  };
}

function mayClaim(
  held: { readonly principal: string; readonly invitation: string | null },
  principal: string,
  invitation: string | undefined,
): boolean {
  return held.principal === principal || (held.invitation !== null && held.invitation === invitation);
}

function reserveAgent({ db }: WriteContext): (write: AgentReserve) => void {
  const reserve = db.prepare(
    "INSERT INTO map_agents (space, id, principal, invitation) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
  );
  return ({ space, id, principal, invitation }) => {
    reserve.run(space, id, principal, invitation);
  };
}

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

const CONDITIONS = `(@space IS NULL OR c.space = @space)
  AND (@closedBefore IS NULL OR c.closed_at < @closedBefore)
  AND (@types IS NULL OR c.type IN (SELECT value FROM json_each(@types)))
  AND (@statuses IS NULL OR c.status IN (SELECT value FROM json_each(@statuses)))
  AND (@parent IS NULL OR c.parent_id = @parent)
  AND (@createdAfter IS NULL OR c.created_at > @createdAfter)
  AND (@createdBefore IS NULL OR c.created_at < @createdBefore)
  AND (@participant IS NULL OR EXISTS (SELECT 1 FROM conversation_members p
    WHERE p.participant = @participant AND p.active = 1 AND p.conversation = c.id))`;

const COLUMNS = `c.id, c.space, c.type, c.status, c.parent_id, c.created_at, c.closed_at, c.header,
  (SELECT count(*) FROM conversation_members n WHERE n.conversation = c.id AND n.active = 1) AS members`;

/** The queries by name, so that a test can check their plans. */
export const CONVERSATION_QUERIES = {
  owners: `SELECT ids.value AS id, a.principal AS principal, a.invitation IS NOT NULL AS reserved
      FROM json_each(@ids) AS ids CROSS JOIN map_agents a ON a.space = @space AND a.id = ids.value
    UNION ALL
    SELECT ids.value, s.principal, 0
      FROM json_each(@ids) AS ids CROSS JOIN map_sessions s ON s.id = ids.value AND s.principal IS NOT NULL`,
  all: listOfAll(">", "ASC"),
  allNewest: listOfAll("<", "DESC"),
  ofMembers: listOfMembers(">", "ASC"),
  ofMembersNewest: listOfMembers("<", "DESC"),
  observers: "SELECT principal FROM map_observers ORDER BY principal",
  readCursors: `SELECT r.conversation AS conversation, r.number AS number FROM json_each(@conversations) AS ids
    CROSS JOIN conversation_reads r ON r.reader = @reader AND r.conversation = ids.value`,
} as const;

type Beyond = "<" | ">";
type Order = "ASC" | "DESC";

function listOfAll(beyond: Beyond, order: Order): string {
  return `SELECT ${COLUMNS} FROM conversations c WHERE c.id ${beyond} @after AND ${CONDITIONS}
    ORDER BY c.id ${order} LIMIT @limit`;
}

/** Begins with the members' own conversations, so that the cost does not depend on the number of others. */
function listOfMembers(beyond: Beyond, order: Order): string {
  return `SELECT ${COLUMNS} FROM (
      SELECT DISTINCT m.conversation FROM json_each(@members) AS ids
      CROSS JOIN conversation_members m
        ON m.participant = ids.value AND m.active = 1 AND m.conversation ${beyond} @after
    ) AS mine CROSS JOIN conversations c ON c.id = mine.conversation
    WHERE ${CONDITIONS} ORDER BY c.id ${order} LIMIT @limit`;
}

export function createConversationReads(db: Database, assertOpen: () => void): ConversationReads {
  const prepared = (text: string) => db.prepare<[object], StoredConversation>(text);
  const all = { asc: prepared(CONVERSATION_QUERIES.all), desc: prepared(CONVERSATION_QUERIES.allNewest) };
  const ofMembers = {
    asc: prepared(CONVERSATION_QUERIES.ofMembers),
    desc: prepared(CONVERSATION_QUERIES.ofMembersNewest),
  };
  const observers = db.prepare<[], string>(CONVERSATION_QUERIES.observers).pluck();
  const readCursors = db.prepare<[object], { conversation: string; number: number }>(
    CONVERSATION_QUERIES.readCursors,
  );
  const owners = db.prepare<[object], { id: string; principal: string; reserved: number }>(
    CONVERSATION_QUERIES.owners,
  );
  const agentsOf = db
    .prepare<[string], string>("SELECT data FROM map_session_agents WHERE session = ? ORDER BY rowid")
    .pluck();
  const byToken = db.prepare<[string], StoredSession>("SELECT * FROM map_sessions WHERE token_hash = ?");

  return {
    async list(query) {
      assertOpen();
      const values = bind(query);
      const { order = "asc" } = query;
      const rows =
        query.members === undefined
          ? all[order].all(values)
          : ofMembers[order].all({ ...values, members: JSON.stringify(query.members) });
      return rows.map(toListed);
    },

    async observers() {
      assertOpen();
      return observers.all();
    },

    async readCursors(reader, conversations) {
      assertOpen();
      const rows = readCursors.all({ reader, conversations: JSON.stringify(conversations) });
      return new Map(rows.map(({ conversation, number }) => [conversation, number]));
    },

    async owners(space, ids) {
      assertOpen();
      if (ids.length === 0) return new Map();
      const rows = owners.all({ space, ids: JSON.stringify(ids) });
      return new Map(
        rows.map(({ id, principal, reserved }) => [id, { principal, reserved: reserved === 1 }]),
      );
    },

    async sessionByToken(tokenHash) {
      assertOpen();
      const stored = byToken.get(tokenHash);
      if (stored === undefined) return undefined;
      return {
        id: stored.id,
        tokenHash: stored.token_hash,
        data: stored.data,
        agents: agentsOf.all(stored.id),
        ...(stored.principal !== null && { principal: stored.principal }),
        ...(stored.lost_at !== null && { lostAt: stored.lost_at }),
      };
    },
  };
}

/** After every id. */
const LAST = "\u{10ffff}";

/** An empty list restricts nothing. */
function bind(query: ConversationQuery): object {
  const list = (values: readonly string[] | undefined): string | null =>
    values === undefined || values.length === 0 ? null : JSON.stringify(values);
  return {
    space: query.space ?? null,
    after: query.after ?? (query.order === "desc" ? LAST : ""),
    closedBefore: query.closedBefore ?? null,
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
