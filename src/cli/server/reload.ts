/** `--reload`: takes a changed swarm file into use without ending anything that runs (decisions B17). */
import { type FSWatcher, watch } from "node:fs";
import { basename, dirname } from "node:path";
import type { SwarmDefinition } from "../../engine/definition.js";
import type { Mailroom } from "../../library/mailroom.js";

export interface ReloadOptions {
  readonly file: string;
  readonly mailroom: Mailroom;
  /** Reads the file anew. */
  readonly load: () => Promise<SwarmDefinition>;
  readonly say: (line: string) => void;
}

/** Editors write a file in several steps. */
const SETTLE = 100;

/** @returns a function that stops it */
export function reloadOnChange({ file, mailroom, load, say }: ReloadOptions): () => void {
  let timer: NodeJS.Timeout | undefined;
  const reload = async (): Promise<void> => {
    try {
      const definition = await load();
      if (definition.name !== mailroom.swarm.name) {
        say(`not reloaded: the swarm is now called '${definition.name}'; start the server again`);
        return;
      }
      mailroom.runtime.redefine(definition);
      say(`reloaded ${file}`);
    } catch (error) {
      say(`not reloaded: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  // The directory and not the file: many editors put a new file in the old one's place.
  const watcher: FSWatcher = watch(dirname(file), (_event, name) => {
    if (name !== null && name !== basename(file)) return;
    clearTimeout(timer);
    timer = setTimeout(() => void reload(), SETTLE);
  });
  return () => {
    clearTimeout(timer);
    watcher.close();
  };
}
