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
 */
export function loadSwarms(
  file: string,
  options: swarm.LoadOptions = {},
): Promise<readonly swarm.LoadedSwarm[]> {
  return swarm.loadSwarms(file, { builtins: defaultBuiltins(), ...options });
}

/** The same from text. */
export function loadSwarmsFromText(
  text: string,
  options: swarm.TextOptions = {},
): Promise<readonly swarm.LoadedSwarm[]> {
  return swarm.loadSwarmsFromText(text, { builtins: defaultBuiltins(), ...options });
}
