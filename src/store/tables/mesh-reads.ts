import type { MeshReads, ViewWrite } from "../../mesh/index.js";
import {
  BOX_STATUSES,
  MESSAGE_TYPES,
  type MessageType,
  QUEUE_STATUSES,
  type QueuedMessage,
  queueKey,
  readQueueKey,
  SENT_STATUSES,
  type SentMessage,
} from "../../mesh/index.js";
import type { Database } from "../database.js";

interface QueueRow {
  readonly message_id: string;
  readonly swarm_id: string;
  readonly sender_id: string;
  readonly recipient_id: string | null;
  readonly type: string;
  readonly content: string;
  readonly envelope: string;
  readonly in_reply_to: string | null;
  readonly thread_id: string | null;
  readonly received_at: number;
  readonly processed_at: number | null;
  readonly status: string;
  readonly box: string;
  readonly read_at: number | null;
  readonly task_key: string | null;
}

interface BoxCount {
  readonly name: string;
  readonly count: number;
}

interface SentRow {
  readonly message_id: string;
  readonly swarm_id: string;
  readonly recipient_id: string;
  readonly type: string;
  readonly content: string;
  readonly sent_at: number;
  readonly status: string;
  readonly delivered_at: number | null;
  readonly error: string | null;
  readonly origin: string | null;
}

const BY_SENDER = "(@senderId IS NULL OR sender_id = @senderId)";
/** Boxes of messages that were not deleted. */
const KEPT = BOX_STATUSES.filter((box) => box !== "deleted");
/**
 * The index of waiting messages has these two statuses only; without the second condition SQLite does not use it. A
 * message that was archived before it became a task never becomes one.
 */
const WAITING = `status = @status AND status IN ('pending', 'processing')
  AND (status = 'processing' OR box IN ('unread', 'read'))`;
const OF_KEY = "message_id = @messageId AND sender_id = @senderId AND swarm_id = @swarmId";

/** How many messages of a swarm are searched for context. */
const CONTEXT_DEPTH = 500;

/** The queries of the queue and the inbox, by name, so that a test can ask for their plans. */
export const MESH_QUERIES = {
  queued: `SELECT * FROM message_queue WHERE ${WAITING} ORDER BY id LIMIT @limit`,
  // From the beginning if the message is gone: its number may have been reused.
  queuedAfter: `SELECT * FROM message_queue
    WHERE ${WAITING} AND id > coalesce((SELECT id FROM message_queue WHERE ${OF_KEY}), 0)
    ORDER BY id LIMIT @limit`,
  queuedCount: `SELECT count(*) AS count FROM (SELECT 1 FROM message_queue WHERE ${WAITING} LIMIT @upTo)`,
  byKey: `SELECT * FROM message_queue WHERE ${OF_KEY}`,
  // Senders choose ids: a later message must not hide an earlier one.
  byMessage: "SELECT * FROM message_queue WHERE message_id = ? ORDER BY id LIMIT 1",
  inbox: `SELECT * FROM message_queue WHERE box <> 'deleted' AND ${BY_SENDER} ORDER BY id DESC LIMIT @limit`,
  inboxOfBox: `SELECT * FROM message_queue WHERE box = @box AND ${BY_SENDER} ORDER BY id DESC LIMIT @limit`,
  // One index serves a swarm's list with and without a box: without, its ordered parts are merged.
  inboxOfSwarm: `${KEPT.map(
    (box) => `SELECT * FROM message_queue WHERE swarm_id = @swarmId AND box = '${box}' AND ${BY_SENDER}`,
  ).join(" UNION ALL ")} ORDER BY id DESC LIMIT @limit`,
  inboxOfSwarmAndBox: `SELECT * FROM message_queue
    WHERE swarm_id = @swarmId AND box = @box AND ${BY_SENDER} ORDER BY id DESC LIMIT @limit`,
  // Looks back a limited number of messages: many private ones must not make every broadcast slow.
  context: `SELECT message_queue.* FROM (${KEPT.map(
    (box) => `SELECT id FROM message_queue WHERE swarm_id = @swarmId AND box = '${box}'`,
  ).join(" UNION ALL ")} ORDER BY id DESC LIMIT @depth) AS recent
    CROSS JOIN message_queue ON message_queue.id = recent.id
    WHERE recipient_id = 'broadcast'
      OR (sender_id = @senderId AND recipient_id IS NOT NULL AND coalesce(thread_id, message_id) = @threadId)
    LIMIT @limit`,
  counts: "SELECT box AS name, count(*) AS count FROM message_queue GROUP BY box",
  countsOfSwarm: `SELECT box AS name, count(*) AS count FROM message_queue
    WHERE swarm_id = @swarmId GROUP BY box`,
  unreadCount: `SELECT count(*) AS count FROM
    (SELECT 1 FROM message_queue WHERE swarm_id = @swarmId AND box = 'unread' LIMIT @upTo)`,
} as const;

export function createMeshReads(db: Database, assertOpen: () => void): MeshReads {
  const seen = db.prepare("SELECT 1 FROM mesh_seen WHERE swarm_id = ? AND sender_id = ? AND message_id = ?");
  const queued = db.prepare<[object], QueueRow>(MESH_QUERIES.queued);
  const queuedAfter = db.prepare<[object], QueueRow>(MESH_QUERIES.queuedAfter);
  const queuedCount = db.prepare<[object], { count: number }>(MESH_QUERIES.queuedCount);
  const byKey = db.prepare<[object], QueueRow>(MESH_QUERIES.byKey);
  const byMessage = db.prepare<[string], QueueRow>(MESH_QUERIES.byMessage);
  const inbox = db.prepare<[object], QueueRow>(MESH_QUERIES.inbox);
  const inboxOfBox = db.prepare<[object], QueueRow>(MESH_QUERIES.inboxOfBox);
  const inboxOfSwarm = db.prepare<[object], QueueRow>(MESH_QUERIES.inboxOfSwarm);
  const inboxOfSwarmAndBox = db.prepare<[object], QueueRow>(MESH_QUERIES.inboxOfSwarmAndBox);
  const context = db.prepare<[object], QueueRow>(MESH_QUERIES.context);
  const counts = db.prepare<[], BoxCount>(MESH_QUERIES.counts);
  const countsOfSwarm = db.prepare<[object], BoxCount>(MESH_QUERIES.countsOfSwarm);
  const unreadCount = db.prepare<[object], { count: number }>(MESH_QUERIES.unreadCount);
  const sent = db.prepare<[object], SentRow>(
    "SELECT * FROM mesh_sent WHERE @swarmId IS NULL OR swarm_id = @swarmId ORDER BY id DESC LIMIT @limit",
  );
  const sentById = db.prepare<[string], SentRow>("SELECT * FROM mesh_sent WHERE message_id = ? ORDER BY id");
  const sentCounts = db.prepare<[object], { name: string; count: number }>(
    "SELECT status AS name, count(*) AS count FROM mesh_sent WHERE @swarmId IS NULL OR swarm_id = @swarmId GROUP BY status",
  );

  return {
    async view() {
      assertOpen();
      return readView(db);
    },
    async seen(swarmId, senderId, messageId) {
      assertOpen();
      return seen.get(swarmId, senderId, messageId) !== undefined;
    },
    async queued(status, limit, after) {
      assertOpen();
      const rows =
        after === undefined
          ? queued.all({ status, limit })
          : queuedAfter.all({ status, limit, ...readQueueKey(after) });
      return rows.map(toQueued);
    },
    async queuedCount(status, upTo) {
      assertOpen();
      return queuedCount.get({ status, upTo })?.count ?? 0;
    },
    async message(id) {
      assertOpen();
      const row = byKey.get(readQueueKey(id));
      return row === undefined ? undefined : toQueued(row);
    },
    async byMessageId(messageId) {
      assertOpen();
      const row = byMessage.get(messageId);
      return row === undefined ? undefined : toQueued(row);
    },
    async inbox({ box, swarmId, senderId, limit }) {
      assertOpen();
      const ofAll = box === undefined ? inbox : inboxOfBox;
      const ofSwarm = box === undefined ? inboxOfSwarm : inboxOfSwarmAndBox;
      const statement = swarmId === undefined ? ofAll : ofSwarm;
      return statement.all({ box, swarmId, senderId: senderId ?? null, limit }).map(toQueued);
    },
    async context(filter) {
      assertOpen();
      return context.all({ ...filter, depth: CONTEXT_DEPTH }).map(toQueued);
    },
    async inboxCounts(swarmId) {
      assertOpen();
      const total = { unread: 0, read: 0, archived: 0, deleted: 0 };
      const rows = swarmId === undefined ? counts.all() : countsOfSwarm.all({ swarmId });
      for (const { name, count } of rows) total[word(BOX_STATUSES, name)] = count;
      return total;
    },
    async unreadCount(swarmId, upTo) {
      assertOpen();
      return unreadCount.get({ swarmId, upTo })?.count ?? 0;
    },
    async sent({ swarmId, limit }) {
      assertOpen();
      return sent.all({ swarmId: swarmId ?? null, limit }).map(toSent);
    },
    async sentById(messageId) {
      assertOpen();
      return sentById.all(messageId).map(toSent);
    },
    async sentCounts(swarmId) {
      assertOpen();
      const total = { sent: 0, delivered: 0, failed: 0 };
      for (const { name, count } of sentCounts.all({ swarmId: swarmId ?? null })) {
        total[word(SENT_STATUSES, name)] = count;
      }
      return total;
    },
  };
}

type Cell = string | number | null;
type Row = Readonly<Record<string, Cell>>;

/** The tables as the writes that would make them, in an order in which they can be applied. */
function readView(db: Database): ViewWrite[] {
  const all = (sql: string): Row[] => db.prepare<[], Row>(sql).all();
  const swarms = all("SELECT * FROM mesh_swarms").map(
    (row): ViewWrite => ({
      kind: "mesh.swarm.put",
      swarm: {
        id: text(row.swarm_id),
        name: text(row.name),
        master: text(row.master),
        joinedAt: number(row.joined_at),
        settings: {
          allowMemberInvite: row.allow_member_invite === 1,
          requireApproval: row.require_approval === 1,
        },
        alias: text(row.alias),
        // Written by this module.
        ...present("handovers", row.handovers, (cell) => JSON.parse(text(cell))),
      },
    }),
  );
  const members = all("SELECT * FROM mesh_members").map(
    (row): ViewWrite => ({
      kind: "mesh.member.put",
      swarmId: text(row.swarm_id),
      member: {
        agentId: text(row.agent_id),
        endpoint: text(row.endpoint),
        publicKey: text(row.public_key),
        joinedAt: number(row.joined_at),
        ...present("inviteKey", row.invite_key, text),
      },
    }),
  );
  const invites = all("SELECT * FROM mesh_invites").map(
    (row): ViewWrite => ({
      kind: "mesh.invite.put",
      invite: {
        key: text(row.key),
        swarmId: text(row.swarm_id),
        uses: number(row.uses),
        createdAt: number(row.created_at),
        ...present("maxUses", row.max_uses, number),
        ...present("expiresAt", row.expires_at, number),
        ...present("revokedAt", row.revoked_at, number),
      },
    }),
  );
  const pending = all("SELECT * FROM mesh_pending").map(
    (row): ViewWrite => ({
      kind: "mesh.pending.put",
      pending: {
        swarmId: text(row.swarm_id),
        agentId: text(row.agent_id),
        endpoint: text(row.endpoint),
        publicKey: text(row.public_key),
        inviteKey: text(row.invite_key),
        requestedAt: number(row.requested_at),
        status: row.status === "rejected" ? "rejected" : "waiting",
      },
    }),
  );
  const bans = all("SELECT * FROM mesh_bans").map(
    (row): ViewWrite => ({
      kind: "mesh.ban.put",
      ban: {
        swarmId: text(row.swarm_id),
        agentId: text(row.agent_id),
        publicKey: text(row.public_key),
        at: number(row.at),
        ...present("reason", row.reason, text),
      },
    }),
  );
  const mutes = all("SELECT * FROM mesh_mutes").map(
    (row): ViewWrite => ({
      kind: "mesh.mute.put",
      mute: {
        of: row.of === "agent" ? "agent" : "swarm",
        id: text(row.id),
        at: number(row.at),
        ...present("reason", row.reason, text),
      },
    }),
  );
  const keys = all("SELECT * FROM mesh_keys").map(
    (row): ViewWrite => ({
      kind: "mesh.key.put",
      key: {
        agentId: text(row.agent_id),
        publicKey: text(row.public_key),
        fetchedAt: number(row.fetched_at),
        ...present("endpoint", row.endpoint, text),
      },
    }),
  );
  const seals = all("SELECT * FROM mesh_sealing_keys").map(
    (row): ViewWrite => ({
      kind: "mesh.seal.put",
      publicKey: text(row.public_key),
      since: number(row.since),
    }),
  );
  return [...swarms, ...members, ...invites, ...pending, ...bans, ...mutes, ...keys, ...seals];
}

function text(cell: Cell | undefined): string {
  return String(cell ?? "");
}

function number(cell: Cell | undefined): number {
  return Number(cell ?? 0);
}

function present<Name extends string, T>(
  name: Name,
  cell: Cell | undefined,
  read: (cell: Cell) => T,
): { [key in Name]?: T } {
  const made: { [key in Name]?: T } = {};
  if (cell !== null && cell !== undefined) made[name] = read(cell);
  return made;
}

function toQueued(row: QueueRow): QueuedMessage {
  return {
    id: queueKey(row.swarm_id, row.sender_id, row.message_id),
    messageId: row.message_id,
    swarmId: row.swarm_id,
    senderId: row.sender_id,
    type: typeOf(row.type),
    content: row.content,
    envelope: row.envelope,
    receivedAt: row.received_at,
    status: word(QUEUE_STATUSES, row.status),
    box: word(BOX_STATUSES, row.box),
    ...(row.recipient_id !== null && { recipientId: row.recipient_id }),
    ...(row.in_reply_to !== null && { inReplyTo: row.in_reply_to }),
    ...(row.thread_id !== null && { threadId: row.thread_id }),
    ...(row.processed_at !== null && { processedAt: row.processed_at }),
    ...(row.read_at !== null && { readAt: row.read_at }),
    ...(row.task_key !== null && { taskKey: row.task_key }),
  };
}

function toSent(row: SentRow): SentMessage {
  return {
    messageId: row.message_id,
    swarmId: row.swarm_id,
    recipientId: row.recipient_id,
    type: typeOf(row.type),
    content: row.content,
    sentAt: row.sent_at,
    status: word(SENT_STATUSES, row.status),
    ...(row.delivered_at !== null && { deliveredAt: row.delivered_at }),
    ...(row.error !== null && { error: row.error }),
    ...(row.origin !== null && { origin: row.origin }),
  };
}

function typeOf(name: string): MessageType {
  return word(MESSAGE_TYPES, name);
}

function word<Word extends string>(words: readonly Word[], name: string): Word {
  const known = words.find((one) => one === name);
  if (known === undefined) throw new Error(`the database holds a message of unknown status "${name}"`);
  return known;
}
