/**
 * The server's store. Commands open the store themselves while no server runs (`mailroom tasks list`, `token create`), each
 * for a moment; a server that starts in such a moment waits for it to pass.
 */
import type { Settings } from "../../config/index.js";
import { type FullStore, openStore } from "../../store/index.js";
import { patiently, type Say } from "../control/patience.js";
import { isServerRunning } from "../control/reach.js";

/** @throws StoreLockedError when a server runs there already, or whoever has it open does not leave it */
export async function openServerStore(
  data: string | undefined,
  { store: { durability } }: Settings,
  say: Say,
): Promise<FullStore> {
  if (data === undefined) return openStore({ path: ":memory:" });
  return patiently(
    say,
    () => openStore({ directory: data, durability }),
    () => isServerRunning(data),
  );
}
