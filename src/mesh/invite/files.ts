/** The invites that we joined with: secrets, so files of mode 0600 and never rows (decisions C7). */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../../files/durable.js";

export interface InviteFiles {
  keep(swarmId: string, token: string): void;
  read(swarmId: string): string | undefined;
  forget(swarmId: string): void;
}

/** Swarm ids were checked to be UUIDs, so they cannot lead out of the directory. */
export function inviteFiles(directory: string): InviteFiles {
  const path = (swarmId: string): string => join(directory, `${swarmId}.invite`);
  return {
    keep: (swarmId, token) => replaceFile(path(swarmId), token),
    read: (swarmId) => {
      try {
        return readFileSync(path(swarmId), "utf8");
      } catch {
        return undefined;
      }
    },
    forget: (swarmId) => rmSync(path(swarmId), { force: true }),
  };
}
