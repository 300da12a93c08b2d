import { StoreVersionError } from "../errors.js";
import type { Database } from "./driver.js";
import type { Room } from "./room.js";

/** "MAIL" in ASCII: marks the file as ours, so that another program's database is not taken for an empty one. */
const APPLICATION_ID = 0x4d41494c;

/**
 * Brings the schema up to what the rooms declare. Each migration is one transaction together with the row that
 * records it. A file that is not ours or was written by a newer version is refused before anything is changed.
 */
export function migrate(db: Database, rooms: readonly Room[], now: () => number): void {
  for (const { room, migrations } of rooms) {
    if (migrations.some((migration, index) => migration.number !== index + 1)) {
      throw new Error(`the migrations of room "${room}" are not numbered 1, 2, 3 …`);
    }
  }
  const applied = assertReadable(db, rooms);

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
  for (const { room, migrations } of rooms) {
    for (const { number, name, sql } of migrations.slice(applied.get(room) ?? 0)) {
      const apply = db.transaction(() => {
        if (typeof sql === "string") db.exec(sql);
        else sql(db);
        record.run(room, number, name, now());
      });
      try {
        apply.immediate();
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new Error(
          `migration ${number} (${name}) of room "${room}" failed and changed nothing in ${db.name}: ${reason}`,
          { cause },
        );
      }
    }
  }
}

/**
 * Changes nothing. Returns the newest migration of each room that the file has seen.
 * @throws StoreVersionError when the file is not ours or from a newer version
 */
export function assertReadable(db: Database, rooms: readonly Room[]): ReadonlyMap<string, number> {
  const applied = readApplied(db);
  refuseNewer(db.name, rooms, applied);
  return applied;
}

function readApplied(db: Database): ReadonlyMap<string, number> {
  const isEmpty = db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (isEmpty) return new Map();
  if (db.pragma("application_id", { simple: true }) !== APPLICATION_ID) {
    throw new StoreVersionError(`${db.name} is a database of another program: choose another path`);
  }
  const rows = db
    .prepare<[], { room: string; newest: number }>(
      "SELECT room, max(number) AS newest FROM migrations GROUP BY room",
    )
    .all();
  return new Map(rows.map(({ room, newest }) => [room, newest]));
}

function refuseNewer(file: string, rooms: readonly Room[], applied: ReadonlyMap<string, number>): void {
  const known = new Map(rooms.map(({ room, migrations }) => [room, migrations.length]));
  for (const [room, newest] of applied) {
    const ours = known.get(room) ?? 0;
    if (newest <= ours) continue;
    throw new StoreVersionError(
      `${file} was written by a newer version of Mailroom: its room "${room}" is at migration ${newest}, ` +
        `this version knows ${ours}. Upgrade Mailroom, or restore a backup from before the upgrade`,
    );
  }
}
