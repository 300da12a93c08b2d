/** `--reload`: applies a changed swarm file without ending running tasks (decision B17). */

import { type FSWatcher, watch } from "node:fs";
import { basename, dirname } from "node:path";
import { messageOf } from "../base/index.js";
import type { SwarmDefinition } from "../engine/index.js";

/** What `reloadOnChange` watches and notifies. */
export interface ReloadOptions {
  readonly file: string;
  /** Name of the swarm that is served: another one cannot take its place. */
  readonly swarm: string;
  /** Reads the file again. */
  readonly load: () => Promise<SwarmDefinition>;
  /** Puts what was read in force. */
  readonly use: (definition: SwarmDefinition) => Promise<void>;
  readonly say: (line: string) => void;
}

/** Editors write a file in several steps. */
const SETTLE = 100;

/**
 * Reloads the swarm file when it changes. A file with problems is reported, and the definition in use stays.
 * @returns a function that stops it
 * @example
 * const stop = reloadOnChange({ file, swarm: swarm.name, load, use: (next) => server.useSwarm(next), say: console.log });
 */
export function reloadOnChange({ file, swarm, load, use, say }: ReloadOptions): () => void {
  let timer: NodeJS.Timeout | undefined;
  let reloading = false;
  let changed = false;
  let stopped = false;
  const reload = async (): Promise<void> => {
    try {
      const definition = await load();
      const isOther = definition.name !== swarm;
      if (isOther) say(`not reloaded: the swarm is now called '${definition.name}'; start the server again`);
      if (isOther || stopped) {
        await definition.close?.();
        return;
      }
      await use(definition);
      say(`reloaded ${file}`);
    } catch (error) {
      say(`not reloaded: ${messageOf(error)}`);
    }
  };
  /** One after the other: what was read first may take longer, and must not win over what was read later. */
  const onChange = async (): Promise<void> => {
    changed = true;
    if (reloading) return;
    reloading = true;
    while (changed && !stopped) {
      changed = false;
      await reload();
    }
    reloading = false;
  };
  // The directory and not the file: many editors put a new file in the old one's place.
  const watcher: FSWatcher = watch(dirname(file), (_event, name) => {
    if (name !== null && name !== basename(file)) return;
    clearTimeout(timer);
    timer = setTimeout(() => void onChange(), SETTLE);
  });
  return () => {
    stopped = true;
    clearTimeout(timer);
    watcher.close();
  };
}
