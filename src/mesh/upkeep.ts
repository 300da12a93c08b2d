/** Memory and disk follow what still matters, without anybody having to think of it. */
import { purgeFinished } from "../outbox/index.js";
import { MESH_QUEUE, type MeshCore } from "./core.js";
import type { Purge } from "./writes.js";

/** How often what is no longer needed is forgotten, and how long outcomes of deliveries are kept. */
const PAUSE = 86_400_000;
const SOON = 600_000;
const OUTCOMES_KEPT = 30 * 86_400_000;
/** Replay records outlast the time for which a sender tries: it signs anew, under the same id (decisions G5). */
const SEEN_MARGIN = 3_600_000;

export type PurgeInput = Pick<Purge, "deletedBefore" | "archivedBefore" | "settledBefore">;

export class Upkeep {
  readonly #core: MeshCore;
  #cancel: (() => void) | undefined;

  constructor(core: MeshCore) {
    this.#core = core;
  }

  /** Also for who is started anew every day: soon, but not while there is enough to do. */
  start(pause = SOON): void {
    const { clock, report } = this.#core.parts;
    this.#cancel = clock.after(pause, () => {
      this.start(PAUSE);
      this.purge(this.#retired()).catch((cause: unknown) =>
        report({ code: "mesh_purge", message: "old records could not be removed", cause }),
      );
    });
  }

  stop(): void {
    this.#cancel?.();
  }

  /** Forgets replay records that no longer matter and, on demand, messages that were deleted or archived. */
  async purge(input: PurgeInput = {}): Promise<void> {
    const { now, parts } = this.#core;
    const { freshness, deadline } = parts.options;
    const seenBefore = now - freshness.behind - deadline - SEEN_MARGIN;
    const purge: Purge = { kind: "mesh.purge", seenBefore, ...input };
    await parts.store.commit({ appends: [], rows: [purge, purgeFinished(MESH_QUEUE, now - OUTCOMES_KEPT)] });
  }

  /** What the settings keep no longer. */
  #retired(): PurgeInput {
    const { now, parts } = this.#core;
    const { retention } = parts.options;
    return retention === undefined ? {} : { settledBefore: now - retention };
  }
}
