/**
 * The server's store. Commands open the store themselves while no server runs (`mailroom tasks list`, `token create`), each
 * for a moment; a server that starts in such a moment waits for it to pass.
 */

import { type FullStore, openStore } from "../store/index.js";
import type { Settings } from "./catalog.js";
import { type Notify, retryWhileLocked } from "./control/wait-for-lock.js";

/** @throws MailroomError `store_locked` when a server runs there already, or the process that has it open does not close it */
export async function openServerStore(
  data: string | undefined,
  { store: { durability } }: Settings,
  notify: Notify,
): Promise<FullStore> {
  if (data === undefined) return openStore({ path: ":memory:" });
  return retryWhileLocked(
    notify,
    () => openStore({ directory: data, durability }),
    async () => (await import("./control/connect-local.js")).isServerRunning(data),
  );
}
