/**
 * Commits to a store and, after each acknowledgement, writes a mark to a file. Run by fsync.test.ts under strace:
 * between the marks the trace shows what had reached the disk when the acknowledgement was given.
 *
 *   node --import tsx test/fsync/writer.ts <data directory> <fsync|fast> <file for marks>
 */
import { openSync, writeSync } from "node:fs";
import { openStore } from "../../src/store/index.js";

const [directory = "", durability = "", marks = ""] = process.argv.slice(2);
const mark = openSync(marks, "w");
const store = await openStore({ directory, durability: durability === "fast" ? "fast" : "fsync" });

async function commit(journal: string, expected: number, body: string): Promise<void> {
  await store.commit({ appends: [{ journal, expected, count: 1, data: JSON.stringify([body]) }] });
  writeSync(mark, `acknowledged ${journal} ${expected}\n`);
}

for (let number = 0; number < 20; number += 1) await commit("alone", number, "small");
// Enough for the log to be written back and begun again a few times.
for (let number = 0; number < 200; number += 1) await commit("large", number, "x".repeat(64 * 1024));
for (let round = 0; round < 10; round += 1) {
  await Promise.all(Array.from({ length: 50 }, (_, writer) => commit(`writer ${writer}`, round, "together")));
}
await store.close();
