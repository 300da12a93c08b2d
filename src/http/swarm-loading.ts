/** `/swarms/load` (decisions D5): another definition of the same swarm, in force until the configured one changes. */
import type { SwarmDefinition } from "../engine/definition.js";
import type { RowWrite } from "../engine/ports.js";
import type { LoadedSwarm, LoadOptions } from "../swarm/load.js";
import { loadSwarmsFromText } from "../swarm/load.js";
import type { Door } from "./door.js";
import { HttpError } from "./errors.js";
import type { LoadedSwarmPut, LoadedSwarmRemove } from "./state.js";

/** Nothing that a caller sends makes the server import code, unless it is configured to. */
const CLOSED: LoadOptions = { modules: false };

/**
 * Checks a swarm, writes it down and puts it in force.
 * @throws SwarmFileError when it is not valid
 * @throws HttpError `swarm_name_differs`
 */
export async function replaceSwarm(door: Door, text: string, rows: readonly RowWrite[]): Promise<void> {
  const { mailroom } = door;
  const { definition } = await read(door, text);
  try {
    if (definition.name !== mailroom.swarm.name) {
      throw new HttpError(
        "swarm_name_differs",
        `this server runs the swarm '${mailroom.swarm.name}': '${definition.name}' cannot take its place`,
      );
    }
    const row: LoadedSwarmPut = {
      kind: "http.swarm.put",
      loaded: { swarm: definition.name, text, replaces: door.configuredSwarm },
    };
    await mailroom.store.commit({ appends: [], rows: [row, ...rows] });
  } catch (error) {
    // Its MCP servers are connected already.
    await definition.close?.();
    throw error;
  }
  mailroom.runtime.redefine(definition);
}

/** Puts a configured definition in force that has changed since the start. What was loaded over HTTP is over with that. */
export async function useConfiguredSwarm(door: Door, definition: SwarmDefinition): Promise<void> {
  const { mailroom, kept } = door;
  if ((await kept.state.loadedSwarm(definition.name)) !== undefined) await forget(door, definition.name);
  door.configuredSwarm = definition.hash;
  mailroom.runtime.redefine(definition);
}

export type Restored = "none" | "restored" | "outdated" | "broken";

/** Puts a swarm that was loaded before the restart in force again, unless the configured one has changed since. */
export async function restoreLoadedSwarm(door: Door): Promise<Restored> {
  const { mailroom, kept } = door;
  const loaded = await kept.state.loadedSwarm(mailroom.swarm.name);
  if (loaded === undefined) return "none";
  if (loaded.replaces === door.configuredSwarm) {
    try {
      const { definition } = await read(door, loaded.text);
      mailroom.runtime.redefine(definition);
      return "restored";
    } catch (error) {
      // Settings may have become stricter since. The configured swarm serves, and the text is kept for its author.
      door.options.logger?.warn({ err: error }, "the swarm loaded over HTTP is not valid any more");
      return "broken";
    }
  }
  await forget(door, loaded.swarm);
  return "outdated";
}

async function forget({ mailroom }: Door, swarm: string): Promise<void> {
  const row: LoadedSwarmRemove = { kind: "http.swarm.remove", swarm };
  await mailroom.store.commit({ appends: [], rows: [row] });
}

async function read(door: Door, text: string): Promise<LoadedSwarm> {
  // A swarm file is a list of swarms; what is loaded is one of them.
  const list = /^\s*\{(?!\s*"(?:\$schema|swarms)"\s*:)/.test(text) ? `[${text}]` : text;
  const swarms = await loadSwarmsFromText(list, { ...CLOSED, ...door.options.loading, source: "json" });
  const [only, ...others] = swarms;
  if (only === undefined || others.length > 0) {
    await Promise.all(swarms.map(({ definition }) => definition.close?.()));
    throw new HttpError("bad_request", `json must hold one swarm, not ${swarms.length}`, {
      details: { field: "json" },
    });
  }
  return only;
}
