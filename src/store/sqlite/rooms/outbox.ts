import { RowConflictError } from "../../../engine/ports.js";
import type {
  OutboxBegin,
  OutboxEnqueue,
  OutboxFinish,
  OutboxPurge,
  OutboxRetry,
  OutboxRowWrite,
} from "../../../outbox/item.js";
import { defineRoom, type RoomContext } from "../room.js";

/**
 * The outbox: one row per item, waiting or finished. `head` marks the first waiting item of a lane, so that finding
 * who may go next never walks over the lanes' tails; `outbox_targets` counts what waits, so that whoever asks does not
 * have to.
 */
export const outboxRoom = defineRoom<OutboxRowWrite>({
  room: "outbox",
  migrations: [
    {
      number: 1,
      name: "items and counts",
      sql: `
        CREATE TABLE outbox (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          id TEXT NOT NULL UNIQUE,
          queue TEXT NOT NULL,
          lane TEXT NOT NULL,
          target TEXT NOT NULL,
          payload TEXT NOT NULL,
          dedupe_key TEXT,
          status TEXT NOT NULL DEFAULT 'waiting',
          head INTEGER NOT NULL,
          created_at INTEGER NOT NULL,
          due_at INTEGER NOT NULL,
          deadline_at INTEGER,
          attempts INTEGER NOT NULL DEFAULT 0,
          begun INTEGER NOT NULL DEFAULT 0,
          uncertain INTEGER NOT NULL DEFAULT 0,
          reason TEXT,
          finished_at INTEGER,
          UNIQUE (queue, dedupe_key)
        ) STRICT;
        CREATE INDEX outbox_heads ON outbox (queue, number) WHERE head = 1;
        CREATE INDEX outbox_lanes ON outbox (queue, lane, number) WHERE status = 'waiting';
        CREATE INDEX outbox_listed ON outbox (queue, status, number);
        CREATE INDEX outbox_finished ON outbox (queue, finished_at) WHERE finished_at IS NOT NULL;
        CREATE TABLE outbox_targets (
          queue TEXT NOT NULL,
          target TEXT NOT NULL,
          waiting INTEGER NOT NULL,
          PRIMARY KEY (queue, target)
        ) STRICT, WITHOUT ROWID;
      `,
    },
    {
      number: 2,
      name: "items by deadline",
      sql: "CREATE INDEX outbox_deadlines ON outbox (queue, deadline_at) WHERE status = 'waiting';",
    },
  ],
  writes: {
    "outbox.enqueue": enqueue,
    "outbox.begin": begin,
    "outbox.retry": retry,
    "outbox.finish": finish,
    "outbox.purge": purge,
  },
});

function enqueue({ db }: RoomContext): (write: OutboxEnqueue) => void {
  const exists = db.prepare("SELECT 1 FROM outbox WHERE queue = ? AND dedupe_key = ?");
  const insert = db.prepare(`
    INSERT INTO outbox (id, queue, lane, target, payload, dedupe_key, created_at, due_at, deadline_at, head)
    VALUES (@id, @queue, @lane, @target, @payload, @dedupeKey, @createdAt, @dueAt, @deadlineAt,
      NOT EXISTS (SELECT 1 FROM outbox WHERE queue = @queue AND lane = @lane AND status = 'waiting'))
    ON CONFLICT (id) DO NOTHING
  `);
  const count = db.prepare(`
    INSERT INTO outbox_targets (queue, target, waiting) VALUES (?, ?, 1)
    ON CONFLICT (queue, target) DO UPDATE SET waiting = waiting + 1
  `);
  return ({ kind, item }) => {
    const { queue, target, dedupeKey = null, deadlineAt = null } = item;
    if (dedupeKey !== null && exists.get(queue, dedupeKey) !== undefined) return;
    if (insert.run({ ...item, dedupeKey, deadlineAt }).changes === 0) {
      throw new RowConflictError(kind, `there is an item ${item.id} already`);
    }
    count.run(queue, target);
  };
}

function begin({ db }: RoomContext): (write: OutboxBegin) => void {
  const update = db.prepare("UPDATE outbox SET begun = 1 WHERE id = ? AND status = 'waiting'");
  return ({ kind, id }) => {
    if (update.run(id).changes === 0) throw new RowConflictError(kind, `no item ${id} waits`);
  };
}

function retry({ db }: RoomContext): (write: OutboxRetry) => void {
  // Once an attempt may have got through, no later failure makes it certain again that none has.
  const update = db.prepare(`
    UPDATE outbox
    SET attempts = @attempts, due_at = @dueAt, reason = @reason, begun = 0, uncertain = max(uncertain, @uncertain)
    WHERE id = @id AND status = 'waiting'
  `);
  return ({ kind, id, attempts, dueAt, reason, uncertain }) => {
    const { changes } = update.run({ id, attempts, dueAt, reason, uncertain: uncertain ? 1 : 0 });
    if (changes === 0) throw new RowConflictError(kind, `no item ${id} waits`);
  };
}

function finish({ db }: RoomContext): (write: OutboxFinish) => void {
  const update = db.prepare<[object], { queue: string; lane: string; target: string }>(`
    UPDATE outbox
    SET status = @outcome, attempts = @attempts, finished_at = @at, reason = @reason, head = 0, payload = '', begun = 0
    WHERE id = @id AND status = 'waiting'
    RETURNING queue, lane, target
  `);
  const promote = db.prepare(`
    UPDATE outbox SET head = 1 WHERE number = (
      SELECT number FROM outbox WHERE queue = ? AND lane = ? AND status = 'waiting' ORDER BY number LIMIT 1
    )
  `);
  const count = db.prepare("UPDATE outbox_targets SET waiting = waiting - 1 WHERE queue = ? AND target = ?");
  const forget = db.prepare("DELETE FROM outbox_targets WHERE queue = ? AND target = ? AND waiting <= 0");
  return ({ kind, id, outcome, attempts, at, reason = null }) => {
    const done = update.get({ id, outcome, attempts, at, reason });
    if (done === undefined) throw new RowConflictError(kind, `no item ${id} waits: it has its outcome`);
    promote.run(done.queue, done.lane);
    count.run(done.queue, done.target);
    forget.run(done.queue, done.target);
  };
}

function purge({ db }: RoomContext): (write: OutboxPurge) => void {
  const remove = db.prepare("DELETE FROM outbox WHERE queue = ? AND finished_at < ?");
  return ({ queue, finishedBefore }) => {
    remove.run(queue, finishedBefore);
  };
}
