/**
 * A data directory that an earlier version has written opens, and loses nothing. Each folder holds the database as that
 * version left it, and what it said was in it.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TASK_STATUSES, type TaskRow } from "../../src/engine/ports.js";
import { openStore } from "../../src/store/index.js";
import type { MessagePut } from "../../src/store/ports/a2a.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { append, entriesOf, key, put, remove, snapshot, task } from "../../src/testing/contracts/fixtures.js";

interface Expected {
  readonly position: number;
  readonly tasks: readonly TaskRow[];
  readonly journals: Readonly<
    Record<string, { readonly rows: number; readonly last: number; readonly sha256: string }>
  >;
}

const CORPUS = join(import.meta.dirname, "directories");

describe.each(readdirSync(CORPUS))("data directory %s", (name) => {
  const expected: Expected = JSON.parse(readFileSync(join(CORPUS, name, "expected.json"), "utf8"));
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "mailroom-corpus-"));
    const bytes = gunzipSync(readFileSync(join(CORPUS, name, "mailroom.db.gz")));
    writeFileSync(join(directory, "mailroom.db"), bytes);
  });
  afterEach(() => rmSync(directory, { recursive: true }));
  const open = () => openStore({ directory, durability: "fast", indexBatch: 3 });
  const taskOf = (taskId: string): TaskRow => {
    const found = expected.tasks.find((row) => row.taskId === taskId);
    if (found === undefined) throw new Error(`the directory has no task ${taskId}`);
    return found;
  };

  it("opens, also the second time, with everything that was in it", async () => {
    for (const _ of ["migrated", "opened again"]) {
      const store = await open();
      expect(await store.position()).toBe(expected.position);
      expect((await store.tasks.list({ limit: 1_000 })).tasks).toEqual(expected.tasks);
      expect(new Set(expected.tasks.map(({ status }) => status))).toEqual(new Set(TASK_STATUSES));
      for (const row of expected.tasks) {
        expect(await store.tasks.find(row.instance, row.taskId)).toEqual(row);
        const own = expected.tasks.filter(({ instance }) => instance.id === row.instance.id);
        expect((await store.tasks.list({ instance: row.instance, limit: 1_000 })).tasks).toEqual(own);
        const counts = await store.tasks.counts(row.instance);
        expect(counts[row.status]).toBe(own.filter(({ status }) => status === row.status).length);
      }
      for (const [journal, { rows, last, sha256 }] of Object.entries(expected.journals)) {
        const stored = await store.read(journal);
        expect(stored).toHaveLength(rows);
        expect(await store.lastNumber(journal)).toBe(last);
        const text = stored.map((row) => `${row.first} ${row.last} ${row.position} ${row.data}\n`).join("");
        expect(createHash("sha256").update(text).digest("hex")).toBe(sha256);
      }
      const listed = (await store.conversations.list({ space: "", limit: 9 })).map(({ id }) => id);
      expect(listed).toEqual(["conv-1"]);
      expect((await store.tokens.list({ limit: 9 })).tokens.map(({ tokenId }) => tokenId)).toEqual(["tok1"]);
      expect((await store.mesh.inbox({ limit: 9 })).map(({ content }) => content)).toEqual([
        "hello from the lab",
      ]);
      await store.close();
    }
  });

  it("is read across the seam, from any number and in the order of all commits", async () => {
    const { key: long } = taskOf("long");
    const last = expected.journals[long]?.last ?? 0;
    let store = await open();
    const before = await store.read(long);
    for (let added = 0; added < 8; added += 1) {
      const { position } = await store.commit({ appends: [append(long, last + added, `${added}`)] });
      expect(position).toBe(expected.position + added + 1);
    }
    for (const _ of ["in memory", "reopened"]) {
      const rows = await store.read(long);
      expect(rows.slice(0, before.length)).toEqual(before);
      expect(entriesOf(rows.slice(before.length))).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
      for (let after = last - 3; after < last + 8; after += 1) {
        const rest = rows.filter((row) => row.last > after);
        expect(await store.read(long, { after })).toEqual(rest);
        expect(await store.read(long, { after, limit: 3 })).toEqual(rest.slice(0, 3));
      }
      const [whole] = await store.readMany([long]);
      expect(whole).toEqual({ journal: long, snapshot: undefined, rows });

      const all = await store.readAll(0, 10_000);
      const paged = [];
      for (;;) {
        const page = await store.readAll(paged.at(-1)?.position ?? 0, 7);
        if (page.length === 0) break;
        paged.push(...page);
      }
      expect(paged).toEqual(all);
      expect(all.filter(({ journal }) => journal === long)).toEqual(rows);
      await store.close();
      store = await open();
    }
    await store.close();
  });

  it("stays usable: old tasks change and are removed with all their rows, and new ones are added", async () => {
    const ann = { role: "user", id: "ann" } as const;
    const { key: long, ...row } = taskOf("long");
    const { key: greeting } = taskOf("greeting");
    const last = expected.journals[long]?.last ?? 0;
    const message: MessagePut = {
      kind: "a2a.message.put",
      instance: ann,
      messageId: "m1",
      kept: { hash: "h", key: long, taskId: "long", number: 1 },
    };
    let store = await open();
    await store.commit({
      appends: [append(long, last, "more")],
      rows: [
        put({ ...row, key: long, updatedAt: 1, title: "changed" }),
        snapshot(long, last, { head: "state" }),
        message,
      ],
    });
    const opened = [1, 2, 3, 4].map((number) =>
      task(`f${key(number)}`, { taskId: `new ${number}`, status: "failed" }),
    );
    for (const task of opened) await store.commit({ appends: [append(task.key, 0, "a")], rows: [put(task)] });
    await expect(
      store.commit({ appends: [], rows: [put(task(key(9), { taskId: "greeting" }))] }),
    ).rejects.toMatchObject({ code: "row_conflict" });
    const own = expected.tasks.filter(({ instance }) => instance.id === "ann").map((task) => task.key);
    const keys = async () =>
      (await store.tasks.list({ instance: ann, limit: 1_000 })).tasks.map((task) => task.key);
    expect(await keys()).toEqual([...opened.map((task) => task.key).reverse(), ...own]);
    expect(await store.a2a.storedMessage(ann, "m1")).toBeDefined();

    await store.commit({ appends: [], rows: [remove(long, last + 1), remove(opened[0]?.key ?? "", 1)] });
    for (const _ of ["in memory", "reopened"]) {
      expect(await store.read(long)).toEqual([]);
      expect(await store.readSnapshot(long)).toBeUndefined();
      expect(await store.a2a.storedMessage(ann, "m1")).toBeUndefined();
      expect(await keys()).toEqual([
        ...opened
          .slice(1)
          .map((task) => task.key)
          .reverse(),
        ...own.filter((other) => other !== long),
      ]);
      expect((await store.readAll(0, 10_000)).some(({ journal }) => journal === long)).toBe(false);
      expect(await store.read(greeting)).not.toEqual([]);
      await store.close();
      store = await open();
    }
    await store.close();
    const db = openDatabase(join(directory, "mailroom.db"), { busyTimeout: 0 });
    for (const table of ["journal_old", "journal", "journal_rows", "snapshot_parts"]) {
      const left = `SELECT count(*) FROM ${table} WHERE journal NOT IN (SELECT id FROM journals)`;
      expect(db.prepare(left).pluck().get(), table).toBe(0);
    }
    db.close();
  });
});
