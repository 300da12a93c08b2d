import { statSync } from "node:fs";
import type { Clock } from "../../journal/ports.js";
import type { Database } from "./driver.js";

/**
 * Notices that another connection has written: what is kept in memory is then read again. There should be none, because
 * of the lock; but a lock can be removed, and what a stale writer adds must be refused as stale.
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
 * Notices that the file was deleted or replaced while it is open. Writes would go on without an error, into a file that
 * nobody can find again.
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
        "Put a copy of it back, or start with another data directory",
    );
  };
}
