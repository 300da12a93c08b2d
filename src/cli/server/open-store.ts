/**
 * The server's store. Commands open the store themselves while no server runs (`mailroom tasks list`, `token create`), each
 * for a moment; a server that starts in such a moment waits for it to pass.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Settings } from "../../config/index.js";
import { openSqliteStore, type SqliteStore, StoreLockedError } from "../../store/index.js";
import { isServerRunning } from "../control/reach.js";

/** Milliseconds. Commands are done long before. */
const LONGEST_WAIT = 5_000;
const LOOK_EVERY = 50;

/** @throws StoreLockedError when a server runs there already, or whoever has it open does not leave it */
export async function openServerStore(
  data: string | undefined,
  { store: { durability } }: Settings,
  say: (line: string) => void,
): Promise<SqliteStore> {
  if (data === undefined) return openSqliteStore({ path: ":memory:" });
  const deadline = performance.now() + LONGEST_WAIT;
  let said = false;
  for (;;) {
    try {
      return await openSqliteStore({ directory: data, durability });
    } catch (error) {
      if (!(error instanceof StoreLockedError) || performance.now() >= deadline) throw error;
      if (await isServerRunning(data)) throw error;
      if (!said) say(waitingFor(error, data));
      said = true;
    }
    await sleep(LOOK_EVERY);
  }
}

function waitingFor({ holder }: StoreLockedError, data: string): string {
  const who = holder === undefined ? "another process" : `process ${holder.pid} on ${holder.host}`;
  return `${who} has ${data} open and is no server; waiting up to ${LONGEST_WAIT / 1000} s for it to finish`;
}
