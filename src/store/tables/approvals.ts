import {
  type ApprovalReads,
  type ApprovalRowWrite,
  type ApproversPut,
  AUDIT_ACTIONS,
  type AuditExpire,
  type AuditPut,
  type AuditRecord,
  type TaskReads,
  type TaskRow,
} from "../../engine/index.js";
import type { Database } from "../database.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/** Who may answer for the owners of tasks, and the audit log. */
export const approvalTables = defineTableSet<ApprovalRowWrite>({
  name: "approvals",
  migrations: [
    {
      number: 1,
      name: "approvers and the audit log",
      sql: `
        CREATE TABLE task_approvers (
          approver TEXT NOT NULL,
          key TEXT NOT NULL,
          PRIMARY KEY (approver, key)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX task_approvers_of_task ON task_approvers (key);
        CREATE TRIGGER task_approvers_end AFTER DELETE ON tasks BEGIN
          DELETE FROM task_approvers WHERE key = OLD.key;
        END;
        CREATE TABLE audit (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          at INTEGER NOT NULL,
          actor TEXT NOT NULL,
          action TEXT NOT NULL,
          right TEXT NOT NULL,
          key TEXT NOT NULL,
          task_id TEXT NOT NULL,
          owner TEXT NOT NULL,
          details TEXT NOT NULL
        ) STRICT;
        CREATE INDEX audit_by_actor ON audit (actor, number);
        CREATE INDEX audit_by_owner ON audit (owner, number);
        CREATE INDEX audit_by_task ON audit (key, number);
        CREATE INDEX audit_by_age ON audit (at);
      `,
    },
  ],
  writes: { "approvers.put": putApprovers, "audit.put": putAudit, "audit.expire": expireAudit },
});

function putApprovers({ db }: WriteContext): (write: ApproversPut) => void {
  const clear = db.prepare("DELETE FROM task_approvers WHERE key = ?");
  const put = db.prepare("INSERT OR IGNORE INTO task_approvers (approver, key) VALUES (?, ?)");
  return ({ key, approvers }) => {
    clear.run(key);
    for (const approver of approvers) put.run(approver, key);
  };
}

function putAudit({ db }: WriteContext): (write: AuditPut) => void {
  const put = db.prepare(
    "INSERT INTO audit (at, actor, action, right, key, task_id, owner, details) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );
  return ({ record: { at, actor, action, right, key, taskId, owner, details } }) => {
    put.run(at, actor, action, right, key, taskId, owner, JSON.stringify(details));
  };
}

/** Rows removed by one write, so that it does not delay others. */
const EXPIRED_AT_ONCE = 10_000;

function expireAudit({ db }: WriteContext): (write: AuditExpire) => void {
  const expire = db.prepare(
    `DELETE FROM audit WHERE number IN (SELECT number FROM audit WHERE at < ? ORDER BY at LIMIT ${EXPIRED_AT_ONCE})`,
  );
  return ({ before }) => {
    expire.run(before);
  };
}

/** Rows that a page reads, however few of them are of paused tasks. */
const MOST_ROWS = 2_000;
/** Sorts after every key. */
const AFTER_EVERY_KEY = "\u{10FFFF}";

interface StoredAudit {
  readonly number: number;
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly right: string;
  readonly key: string;
  readonly task_id: string;
  readonly owner: string;
  readonly details: string;
}

const COLUMNS = "number, at, actor, action, right, key, task_id, owner, details";

export function createApprovalReads(
  db: Database,
  tasks: Pick<TaskReads, "byKey">,
  ready: () => void,
): ApprovalReads {
  const keys = (beyond: "<" | ">", order: "ASC" | "DESC") =>
    db
      .prepare<[string, string, number], string>(
        `SELECT key FROM task_approvers WHERE approver = ? AND key ${beyond} ? ORDER BY key ${order} LIMIT ?`,
      )
      .pluck();
  const newestFirst = { keysOf: keys("<", "DESC"), from: AFTER_EVERY_KEY, sign: -1 };
  const oldestFirst = { keysOf: keys(">", "ASC"), from: "", sign: 1 };
  const oldest = db.prepare<[], number>("SELECT at FROM audit ORDER BY at LIMIT 1").pluck();
  const page =
    "AND number < @before AND actor = coalesce(@actor, actor) AND key = coalesce(@key, key) " +
    "ORDER BY number DESC LIMIT @limit";
  const all = db.prepare<[object], StoredAudit>(`SELECT ${COLUMNS} FROM audit WHERE true ${page}`);
  const byActor = db.prepare<[object], StoredAudit>(`SELECT ${COLUMNS} FROM audit WHERE actor = @by ${page}`);
  const byTask = db.prepare<[object], StoredAudit>(`SELECT ${COLUMNS} FROM audit WHERE key = @of ${page}`);
  const byOwner = db.prepare<[object], StoredAudit>(
    `SELECT ${COLUMNS} FROM audit WHERE owner = @owner ${page}`,
  );

  return {
    async named({ approvers, limit, cursor, order = "desc" }) {
      ready();
      const { keysOf, from, sign } = order === "desc" ? newestFirst : oldestFirst;
      const isBeyond = (key: string, end: string) => (sign === 1 ? key > end : key < end);
      const keys = new Set<string>();
      // Where a list was cut, nothing beyond its end is known to be complete.
      let end: string | undefined;
      for (const approver of approvers) {
        const found = keysOf.all(approver, cursor ?? from, MOST_ROWS);
        for (const key of found) keys.add(key);
        const last = found.length === MOST_ROWS ? found.at(-1) : undefined;
        if (last !== undefined && (end === undefined || isBeyond(end, last))) end = last;
      }
      const ordered = [...keys]
        .filter((key) => end === undefined || !isBeyond(key, end))
        .sort((a, b) => (a < b ? -sign : sign));
      const found: TaskRow[] = [];
      for (const key of ordered) {
        if (found.length === limit) return { tasks: found, nextCursor: found.at(-1)?.key ?? key };
        const row = await tasks.byKey(key);
        if (row?.status === "paused" && row.held !== true) found.push(row);
      }
      return end === undefined ? { tasks: found } : { tasks: found, nextCursor: end };
    },

    async audit({ concerning, actor, key, before = Number.MAX_SAFE_INTEGER, limit }) {
      ready();
      const range = { before, limit, actor: actor ?? null, key: key ?? null };
      if (concerning === undefined) {
        if (key !== undefined) return byTask.all({ ...range, of: key }).map(toRecord);
        return (actor === undefined ? all.all(range) : byActor.all({ ...range, by: actor })).map(toRecord);
      }
      const rows = new Map<number, StoredAudit>();
      for (const row of byActor.all({ ...range, by: concerning })) rows.set(row.number, row);
      for (const row of byOwner.all({ ...range, owner: concerning })) rows.set(row.number, row);
      return [...rows.values()]
        .sort((a, b) => b.number - a.number)
        .slice(0, limit)
        .map(toRecord);
    },

    async oldestAudit() {
      ready();
      return oldest.get();
    },
  };
}

function toRecord(row: StoredAudit): AuditRecord & { readonly number: number } {
  const action = AUDIT_ACTIONS.find((known) => known === row.action);
  const right = (["owner", "approver", "admin"] as const).find((known) => known === row.right);
  if (action === undefined || right === undefined) {
    throw new Error(`audit record ${row.number} is of a kind that this version does not know`);
  }
  const { number, at, actor, key, task_id: taskId, owner } = row;
  return { number, at, actor, action, right, key, taskId, owner, details: JSON.parse(row.details) };
}
