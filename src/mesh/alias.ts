/** Each mesh swarm has a local name that agents of the MAIL swarm write after an `@` (decision G3). */
import { MailroomError } from "../base/index.js";
import { checkSwarmName } from "../mail/index.js";

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

/** @throws MailroomError when the alias is invalid or taken */
export function checkAlias(alias: string, isTaken: (alias: string) => boolean): string {
  const wrong = checkSwarmName(alias);
  if (wrong !== undefined) throw new MailroomError("invalid_name", wrong);
  if (isTaken(alias)) throw new MailroomError("alias_taken", `the alias ${alias} is in use: choose another`);
  return alias;
}
