/** Where a server finds its swarm file and keeps its data (decision A1). */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Settings } from "./catalog.js";

export const DEMO_SWARM = "demo";
const DEFAULT_SWARM_FILE = "swarms.json";

/** The configured swarm file; nothing for the demonstration swarm. */
export function swarmFileOf(settings: Settings, directory: string): string | undefined {
  const { source } = settings.server.swarm;
  if (source !== undefined) return source;
  const file = resolve(directory, DEFAULT_SWARM_FILE);
  return existsSync(file) ? file : undefined;
}

export function dataDirectoryFor(swarm: string, directory: string): string {
  return resolve(directory, join(".mailroom", swarm));
}
