import { FINAL_OUTCOMES, type FinalOutcome } from "../../outbox/item.js";
import type { LaneHead, OutboxReads, StoredItem } from "../../outbox/ports.js";
import type { Database } from "./driver.js";

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

function outcomeOf(status: string): FinalOutcome | undefined {
  return FINAL_OUTCOMES.find((outcome) => outcome === status);
}
