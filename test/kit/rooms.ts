/** Mailrooms for one test, in their own folder, closed and removed after it. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Problem } from "../../src/base/index.js";
import type { Store } from "../../src/engine/ports.js";
import type { Entry } from "../../src/engine/task/entries.js";
import { Mailroom, type MailroomOptions } from "../../src/library/mailroom.js";

export interface OpenRoom {
  readonly room: Mailroom;
  readonly problems: Problem[];
}

/** In memory unless a location is given. */
export async function openRoom(options: MailroomOptions): Promise<OpenRoom> {
  const problems: Problem[] = [];
  const room = await Mailroom.open({
    data: false,
    onProblem: (problem) => problems.push(problem),
    ...options,
  });
  onTestFinished(async () => {
    await room.close({ grace: 0 }).catch(() => {});
  });
  return { room, problems };
}

export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "mailroom-test-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Copies what a process killed now would leave in its data directory. */
export function leftByKill(directory: string): string {
  const left = folder();
  for (const name of ["mailroom.db", "mailroom.db-wal"]) {
    if (existsSync(join(directory, name))) copyFileSync(join(directory, name), join(left, name));
  }
  return left;
}

/** Reads a task's journal from the store without loading the task. */
export async function storedEntries(store: Store, key: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const { data } of await store.read(key)) entries.push(...JSON.parse(data));
  return entries;
}

/** Results of actions with unknown outcome. */
export function unknownResults(entries: readonly Entry[]): Entry[] {
  return entries.filter((entry) => entry.t === "action_finished" && entry.unknown === true);
}
