import { beforeEach, describe, expect, it } from "vitest";
import { StoreVersionError } from "../errors.js";
import { type Database, openDatabase } from "./driver.js";
import { migrate } from "./migrate.js";
import { defineRoom, type Migration } from "./room.js";
import { ROOMS } from "./rooms/index.js";

const CATS: Migration = { number: 1, name: "cats", sql: "CREATE TABLE cats (name TEXT)" };
const TOM: Migration = {
  number: 2,
  name: "tom",
  sql: "INSERT INTO cats VALUES ('tom'); ALTER TABLE cats ADD COLUMN age INTEGER",
};

const room = (name: string, ...migrations: Migration[]) =>
  defineRoom<never>({ room: name, migrations, writes: {} });

describe("migrate", () => {
  let db: Database;
  let time: number;
  const run = (...rooms: Parameters<typeof migrate>[1]) => migrate(db, rooms, () => time);
  const recorded = () =>
    db.prepare("SELECT room, number, name, applied_at FROM migrations ORDER BY room, number").raw().all();
  const schema = () => db.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();
  beforeEach(() => {
    db = openDatabase(":memory:", { busyTimeout: 0 });
    time = 1;
    return () => db.close();
  });

  it("applies each migration once and records it", () => {
    run(room("zoo", CATS));
    time = 2;
    run(room("zoo", CATS, TOM));
    time = 3;
    run(room("zoo", CATS, TOM));
    expect(recorded()).toEqual([
      ["zoo", 1, "cats", 1],
      ["zoo", 2, "tom", 2],
    ]);
    expect(db.prepare("SELECT name FROM cats").pluck().all()).toEqual(["tom"]);
  });

  it("changes nothing the second time, with the rooms that Mailroom has", () => {
    run(...ROOMS);
    const [before, rows] = [schema(), recorded()];
    run(...ROOMS);
    expect(schema()).toEqual(before);
    expect(recorded()).toEqual(rows);
  });

  it("adds a room to a file that does not have it yet", () => {
    run(room("zoo", CATS));
    run(room("zoo", CATS), room("farm", { ...CATS, sql: "CREATE TABLE cows (name TEXT)" }));
    expect(recorded()).toHaveLength(2);
  });

  it("undoes a migration that fails half way, keeps those before it, and can be run again", () => {
    run(room("zoo", CATS));
    const before = schema();
    const broken = { ...TOM, sql: `${TOM.sql}; INSERT INTO dogs VALUES ('rex')` };
    expect(() => run(room("zoo", CATS, broken))).toThrow(
      /migration 2 \(tom\) of room "zoo" failed.*no such table/,
    );
    expect(db.inTransaction).toBe(false);
    expect(schema()).toEqual(before);
    expect(recorded()).toEqual([["zoo", 1, "cats", 1]]);
    expect(db.prepare("SELECT count(*) FROM cats").pluck().get()).toBe(0);
    run(room("zoo", CATS, TOM));
    expect(recorded()).toHaveLength(2);
  });

  it("refuses a file of a newer version, before it changes anything", () => {
    run(room("zoo", CATS, TOM));
    const before = schema();
    const farm = room("farm", { ...CATS, sql: "CREATE TABLE cows (name TEXT)" });
    expect(() => run(farm, room("zoo", CATS))).toThrow(StoreVersionError);
    expect(() => run(farm, room("zoo", CATS))).toThrow(/newer version.*"zoo" is at migration 2.*knows 1/);
    expect(() => run(farm)).toThrow(/"zoo" is at migration 2.*knows 0/);
    expect(schema()).toEqual(before);
  });

  it("does not accept migrations with a gap", () => {
    expect(() => run(room("zoo", CATS, { ...TOM, number: 3 }))).toThrow(/not numbered/);
  });
});
