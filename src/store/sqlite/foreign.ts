import { statSync } from "node:fs";
import type { Clock } from "../../base/index.js";
import type { Database } from "./driver.js";

/**
 * Detects writes of another connection and then rereads what is cached. The lock should prevent them; but a lock file
 * can be removed, and a stale writer's appends must be rejected as stale.
 */
export class ForeignWrites {
  readonly #version;
  readonly #reload: () => void;
  #seen: number | undefined;

  constructor(db: Database, reload: () => void) {
    this.#version = db.prepare<[], number>("PRAGMA data_version").pluck();
    this.#reload = reload;
    this.#seen = this.#version.get();
  }

  check(): void {
    const version = this.#version.get();
    if (version === this.#seen) return;
    this.#reload();
    this.#seen = version;
  }
}

const CHECK_EVERY = 1_000;

/**
 * Detects that the open file was deleted or replaced. Writes would continue without an error, into a file that cannot
 * be found again.
 */
export function watchFile(path: string, clock: Clock): () => void {
  const identify = (): string | undefined => {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? undefined : `${found.dev}:${found.ino}`;
  };
  const opened = identify();
  let checked = clock.now();
  return () => {
    const now = clock.now();
    if (Math.abs(now - checked) < CHECK_EVERY) return;
    checked = now;
    const found = identify();
    if (found === opened) return;
    throw new Error(
      `${path} was ${found === undefined ? "deleted" : "replaced"} while it was in use. ` +
        "Restore a backup, or start with another data directory",
    );
  };
}
