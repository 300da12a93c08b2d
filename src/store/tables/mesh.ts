import { RowConflictError } from "../../journal/index.js";
import type {
  InboxMove,
  InviteUse,
  MeshRowWrite,
  Purge,
  QueuePut,
  QueueStatusChange,
  SeenPut,
  SwarmRemove,
  ViewClear,
} from "../../mesh/index.js";
import { readQueueKey } from "../../mesh/index.js";
import { defineTableSet, type WriteContext, type WriteHandler } from "../table-set.js";

/**
 * The mesh: membership, invites, mutes, keys, and messages in both directions. `message_queue` has the columns of the
 * protocol and those that an inbox also needs. Replay records are kept apart from the queue: they outlast messages
 * that a mute kept out of it.
 */
export const meshTables = defineTableSet<MeshRowWrite>({
  name: "mesh",
  migrations: [
    {
      number: 1,
      name: "membership and messages",
      sql: `
        CREATE TABLE mesh_swarms (
          swarm_id TEXT PRIMARY KEY,
          name TEXT NOT NULL,
          master TEXT NOT NULL,
          joined_at INTEGER NOT NULL,
          allow_member_invite INTEGER NOT NULL,
          require_approval INTEGER NOT NULL,
          alias TEXT NOT NULL UNIQUE
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE mesh_members (
          swarm_id TEXT NOT NULL,
          agent_id TEXT NOT NULL,
          endpoint TEXT NOT NULL,
          public_key TEXT NOT NULL,
          joined_at INTEGER NOT NULL,
          PRIMARY KEY (swarm_id, agent_id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE mesh_invites (
          key TEXT PRIMARY KEY,
          swarm_id TEXT NOT NULL,
          uses INTEGER NOT NULL,
          max_uses INTEGER,
          expires_at INTEGER,
          revoked_at INTEGER,
          created_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE mesh_pending (
          swarm_id TEXT NOT NULL,
          agent_id TEXT NOT NULL,
          endpoint TEXT NOT NULL,
          public_key TEXT NOT NULL,
          invite_key TEXT NOT NULL,
          requested_at INTEGER NOT NULL,
          status TEXT NOT NULL,
          PRIMARY KEY (swarm_id, agent_id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE mesh_bans (
          swarm_id TEXT NOT NULL,
          agent_id TEXT NOT NULL,
          public_key TEXT NOT NULL,
          at INTEGER NOT NULL,
          reason TEXT,
          PRIMARY KEY (swarm_id, agent_id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE mesh_mutes (
          of TEXT NOT NULL,
          id TEXT NOT NULL,
          at INTEGER NOT NULL,
          reason TEXT,
          PRIMARY KEY (of, id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE mesh_keys (
          agent_id TEXT PRIMARY KEY,
          public_key TEXT NOT NULL,
          fetched_at INTEGER NOT NULL,
          endpoint TEXT
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE mesh_seen (
          swarm_id TEXT NOT NULL,
          sender_id TEXT NOT NULL,
          message_id TEXT NOT NULL,
          at INTEGER NOT NULL,
          PRIMARY KEY (swarm_id, sender_id, message_id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX mesh_seen_at ON mesh_seen (at);
        CREATE TABLE message_queue (
          id INTEGER PRIMARY KEY,
          key TEXT NOT NULL UNIQUE,
          message_id TEXT NOT NULL,
          swarm_id TEXT NOT NULL,
          sender_id TEXT NOT NULL,
          recipient_id TEXT,
          type TEXT NOT NULL,
          content TEXT NOT NULL,
          envelope TEXT NOT NULL,
          in_reply_to TEXT,
          thread_id TEXT,
          received_at INTEGER NOT NULL,
          processed_at INTEGER,
          status TEXT NOT NULL DEFAULT 'pending',
          box TEXT NOT NULL DEFAULT 'unread',
          read_at INTEGER,
          changed_at INTEGER NOT NULL,
          task_key TEXT
        ) STRICT;
        CREATE INDEX message_queue_by_message ON message_queue (message_id);
        CREATE INDEX message_queue_waiting ON message_queue (status, id) WHERE status IN ('pending', 'processing');
        CREATE INDEX message_queue_box ON message_queue (box, id);
        CREATE TABLE mesh_sent (
          id INTEGER PRIMARY KEY,
          message_id TEXT NOT NULL,
          swarm_id TEXT NOT NULL,
          recipient_id TEXT NOT NULL,
          type TEXT NOT NULL,
          content TEXT NOT NULL,
          sent_at INTEGER NOT NULL,
          status TEXT NOT NULL,
          delivered_at INTEGER,
          error TEXT,
          origin TEXT,
          UNIQUE (message_id, recipient_id)
        ) STRICT;
      `,
    },
    {
      number: 2,
      name: "keys that seal",
      sql: `
        CREATE TABLE mesh_sealing_keys (
          public_key TEXT PRIMARY KEY,
          since INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
      `,
    },
    {
      // One index of random ids instead of two, and no text that repeats three columns.
      number: 3,
      name: "messages by id, sender and swarm",
      sql: `
        CREATE TABLE messages_without_key (
          id INTEGER PRIMARY KEY,
          message_id TEXT NOT NULL,
          swarm_id TEXT NOT NULL,
          sender_id TEXT NOT NULL,
          recipient_id TEXT,
          type TEXT NOT NULL,
          content TEXT NOT NULL,
          envelope TEXT NOT NULL,
          in_reply_to TEXT,
          thread_id TEXT,
          received_at INTEGER NOT NULL,
          processed_at INTEGER,
          status TEXT NOT NULL DEFAULT 'pending',
          box TEXT NOT NULL DEFAULT 'unread',
          read_at INTEGER,
          changed_at INTEGER NOT NULL,
          task_key TEXT,
          UNIQUE (message_id, sender_id, swarm_id)
        ) STRICT;
        INSERT INTO messages_without_key
          SELECT id, message_id, swarm_id, sender_id, recipient_id, type, content, envelope, in_reply_to, thread_id,
            received_at, processed_at, status, box, read_at, changed_at, task_key
          FROM message_queue;
        DROP TABLE message_queue;
        ALTER TABLE messages_without_key RENAME TO message_queue;
        CREATE INDEX message_queue_waiting ON message_queue (status, id) WHERE status IN ('pending', 'processing');
        CREATE INDEX message_queue_box ON message_queue (box, id);
      `,
    },
    {
      // Queried with each message that becomes a task: messages of a quiet swarm must be found without a full scan, and
      // waiting ones counted without reading them.
      number: 4,
      name: "messages of one swarm",
      sql: `
        CREATE INDEX message_queue_swarm ON message_queue (swarm_id, box, id);
        DROP INDEX message_queue_waiting;
        CREATE INDEX message_queue_waiting ON message_queue (status, id, box)
          WHERE status IN ('pending', 'processing');
      `,
    },
    {
      // Received messages have no such index: it would cost every message a fifth of its time, for a query once a day.
      number: 5,
      name: "sent messages by age",
      sql: `
        CREATE INDEX mesh_sent_age ON mesh_sent (sent_at, status);
      `,
    },
    {
      number: 6,
      name: "changes of the master, and the invites of members",
      sql: `
        ALTER TABLE mesh_swarms ADD COLUMN handovers TEXT;
        ALTER TABLE mesh_members ADD COLUMN invite_key TEXT;
      `,
    },
  ],
  writes: {
    "mesh.swarm.put": putSwarm,
    "mesh.swarm.remove": removeSwarm,
    "mesh.member.put": simply(
      "INSERT OR REPLACE INTO mesh_members VALUES (?, ?, ?, ?, ?, ?)",
      ({ swarmId, member: { agentId, endpoint, publicKey, joinedAt, inviteKey } }) => [
        swarmId,
        agentId,
        endpoint,
        publicKey,
        joinedAt,
        inviteKey ?? null,
      ],
    ),
    "mesh.member.remove": simply(
      "DELETE FROM mesh_members WHERE swarm_id = ? AND agent_id = ?",
      ({ swarmId, agentId }) => [swarmId, agentId],
    ),
    "mesh.invite.put": simply(
      "INSERT OR REPLACE INTO mesh_invites VALUES (?, ?, ?, ?, ?, ?, ?)",
      ({ invite: { key, swarmId, uses, maxUses, expiresAt, revokedAt, createdAt } }) => [
        key,
        swarmId,
        uses,
        maxUses ?? null,
        expiresAt ?? null,
        revokedAt ?? null,
        createdAt,
      ],
    ),
    "mesh.invite.use": useInvite,
    "mesh.invite.release": simply(
      "UPDATE mesh_invites SET uses = max(0, uses - 1) WHERE swarm_id = ? AND key = ?",
      ({ swarmId, key }) => [swarmId, key],
    ),
    "mesh.invite.revoke": simply(
      "UPDATE mesh_invites SET revoked_at = ? WHERE swarm_id = ? AND key = ?",
      ({ at, swarmId, key }) => [at, swarmId, key],
    ),
    "mesh.pending.put": simply(
      "INSERT OR REPLACE INTO mesh_pending VALUES (?, ?, ?, ?, ?, ?, ?)",
      ({ pending: { swarmId, agentId, endpoint, publicKey, inviteKey, requestedAt, status } }) => [
        swarmId,
        agentId,
        endpoint,
        publicKey,
        inviteKey,
        requestedAt,
        status,
      ],
    ),
    "mesh.pending.remove": simply(
      "DELETE FROM mesh_pending WHERE swarm_id = ? AND agent_id = ?",
      ({ swarmId, agentId }) => [swarmId, agentId],
    ),
    "mesh.ban.put": simply(
      "INSERT OR REPLACE INTO mesh_bans VALUES (?, ?, ?, ?, ?)",
      ({ ban: { swarmId, agentId, publicKey, at, reason } }) => [
        swarmId,
        agentId,
        publicKey,
        at,
        reason ?? null,
      ],
    ),
    "mesh.ban.remove": simply(
      "DELETE FROM mesh_bans WHERE swarm_id = ? AND agent_id = ?",
      ({ swarmId, agentId }) => [swarmId, agentId],
    ),
    "mesh.mute.put": simply(
      "INSERT OR REPLACE INTO mesh_mutes VALUES (?, ?, ?, ?)",
      ({ mute: { of, id, at, reason } }) => [of, id, at, reason ?? null],
    ),
    "mesh.mute.remove": simply("DELETE FROM mesh_mutes WHERE of = ? AND id = ?", ({ of, id }) => [of, id]),
    "mesh.key.put": simply(
      "INSERT OR REPLACE INTO mesh_keys VALUES (?, ?, ?, ?)",
      ({ key: { agentId, publicKey, fetchedAt, endpoint } }) => [
        agentId,
        publicKey,
        fetchedAt,
        endpoint ?? null,
      ],
    ),
    "mesh.seal.put": simply(
      "INSERT INTO mesh_sealing_keys VALUES (?, ?) ON CONFLICT DO NOTHING",
      ({ publicKey, since }) => [publicKey, since],
    ),
    "mesh.seal.remove": simply("DELETE FROM mesh_sealing_keys WHERE public_key = ?", ({ publicKey }) => [
      publicKey,
    ]),
    "mesh.seen.put": putSeen,
    "mesh.queue.put": putQueued,
    "mesh.queue.mark": markQueued,
    "mesh.box.mark": markBox,
    "mesh.sent.put": simply(
      `INSERT OR IGNORE INTO mesh_sent
        (message_id, swarm_id, recipient_id, type, content, sent_at, status, delivered_at, error, origin)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ({ sent }) => [
        sent.messageId,
        sent.swarmId,
        sent.recipientId,
        sent.type,
        sent.content,
        sent.sentAt,
        sent.status,
        sent.deliveredAt ?? null,
        sent.error ?? null,
        sent.origin ?? null,
      ],
    ),
    "mesh.sent.mark": simply(
      "UPDATE mesh_sent SET status = ?, delivered_at = ?, error = ? WHERE message_id = ? AND recipient_id = ?",
      ({ status, at, error, messageId, recipientId }) => [
        status,
        status === "delivered" ? at : null,
        error ?? null,
        messageId,
        recipientId,
      ],
    ),
    "mesh.purge": purge,
    "mesh.clear": clear,
  },
});

type Value = string | number | null;

/** A write that is one statement without a condition. */
function simply<Write extends MeshRowWrite>(
  sql: string,
  values: (write: Write) => Value[],
): WriteHandler<Write> {
  return ({ db }) => {
    const statement = db.prepare(sql);
    return (write) => {
      statement.run(...values(write));
    };
  };
}

function putSwarm({ db }: WriteContext): (write: Extract<MeshRowWrite, { kind: "mesh.swarm.put" }>) => void {
  const taken = db.prepare("SELECT 1 FROM mesh_swarms WHERE alias = ? AND swarm_id <> ?");
  const put = db.prepare("INSERT OR REPLACE INTO mesh_swarms VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  return ({ kind, swarm: { id, name, master, joinedAt, settings, alias, handovers } }) => {
    if (taken.get(alias, id) !== undefined) throw new RowConflictError(kind, `the alias ${alias} is taken`);
    put.run(
      id,
      name,
      master,
      joinedAt,
      settings.allowMemberInvite ? 1 : 0,
      settings.requireApproval ? 1 : 0,
      alias,
      handovers === undefined ? null : JSON.stringify(handovers),
    );
  };
}

function removeSwarm({ db }: WriteContext): (write: SwarmRemove) => void {
  const statements = ["swarms", "members", "invites", "pending", "bans"].map((table) =>
    db.prepare(`DELETE FROM mesh_${table} WHERE swarm_id = ?`),
  );
  return ({ swarmId }) => {
    for (const statement of statements) statement.run(swarmId);
  };
}

function useInvite({ db }: WriteContext): (write: InviteUse) => void {
  const insert = db.prepare(`
    INSERT INTO mesh_invites (key, swarm_id, uses, max_uses, expires_at, created_at) VALUES (?, ?, 0, ?, ?, ?)
    ON CONFLICT DO NOTHING
  `);
  // The condition and the count are one statement, within the transaction that admits the joiner.
  const use = db.prepare(`
    UPDATE mesh_invites SET uses = uses + 1
    WHERE key = ? AND swarm_id = ? AND revoked_at IS NULL AND (max_uses IS NULL OR uses < max_uses)
  `);
  return ({ kind, invite: { key, swarmId, maxUses, expiresAt, createdAt } }) => {
    insert.run(key, swarmId, maxUses ?? null, expiresAt ?? null, createdAt);
    if (use.run(key, swarmId).changes === 0)
      throw new RowConflictError(kind, "the invite is used up or revoked");
  };
}

function putSeen({ db }: WriteContext): (write: SeenPut) => void {
  const insert = db.prepare("INSERT INTO mesh_seen VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING");
  return ({ kind, swarmId, senderId, messageId, at }) => {
    if (insert.run(swarmId, senderId, messageId, at).changes === 0) {
      throw new RowConflictError(kind, `message ${messageId} of ${senderId} was already received`);
    }
  };
}

const OF_KEY = "message_id = @messageId AND sender_id = @senderId AND swarm_id = @swarmId";

function putQueued({ db }: WriteContext): (write: QueuePut) => void {
  const insert = db.prepare(`
    INSERT INTO message_queue (message_id, swarm_id, sender_id, recipient_id, type, content, envelope, in_reply_to,
      thread_id, received_at, processed_at, status, box, read_at, changed_at, task_key)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
  `);
  return ({ message: m }) => {
    insert.run(
      m.messageId,
      m.swarmId,
      m.senderId,
      m.recipientId ?? null,
      m.type,
      m.content,
      m.envelope,
      m.inReplyTo ?? null,
      m.threadId ?? null,
      m.receivedAt,
      m.processedAt ?? null,
      m.status,
      m.box,
      m.readAt ?? null,
      m.processedAt ?? m.receivedAt,
      m.taskKey ?? null,
    );
  };
}

function markQueued({ db }: WriteContext): (write: QueueStatusChange) => void {
  const update = db.prepare(`
    UPDATE message_queue SET status = @status, processed_at = @at, task_key = coalesce(@taskKey, task_key)
    WHERE ${OF_KEY} AND status IN (SELECT value FROM json_each(@from))
  `);
  return ({ kind, id, from, status, at, taskKey = null }) => {
    const { changes } = update.run({ ...readQueueKey(id), status, at, taskKey, from: JSON.stringify(from) });
    if (changes === 0) throw new RowConflictError(kind, `message ${id} is not ${from.join(" or ")}`);
  };
}

function markBox({ db }: WriteContext): (write: InboxMove) => void {
  const update = db.prepare(`
    UPDATE message_queue SET box = @status, changed_at = @at,
      read_at = CASE WHEN @status = 'read' THEN @at ELSE read_at END
    WHERE ${OF_KEY} AND box IN (SELECT value FROM json_each(@from))
  `);
  return ({ id, from, status, at }) => {
    update.run({ ...readQueueKey(id), status, at, from: JSON.stringify(from) });
  };
}

function purge({ db }: WriteContext): (write: Purge) => void {
  const seen = db.prepare("DELETE FROM mesh_seen WHERE at < ?");
  // An archived message never becomes a task; one that has become a task is needed until that ends.
  const box = db.prepare(
    "DELETE FROM message_queue WHERE changed_at < ? AND box = ? AND status <> 'processing'",
  );
  const settled = db.prepare(`
    DELETE FROM message_queue
    WHERE changed_at < ? AND status <> 'processing' AND NOT (box = 'unread' AND status = 'pending')
  `);
  const sent = db.prepare("DELETE FROM mesh_sent WHERE sent_at < ? AND status <> 'sent'");
  return ({ seenBefore, deletedBefore, archivedBefore, settledBefore }) => {
    if (seenBefore !== undefined) seen.run(seenBefore);
    if (deletedBefore !== undefined) box.run(deletedBefore, "deleted");
    if (archivedBefore !== undefined) box.run(archivedBefore, "archived");
    if (settledBefore === undefined) return;
    settled.run(settledBefore);
    sent.run(settledBefore);
  };
}

function clear({ db }: WriteContext): (write: ViewClear) => void {
  const all = ["swarms", "members", "mutes", "keys"].map((table) => db.prepare(`DELETE FROM mesh_${table}`));
  const ofOthers = ["invites", "pending", "bans"].map((table) =>
    db.prepare(`DELETE FROM mesh_${table} WHERE swarm_id NOT IN (SELECT value FROM json_each(?))`),
  );
  return ({ sparing }) => {
    for (const statement of all) statement.run();
    for (const statement of ofOthers) statement.run(JSON.stringify(sparing));
  };
}
