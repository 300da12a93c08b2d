/** Loads swarm files with the default built-ins, the examples included. */
import { withExamples } from "../demo/index.js";
import * as swarm from "../swarm/index.js";

/** Everything that `mail:<name>` can name in a swarm file. */
export function defaultBuiltins(options?: swarm.BuiltinOptions): swarm.Builtins {
  return withExamples(swarm.defaultBuiltins(options));
}

/**
 * Loads one swarm of a file: the named one, or the only one. Modules of other swarms are not loaded.
 * @throws MailroomError `bad_swarm_file` with every problem and its location.
 * @example
 * const { definition } = await loadSwarm("swarms.json");
 * const mailroom = await Mailroom.open({ swarm: definition });
 */
export function loadSwarm(
  file: string,
  name?: string,
  options: swarm.LoadOptions = {},
): Promise<swarm.LoadedSwarm> {
  return swarm.loadSwarm(file, name, { builtins: defaultBuiltins(), ...options });
}

/**
 * Loads every swarm of a file.
 * @throws MailroomError `bad_swarm_file` with every problem and its location.
 * @example
 * for (const { definition } of await loadSwarms("swarms.json")) console.log(definition.name);
 */
export function loadSwarms(
  file: string,
  options: swarm.LoadOptions = {},
): Promise<readonly swarm.LoadedSwarm[]> {
  return swarm.loadSwarms(file, { builtins: defaultBuiltins(), ...options });
}

/**
 * Loads every swarm from the text of a swarm file.
 * @throws MailroomError `bad_swarm_file` with every problem and its location.
 * @example
 * const [first] = await loadSwarmsFromText(text, { directory: "./swarms" });
 */
export function loadSwarmsFromText(
  text: string,
  options: swarm.TextOptions = {},
): Promise<readonly swarm.LoadedSwarm[]> {
  return swarm.loadSwarmsFromText(text, { builtins: defaultBuiltins(), ...options });
}
