import type {
  AgentClaim,
  ConversationMember,
  ConversationPut,
  ConversationRowWrite,
  SessionPut,
  SessionRemove,
  SessionsSweep,
} from "../../../conversations/ports.js";
import { RowConflictError } from "../../../engine/ports.js";
import { defineRoom, type RoomContext } from "../room.js";

/**
 * The tables of MAP: which conversations there are and who is in them (turns lie in journals), and the sessions that
 * can be taken up again. Rows change with membership and status, never with a turn.
 */
export const conversationsRoom = defineRoom<ConversationRowWrite>({
  room: "conversations",
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
  ],
  writes: {
    "conversation.put": putConversation,
    "conversation.member": putMember,
    "map_session.put": putSession,
    "map_session.remove": removeSession,
    "map_session.sweep": sweepSessions,
    "map_agent.claim": claimAgent,
  },
});

function putConversation({ db }: RoomContext): (write: ConversationPut) => void {
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

function putMember({ db }: RoomContext): (write: ConversationMember) => void {
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

function putSession({ db }: RoomContext): (write: SessionPut) => void {
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

function removeSession({ db }: RoomContext): (write: SessionRemove) => void {
  const remove = db.prepare("DELETE FROM map_sessions WHERE id = ?");
  return ({ id }) => {
    remove.run(id);
  };
}

function sweepSessions({ db }: RoomContext): (write: SessionsSweep) => void {
  const remove = db.prepare("DELETE FROM map_sessions WHERE lost_at < ?");
  const lose = db.prepare("UPDATE map_sessions SET lost_at = ? WHERE lost_at IS NULL");
  return ({ now, lostBefore }) => {
    remove.run(lostBefore);
    lose.run(now);
  };
}

function claimAgent({ db }: RoomContext): (write: AgentClaim) => void {
  const claim = db.prepare(
    "INSERT INTO map_agents (space, id, principal) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
  );
  const takeOver = db.prepare(`
    INSERT INTO map_agents (space, id, principal) VALUES (?, ?, ?)
    ON CONFLICT (space, id) DO UPDATE SET principal = excluded.principal
  `);
  const holder = db
    .prepare<[string, string], string>("SELECT principal FROM map_agents WHERE space = ? AND id = ?")
    .pluck();
  return ({ kind, space, id, principal, takesOver }) => {
    (takesOver === true ? takeOver : claim).run(space, id, principal);
    if (holder.get(space, id) !== principal) {
      throw new RowConflictError(kind, `the agent id ${id} belongs to somebody else`);
    }
  };
}
