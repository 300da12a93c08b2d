/** Memory and disk follow what still matters, without anybody having to think of it. */
import { purgeFinished } from "../outbox/index.js";
import { MESH_QUEUE, type MeshCore } from "./core.js";
import type { MeshRowWrite } from "./writes.js";

/** How often what is no longer needed is forgotten, and how long outcomes of deliveries are kept. */
const PAUSE = 86_400_000;
const OUTCOMES_KEPT = 30 * 86_400_000;
/** Replay records outlast the window in which a timestamp is accepted. */
const SEEN_MARGIN = 3_600_000;

export interface PurgeInput {
  readonly deletedBefore?: number;
  readonly archivedBefore?: number;
}

export class Upkeep {
  readonly #core: MeshCore;
  #cancel: (() => void) | undefined;

  constructor(core: MeshCore) {
    this.#core = core;
  }

  start(): void {
    const { clock, report } = this.#core.parts;
    this.#cancel = clock.after(PAUSE, () => {
      this.start();
      this.purge().catch((cause: unknown) =>
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
    const seenBefore = now - parts.options.freshness.behind - SEEN_MARGIN;
    const purge: MeshRowWrite = { kind: "mesh.purge", seenBefore, ...input };
    await parts.store.commit({ appends: [], rows: [purge, purgeFinished(MESH_QUEUE, now - OUTCOMES_KEPT)] });
  }
}
