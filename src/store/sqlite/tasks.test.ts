import { describe, expect, it } from "vitest";
import { openDatabase } from "./driver.js";
import { JOURNAL_QUERIES } from "./journals.js";
import { migrate } from "./migrate.js";
import { ROOMS } from "./rooms/index.js";
import { TASK_QUERIES } from "./tasks.js";

const db = openDatabase(":memory:", { busyTimeout: 0 });
migrate(db, ROOMS, () => 0);

/** Counting everything reads everything, but at least only an index. */
const READS_A_WHOLE_INDEX = ["counts"];

describe("query plans", () => {
  for (const [name, sql] of Object.entries({ ...TASK_QUERIES, ...JOURNAL_QUERIES })) {
    it(`${name} reads along an index and sorts nothing`, () => {
      const plan = explain(sql);
      expect(plan).not.toEqual([]);
      for (const line of plan) {
        expect(line).not.toContain("TEMP B-TREE");
        if (READS_A_WHOLE_INDEX.includes(name)) expect(line).toMatch(/USING COVERING INDEX/);
        // The newest finished tasks are walked from the end of an index that holds nothing else.
        else if (name === "oldestToKeep") expect(line).toMatch(/tasks_finished/);
        else expect(line).not.toMatch(/^SCAN/);
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
