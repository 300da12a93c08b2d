import { beforeEach, describe, expect, it } from "vitest";
import { defineTableSet, type Migration } from "../table-set.js";
import { TABLE_SETS } from "../tables/all.js";
import { type Database, openDatabase } from "./driver.js";
import { migrate } from "./migrate.js";

const CATS: Migration = { number: 1, name: "cats", sql: "CREATE TABLE cats (name TEXT)" };
const TOM: Migration = {
  number: 2,
  name: "tom",
  sql: "INSERT INTO cats VALUES ('tom'); ALTER TABLE cats ADD COLUMN age INTEGER",
};

const tables = (name: string, ...migrations: Migration[]) =>
  defineTableSet<never>({ name, migrations, writes: {} });

describe("migrate", () => {
  let db: Database;
  let time: number;
  const run = (...tableSets: Parameters<typeof migrate>[1]) => migrate(db, tableSets, () => time);
  const recorded = () =>
    db.prepare("SELECT room, number, name, applied_at FROM migrations ORDER BY room, number").raw().all();
  const schema = () => db.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();
  beforeEach(() => {
    db = openDatabase(":memory:", { busyTimeout: 0 });
    time = 1;
    return () => db.close();
  });

  it("applies each migration once and records it", () => {
    run(tables("zoo", CATS));
    time = 2;
    run(tables("zoo", CATS, TOM));
    time = 3;
    run(tables("zoo", CATS, TOM));
    expect(recorded()).toEqual([
      ["zoo", 1, "cats", 1],
      ["zoo", 2, "tom", 2],
    ]);
    expect(db.prepare("SELECT name FROM cats").pluck().all()).toEqual(["tom"]);
  });

  it("changes nothing the second time with all of Mailroom's tables", () => {
    run(...TABLE_SETS);
    const [before, rows] = [schema(), recorded()];
    run(...TABLE_SETS);
    expect(schema()).toEqual(before);
    expect(recorded()).toEqual(rows);
  });

  it("adds a table set that the file does not have yet", () => {
    run(tables("zoo", CATS));
    run(tables("zoo", CATS), tables("farm", { ...CATS, sql: "CREATE TABLE cows (name TEXT)" }));
    expect(recorded()).toHaveLength(2);
  });

  it("rolls back a failed migration, keeps those before it, and can be run again", () => {
    run(tables("zoo", CATS));
    const before = schema();
    const broken = { ...TOM, sql: `${TOM.sql}; INSERT INTO dogs VALUES ('rex')` };
    expect(() => run(tables("zoo", CATS, broken))).toThrow(
      /migration 2 \(tom\) of "zoo" failed.*no such table/,
    );
    expect(db.inTransaction).toBe(false);
    expect(schema()).toEqual(before);
    expect(recorded()).toEqual([["zoo", 1, "cats", 1]]);
    expect(db.prepare("SELECT count(*) FROM cats").pluck().get()).toBe(0);
    run(tables("zoo", CATS, TOM));
    expect(recorded()).toHaveLength(2);
  });

  it("refuses a file of a newer version and leaves it unchanged", () => {
    run(tables("zoo", CATS, TOM));
    const before = schema();
    const farm = tables("farm", { ...CATS, sql: "CREATE TABLE cows (name TEXT)" });
    expect(() => run(farm, tables("zoo", CATS))).toThrow(expect.objectContaining({ code: "store_version" }));
    expect(() => run(farm, tables("zoo", CATS))).toThrow(
      /newer version.*"zoo" are at migration 2.*supports 1/,
    );
    expect(() => run(farm)).toThrow(/"zoo" are at migration 2.*supports 0/);
    expect(schema()).toEqual(before);
  });

  it("rejects migrations whose numbers have a gap", () => {
    expect(() => run(tables("zoo", CATS, { ...TOM, number: 3 }))).toThrow(/not numbered/);
  });
});
