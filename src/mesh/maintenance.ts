/** Removes expired records periodically. */
import { purgeFinished } from "../outbox/index.js";
import { MESH_QUEUE, type MeshContext } from "./context.js";
import type { Purge } from "./writes.js";

/** Interval between runs, delay of the first run, and retention of delivery outcomes. */
const PAUSE = 86_400_000;
const SOON = 600_000;
const OUTCOMES_KEPT = 30 * 86_400_000;
/** Replay records outlast the sender's retries, which re-sign a message under the same id (decision G5). */
const SEEN_MARGIN = 3_600_000;

export type PurgeInput = Pick<Purge, "deletedBefore" | "archivedBefore" | "settledBefore">;

export class Maintenance {
  readonly #context: MeshContext;
  #cancel: (() => void) | undefined;

  constructor(context: MeshContext) {
    this.#context = context;
  }

  /** First run shortly after startup, so that servers restarted daily are cleaned too. */
  start(pause = SOON): void {
    const { clock, report } = this.#context.parts;
    this.#cancel = clock.after(pause, () => {
      this.start(PAUSE);
      this.purge(this.#retired()).catch((cause: unknown) =>
        report({ code: "mesh_purge", message: "expired records could not be removed", cause }),
      );
    });
  }

  stop(): void {
    this.#cancel?.();
  }

  /** Removes expired replay records and, on request, deleted or archived messages. */
  async purge(input: PurgeInput = {}): Promise<void> {
    const { now, parts } = this.#context;
    const { freshness, deadline } = parts.options;
    const seenBefore = now - freshness.behind - deadline - SEEN_MARGIN;
    const purge: Purge = { kind: "mesh.purge", seenBefore, ...input };
    await parts.store.commit({ appends: [], rows: [purge, purgeFinished(MESH_QUEUE, now - OUTCOMES_KEPT)] });
  }

  /** What exceeds the configured retention. */
  #retired(): PurgeInput {
    const { now, parts } = this.#context;
    const { retention } = parts.options;
    return retention === undefined ? {} : { settledBefore: now - retention };
  }
}
