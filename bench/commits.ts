/** The disk's commit rate, measured in the same run. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Library } from "./builds.js";

export const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
};

/** Durable commits of one row per second, sequential, by the same store with the same rows. */
export async function singleCommits(
  open: Library["openStore"],
  durability: "fsync" | "fast",
  count: number,
): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const store = await open({ directory, durability });
  const data = JSON.stringify(["x".repeat(800)]);
  const journal = "01900000-0000-7000-8000-000000000000";
  const took = await seconds(async () => {
    for (let expected = 0; expected < count; expected++) {
      await store.commit({ appends: [{ journal, expected, count: 1, data }] });
    }
  });
  await store.close();
  rmSync(directory, { recursive: true, force: true });
  return count / took;
}
