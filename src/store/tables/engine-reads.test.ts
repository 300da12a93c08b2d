import { describe, expect, it } from "vitest";
import { openDatabase } from "../sqlite/driver.js";
import { JOURNAL_QUERIES } from "../sqlite/journals.js";
import { migrate } from "../sqlite/migrate.js";
import { TASK_LIST_QUERIES } from "../sqlite/task-list.js";
import { TABLE_SETS } from "./all.js";
import { TASK_QUERIES } from "./engine-reads.js";

const db = openDatabase(":memory:", { busyTimeout: 0 });
migrate(db, TABLE_SETS, () => 0);

/** These sort, but a limited number of rows: a batch for an index, a part of a list. */
const SORT_A_FEW = ["unindexed", "inOrder", "countAll", "countInstance"];

describe("query plans", () => {
  for (const [name, sql] of Object.entries({ ...TASK_QUERIES, ...TASK_LIST_QUERIES, ...JOURNAL_QUERIES })) {
    it(`${name} reads along an index and sorts nothing`, () => {
      const plan = explain(sql);
      expect(plan).not.toEqual([]);
      for (const line of plan) {
        if (!SORT_A_FEW.includes(name)) expect(line).not.toContain("TEMP B-TREE");
        // Walks from the end of an index that has finished tasks only.
        if (name === "oldestToKeep") expect(line).toMatch(/tasks_finished/);
        // Counts read a part of a list at a time.
        else expect(line).not.toMatch(/^SCAN (?!\(subquery)/);
      }
    });
  }
});

function explain(sql: string): string[] {
  const named = Object.fromEntries([...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]));
  const positional = sql
    .split("?")
    .slice(1)
    .map(() => 1);
  const rows = db
    .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
    .all(...(positional.length > 0 ? positional : [named]));
  return rows.map(({ detail }) => detail).filter((detail) => /^(SCAN (?!CONSTANT)|SEARCH|USE)/.test(detail));
}
