/** Commits a final outcome together with what the owner of the queue has to say about it. */
import { type Batch, RowConflictError, StaleAppendError, type Store } from "../engine/ports.js";
import type { FinalOutcome, OutboxFinish } from "./item.js";
import type { StoredItem } from "./ports.js";

export interface Final {
  readonly outcome: FinalOutcome;
  readonly attempts: number;
  readonly at: number;
  readonly reason?: string;
  /** What the handler learnt, for the owner's entries. In memory only. */
  readonly note?: unknown;
}

/** What the owner adds to the commit of an outcome. Asked again when its picture turns out to be out of date. */
export type Settle = (item: StoredItem, final: Final) => Promise<Batch | undefined> | Batch | undefined;

/** A writer that keeps being overtaken this often has another problem than bad luck. */
const TRIES = 8;

/** `false` when the item had its final outcome already, from another process. */
export async function commitFinal(
  store: Pick<Store, "commit">,
  item: StoredItem,
  final: Final,
  settle: Settle | undefined,
): Promise<boolean> {
  const { outcome, attempts, at, reason } = final;
  const finish: OutboxFinish = {
    kind: "outbox.finish",
    id: item.id,
    outcome,
    attempts,
    at,
    ...(reason !== undefined && { reason }),
  };
  for (let tries = 1; ; tries += 1) {
    const owners = await settle?.(item, final);
    try {
      // First, so that nothing of the owner's is tried for an item that is done.
      await store.commit({ appends: owners?.appends ?? [], rows: [finish, ...(owners?.rows ?? [])] });
      return true;
    } catch (error) {
      if (error instanceof RowConflictError && error.kind === finish.kind) return false;
      const overtaken = error instanceof StaleAppendError || error instanceof RowConflictError;
      if (!overtaken || tries >= TRIES) throw error;
    }
  }
}
