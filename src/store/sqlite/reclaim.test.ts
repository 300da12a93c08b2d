import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { append, key, put, remove, task } from "../../testing/contracts/fixtures.js";
import { openSqliteStore } from "./open.js";

it("returns the space of removed tasks to the file system while writes continue", async () => {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-reclaim-"));
  const store = await openSqliteStore({ directory, durability: "fast" });
  const size = () => statSync(join(directory, "mailroom.db")).size;
  const tasks = Array.from({ length: 40 }, (_, index) => key(index));
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(
      tasks.map((name) =>
        store.commit({
          appends: [append(name, round, "x".repeat(20_000))],
          rows: [put(task(name, { status: "completed" }))],
        }),
      ),
    );
  }
  await store.reclaim();
  const full = size();
  expect(full).toBeGreaterThan(8_000_000);

  const [kept = "", ...others] = tasks;
  await store.commit({ appends: [], rows: others.map((name) => remove(name, 10)) });
  expect(store.inspect().freePages).toBeGreaterThan(500);
  const [reclaimed] = await Promise.all([
    store.reclaim(),
    store.commit({ appends: [append(kept, 10, "meanwhile")] }),
  ]);
  expect(store.inspect().freePages).toBe(0);
  expect(size()).toBeLessThan(full / 10);
  expect(reclaimed.bytes).toBeGreaterThan(full * 0.9);
  expect(statSync(join(directory, "mailroom.db-wal")).size).toBe(0);
  expect(await store.lastNumber(kept)).toBe(11);
  await store.close();
  rmSync(directory, { recursive: true });
});
