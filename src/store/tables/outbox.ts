import { RowConflictError } from "../../journal/index.js";
import type { LaneHead, OutboxReads, StoredItem } from "../../outbox/index.js";
import {
  FINAL_STATUSES,
  type FinalStatus,
  type OutboxBegin,
  type OutboxEnqueue,
  type OutboxFinish,
  type OutboxPurge,
  type OutboxRetry,
  type OutboxRowWrite,
} from "../../outbox/index.js";
import type { Database } from "../database.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/**
 * The outbox: one row per item, waiting or finished. `head` marks the first waiting item of a lane, so that finding the
 * next items never walks whole lanes; `outbox_targets` has the number of waiting items per target.
 */
export const outboxTables = defineTableSet<OutboxRowWrite>({
  name: "outbox",
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

function enqueue({ db }: WriteContext): (write: OutboxEnqueue) => void {
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
      throw new RowConflictError(kind, `item ${item.id} already exists`);
    }
    count.run(queue, target);
  };
}

function begin({ db }: WriteContext): (write: OutboxBegin) => void {
  const update = db.prepare("UPDATE outbox SET begun = 1 WHERE id = ? AND status = 'waiting'");
  return ({ kind, id }) => {
    if (update.run(id).changes === 0) throw new RowConflictError(kind, `item ${id} is not waiting`);
  };
}

function retry({ db }: WriteContext): (write: OutboxRetry) => void {
  // Once an attempt may have reached the target, no later failure makes the opposite certain.
  const update = db.prepare(`
    UPDATE outbox
    SET attempts = @attempts, due_at = @dueAt, reason = @reason, begun = 0, uncertain = max(uncertain, @uncertain)
    WHERE id = @id AND status = 'waiting'
  `);
  return ({ kind, id, attempts, dueAt, reason, uncertain }) => {
    const { changes } = update.run({ id, attempts, dueAt, reason, uncertain: uncertain ? 1 : 0 });
    if (changes === 0) throw new RowConflictError(kind, `item ${id} is not waiting`);
  };
}

function finish({ db }: WriteContext): (write: OutboxFinish) => void {
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
    if (done === undefined) throw new RowConflictError(kind, `item ${id} is not waiting: it has its outcome`);
    promote.run(done.queue, done.lane);
    count.run(done.queue, done.target);
    forget.run(done.queue, done.target);
  };
}

function purge({ db }: WriteContext): (write: OutboxPurge) => void {
  const remove = db.prepare("DELETE FROM outbox WHERE queue = ? AND finished_at < ?");
  return ({ queue, finishedBefore }) => {
    remove.run(queue, finishedBefore);
  };
}

interface Row {
  readonly number: number;
  readonly id: string;
  readonly queue: string;
  readonly lane: string;
  readonly target: string;
  readonly payload: string;
  readonly dedupe_key: string | null;
  readonly status: string;
  readonly created_at: number;
  readonly due_at: number;
  readonly deadline_at: number | null;
  readonly attempts: number;
  readonly begun: number;
  readonly uncertain: number;
  readonly reason: string | null;
  readonly finished_at: number | null;
}

const HEAD = "number, id, lane, target, due_at AS dueAt";

export function createOutboxReads(db: Database, assertOpen: () => void): OutboxReads {
  const heads = db.prepare<[string, number, number], LaneHead>(
    `SELECT ${HEAD} FROM outbox WHERE queue = ? AND head = 1 AND number > ? ORDER BY number LIMIT ?`,
  );
  const head = db.prepare<[string, string], LaneHead>(
    `SELECT ${HEAD} FROM outbox WHERE queue = ? AND lane = ? AND status = 'waiting' ORDER BY number LIMIT 1`,
  );
  const byId = db.prepare<[string], Row>("SELECT * FROM outbox WHERE id = ?");
  const byKey = db.prepare<[string, string], Row>("SELECT * FROM outbox WHERE queue = ? AND dedupe_key = ?");
  const overdue = db.prepare<[string, number, number], Row>(`
    SELECT * FROM outbox WHERE queue = ? AND status = 'waiting' AND deadline_at <= ? ORDER BY deadline_at LIMIT ?
  `);
  const nextDeadline = db.prepare<[string, number], { deadline: number | null }>(`
    SELECT min(deadline_at) AS deadline FROM outbox WHERE queue = ? AND status = 'waiting' AND deadline_at > ?
  `);
  const listed = (filter: string) =>
    db.prepare<[object], Row>(
      `SELECT * FROM outbox WHERE queue = @queue ${filter} AND number > @after ORDER BY number LIMIT @limit`,
    );
  const list = {
    all: listed(""),
    status: listed("AND status = @status"),
    target: listed("AND target = @target"),
    both: listed("AND status = @status AND target = @target"),
  };
  const counts = db.prepare<[string], { status: string; count: number }>(
    "SELECT status, count(*) AS count FROM outbox WHERE queue = ? GROUP BY status",
  );
  const targets = db.prepare<[string], { target: string; waiting: number }>(
    "SELECT target, waiting FROM outbox_targets WHERE queue = ? ORDER BY target",
  );
  return {
    async heads(queue, afterNumber, limit) {
      assertOpen();
      return heads.all(queue, afterNumber, limit);
    },
    async head(queue, lane) {
      assertOpen();
      return head.get(queue, lane);
    },
    async item(id) {
      assertOpen();
      return optional(byId.get(id));
    },
    async byDedupeKey(queue, key) {
      assertOpen();
      return optional(byKey.get(queue, key));
    },
    async overdue(queue, now, limit) {
      assertOpen();
      return overdue.all(queue, now, limit).map(toItem);
    },
    async nextDeadline(queue, after) {
      assertOpen();
      return nextDeadline.get(queue, after)?.deadline ?? undefined;
    },
    async list(queue, { status, target, afterNumber = 0, limit }) {
      assertOpen();
      const query =
        status === undefined
          ? target === undefined
            ? list.all
            : list.target
          : target === undefined
            ? list.status
            : list.both;
      const filter = { ...(status !== undefined && { status }), ...(target !== undefined && { target }) };
      return query.all({ queue, after: afterNumber, limit, ...filter }).map(toItem);
    },
    async counts(queue) {
      assertOpen();
      const total = { waiting: 0, delivered: 0, refused: 0, expired: 0 };
      for (const { status, count } of counts.all(queue)) total[outcomeOf(status) ?? "waiting"] = count;
      return total;
    },
    async waitingByTarget(queue) {
      assertOpen();
      return new Map(targets.all(queue).map(({ target, waiting }) => [target, waiting]));
    },
  };
}

function optional(row: Row | undefined): StoredItem | undefined {
  return row === undefined ? undefined : toItem(row);
}

function toItem(row: Row): StoredItem {
  const outcome = outcomeOf(row.status);
  return {
    number: row.number,
    id: row.id,
    queue: row.queue,
    lane: row.lane,
    target: row.target,
    payload: row.payload,
    createdAt: row.created_at,
    dueAt: row.due_at,
    attempts: row.attempts,
    interrupted: row.begun === 1 || row.uncertain === 1,
    ...(row.deadline_at !== null && { deadlineAt: row.deadline_at }),
    ...(row.dedupe_key !== null && { dedupeKey: row.dedupe_key }),
    ...(row.reason !== null && { reason: row.reason }),
    ...(outcome !== undefined && { outcome }),
    ...(row.finished_at !== null && { finishedAt: row.finished_at }),
  };
}

function outcomeOf(status: string): FinalStatus | undefined {
  return FINAL_STATUSES.find((outcome) => outcome === status);
}
