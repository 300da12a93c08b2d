import { MailroomError, messageOf } from "../../base/index.js";
import type { TableSet } from "../table-set.js";
import type { Database } from "./driver.js";

/** "MAIL" in ASCII: marks the file, so that another program's database is not mistaken for an empty one. */
const APPLICATION_ID = 0x4d41494c;

/**
 * Brings the schema up to what the table sets declare. Each migration is one transaction together with the row that
 * records it. A file of another program or of a newer version is refused before anything changes.
 */
export function migrate(db: Database, tableSets: readonly TableSet[], now: () => number): void {
  for (const { name, migrations } of tableSets) {
    if (migrations.some((migration, index) => migration.number !== index + 1)) {
      throw new Error(`the migrations of "${name}" are not numbered 1, 2, 3 …`);
    }
  }
  const applied = assertReadable(db, tableSets);

  // The column is called room in every released file.
  db.exec(`
    BEGIN IMMEDIATE;
    PRAGMA application_id = ${APPLICATION_ID};
    CREATE TABLE IF NOT EXISTS migrations (
      room TEXT NOT NULL,
      number INTEGER NOT NULL,
      name TEXT NOT NULL,
      applied_at INTEGER NOT NULL,
      PRIMARY KEY (room, number)
    ) STRICT, WITHOUT ROWID;
    COMMIT;
  `);
  const record = db.prepare("INSERT INTO migrations (room, number, name, applied_at) VALUES (?, ?, ?, ?)");
  for (const tableSet of tableSets) {
    for (const { number, name, sql } of tableSet.migrations.slice(applied.get(tableSet.name) ?? 0)) {
      const apply = db.transaction(() => {
        if (typeof sql === "string") db.exec(sql);
        else sql(db);
        record.run(tableSet.name, number, name, now());
      });
      try {
        apply.immediate();
      } catch (cause) {
        const reason = messageOf(cause);
        throw new Error(
          `migration ${number} (${name}) of "${tableSet.name}" failed and changed nothing in ${db.name}: ${reason}`,
          { cause },
        );
      }
    }
  }
}

/**
 * Changes nothing. Returns the newest applied migration of each table set.
 * @throws MailroomError `store_version` when the file belongs to another program or a newer version
 */
export function assertReadable(db: Database, tableSets: readonly TableSet[]): ReadonlyMap<string, number> {
  const applied = readApplied(db);
  assertNotNewer(db.name, tableSets, applied);
  return applied;
}

function readApplied(db: Database): ReadonlyMap<string, number> {
  const isEmpty = db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (isEmpty) return new Map();
  if (db.pragma("application_id", { simple: true }) !== APPLICATION_ID) {
    throw new MailroomError(
      "store_version",
      `${db.name} is a database of another program: choose another path`,
    );
  }
  const rows = db
    .prepare<[], { room: string; newest: number }>(
      "SELECT room, max(number) AS newest FROM migrations GROUP BY room",
    )
    .all();
  return new Map(rows.map(({ room, newest }) => [room, newest]));
}

function assertNotNewer(
  file: string,
  tableSets: readonly TableSet[],
  applied: ReadonlyMap<string, number>,
): void {
  const known = new Map(tableSets.map(({ name, migrations }) => [name, migrations.length]));
  for (const [name, newest] of applied) {
    const supported = known.get(name) ?? 0;
    if (newest <= supported) continue;
    throw new MailroomError(
      "store_version",
      `${file} was written by a newer version of Mailroom: its tables "${name}" are at migration ${newest}, ` +
        `this version supports ${supported}. Upgrade Mailroom, or restore a backup from before the upgrade`,
    );
  }
}
