/** Decisions G3: each mesh swarm has a name that the agents of our MAIL swarm can write after an `@`. */
import { checkSwarmName } from "../mail/address.js";
import { MeshError } from "./errors.js";

/** `Lab Swarm` becomes `lab-swarm`, or `lab-swarm-2` if that is taken. */
export function suggestAlias(name: string, isTaken: (alias: string) => boolean): string {
  const base =
    name
      .normalize("NFKD")
      .toLowerCase()
      .replace(/[^a-z0-9]+/gu, "-")
      .replace(/^-+|-+$/gu, "")
      .slice(0, 48) || "swarm";
  const usable = (alias: string): boolean => checkSwarmName(alias) === undefined && !isTaken(alias);
  if (usable(base)) return base;
  for (let number = 2; ; number += 1) if (usable(`${base}-${number}`)) return `${base}-${number}`;
}

/** @throws MeshError when the operator's choice cannot be used. */
export function checkAlias(alias: string, isTaken: (alias: string) => boolean): string {
  const wrong = checkSwarmName(alias);
  if (wrong !== undefined) throw new MeshError("invalid_name", wrong);
  if (isTaken(alias)) throw new MeshError("alias_taken", `the alias ${alias} is in use: choose another`);
  return alias;
}
