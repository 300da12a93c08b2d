import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { append, key } from "../../testing/contracts/fixtures.js";
import { VirtualClock } from "../../testing/virtual-clock.js";
import { openDatabase } from "./driver.js";
import { openSqliteStore } from "./open.js";

describe("openSqliteStore", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "mailroom-open-"));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  for (const [durability, synchronous] of [
    ["fsync", "full"],
    ["fast", "normal"],
  ] as const) {
    it(`sets "${durability}" on every open, also of an existing file`, async () => {
      const directory = join(root, "data");
      for (const _ of ["created", "reopened", "again"]) {
        const store = await openSqliteStore({ directory, durability });
        expect(store.inspect()).toMatchObject({
          journalMode: "wal",
          synchronous,
          autoVacuum: "incremental",
          pageSize: durability === "fsync" ? 8192 : 4096,
        });
        await store.commit({ appends: [append(key(1), await store.lastNumber(key(1)), "a")] });
        await store.close();
      }
    });
  }

  it("explains what is wrong with an invalid data directory", async () => {
    const file = join(root, "file");
    writeFileSync(file, "text");
    for (const directory of [file, join(file, "below")]) {
      const refused = openSqliteStore({ directory });
      await expect(refused).rejects.toMatchObject({ code: "store_directory" });
      await expect(refused).rejects.toThrow(`${directory} is a file or is below one`);
    }
  });

  it("names a file that is not a database and leaves it unchanged", async () => {
    const file = join(root, "mailroom.db");
    const text = "a text file in the wrong place, longer than the header of a database ".repeat(9);
    writeFileSync(file, text);
    const refused = openSqliteStore({ directory: root });
    await expect(refused).rejects.toMatchObject({ code: "store_version" });
    await expect(refused).rejects.toThrow(file);
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  it("is durable by default", async () => {
    const store = await openSqliteStore({ directory: join(root, "data") });
    expect(store.inspect().synchronous).toBe("full");
    await store.close();
  });

  it.skipIf(process.platform === "win32")(
    "creates the data directory and files for the owner only",
    async () => {
      const directory = join(root, "a", "b");
      const store = await openSqliteStore({ directory });
      const mode = (path: string) => statSync(path).mode & 0o777;
      expect(mode(directory)).toBe(0o700);
      expect(mode(join(root, "a"))).toBe(0o700);
      expect(mode(join(directory, "mailroom.db"))).toBe(0o600);
      expect(mode(join(directory, "mailroom.db-wal"))).toBe(0o600);
      await store.close();
    },
  );

  it("opens a file by its path, beside others in the same directory", async () => {
    const one = await openSqliteStore({ path: join(root, "one.db") });
    const two = await openSqliteStore({ path: join(root, "two.db") });
    await one.commit({ appends: [append(key(1), 0, "a")] });
    expect(await two.lastNumber(key(1))).toBe(0);
    await one.close();
    await two.close();
  });

  it("keeps stores in memory separate", async () => {
    const one = await openSqliteStore({ path: ":memory:" });
    const two = await openSqliteStore({ path: ":memory:" });
    await one.commit({ appends: [append(key(1), 0, "a")] });
    expect(await two.lastNumber(key(1))).toBe(0);
    await one.close();
    await two.close();
  });

  for (const mode of ["delete", "wal"]) {
    it(`refuses another program's database (journal mode ${mode}) and leaves it unchanged`, async () => {
      const path = join(root, "other.db");
      const other = openDatabase(path, { busyTimeout: 0 });
      other.pragma(`journal_mode = ${mode}`);
      other.exec("CREATE TABLE migrations (version TEXT)");
      // Closing would checkpoint the log: copies are what a killed program leaves.
      const left = ["", "-wal"].filter((suffix) => existsSync(`${path}${suffix}`));
      const theirs = join(root, "theirs.db");
      for (const suffix of left) copyFileSync(`${path}${suffix}`, `${theirs}${suffix}`);
      other.close();
      const bytes = () => left.map((suffix) => readFileSync(`${theirs}${suffix}`));
      const before = bytes();
      await expect(openSqliteStore({ path: theirs })).rejects.toMatchObject({ code: "store_version" });
      expect(bytes()).toEqual(before);
    });
  }

  it("refuses a file of a newer version and leaves it unchanged", async () => {
    const path = join(root, "newer.db");
    await (await openSqliteStore({ path })).close();
    const newer = openDatabase(path, { busyTimeout: 0 });
    newer.exec("INSERT INTO migrations VALUES ('engine', 99, 'of the future', 0)");
    newer.close();
    const before = readFileSync(path);
    const refused = openSqliteStore({ path });
    await expect(refused).rejects.toMatchObject({ code: "store_version" });
    await expect(refused).rejects.toThrow(/newer version of Mailroom.*migration 99.*Upgrade Mailroom/);
    expect(readFileSync(path)).toEqual(before);
  });

  it("opens what a process left that was killed just after creating the file", async () => {
    const path = join(root, "young.db");
    const young = openDatabase(path, { busyTimeout: 0 });
    young.pragma("journal_mode = WAL");
    young.close();
    await (await openSqliteStore({ path })).close();
  });

  it("names a truncated file and tells what to do", async () => {
    const whole = join(root, "whole.db");
    const store = await openSqliteStore({ path: whole });
    for (let number = 0; number < 20; number += 1) {
      await store.commit({ appends: [append(key(number), 0, "x".repeat(20_000))] });
    }
    await store.close();
    const { size } = statSync(whole);
    for (const length of [50, 100, 4096, 8192, size / 2, size - 8192]) {
      const path = join(root, `cut at ${length}.db`);
      copyFileSync(whole, path);
      truncateSync(path, length);
      const refused = openSqliteStore({ path });
      await expect(refused, `cut at ${length}`).rejects.toMatchObject({
        code: expect.stringMatching(/^store_(damaged|version)$/),
        message: expect.stringMatching(/^.*cut at.*damaged.*restore a backup/),
      });
    }
  });

  for (const [what, spoil] of [
    ["deleted", (directory: string) => rmSync(directory, { recursive: true })],
    [
      "replaced",
      (directory: string) => {
        const file = join(directory, "mailroom.db");
        copyFileSync(file, `${file}.copy`);
        renameSync(`${file}.copy`, file);
      },
    ],
  ] as const) {
    it(`detects that its file was ${what} and acknowledges nothing more`, async () => {
      const directory = join(root, "data");
      const clock = new VirtualClock();
      const store = await openSqliteStore({ directory, clock });
      await store.commit({ appends: [append(key(1), 0, "a")] });
      spoil(directory);
      clock.advance(1_000);
      const lost = store.commit({ appends: [append(key(1), 1, "b")] });
      await expect(lost).rejects.toMatchObject({ code: "store_failed" });
      await expect(lost).rejects.toThrow(`mailroom.db was ${what}`);
      await store.close();
    });
  }

  it("releases the lock when it cannot open the file", async () => {
    const directory = join(root, "data");
    const path = join(directory, "mailroom.db");
    await (await openSqliteStore({ directory })).close();
    writeFileSync(path, "this is not a database at all".repeat(100));
    await expect(openSqliteStore({ directory })).rejects.toMatchObject({ code: "store_version" });
    rmSync(path);
    await (await openSqliteStore({ directory })).close();
  });
});
