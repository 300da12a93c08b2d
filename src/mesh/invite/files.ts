/** The invites that this agent joined with: secrets, so files of mode 0600 and never rows (decision C7). */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../../base/node.js";

export interface InviteFiles {
  keep(swarmId: string, token: string): void;
  read(swarmId: string): string | undefined;
  forget(swarmId: string): void;
  /** Keeps the URL of a request that the master has to approve. */
  keepPending(swarmId: string, inviteUrl: string): void;
  readPending(swarmId: string): string | undefined;
  forgetPending(swarmId: string): void;
  /** The swarms of pending requests. */
  pending(): readonly string[];
}

const PENDING = ".pending";

/** Swarm ids are validated UUIDs, so the path stays inside the directory. */
export function inviteFiles(directory: string): InviteFiles {
  const path = (swarmId: string): string => join(directory, `${swarmId}.invite`);
  const pendingPath = (swarmId: string): string => join(directory, `${swarmId}${PENDING}`);
  return {
    keep: (swarmId, token) => replaceFile(path(swarmId), token),
    read: (swarmId) => textOf(path(swarmId)),
    forget: (swarmId) => rmSync(path(swarmId), { force: true }),
    keepPending: (swarmId, inviteUrl) => replaceFile(pendingPath(swarmId), inviteUrl),
    readPending: (swarmId) => textOf(pendingPath(swarmId)),
    forgetPending: (swarmId) => rmSync(pendingPath(swarmId), { force: true }),
    pending: () =>
      existsSync(directory)
        ? readdirSync(directory)
            .filter((name) => name.endsWith(PENDING))
            .map((name) => name.slice(0, -PENDING.length))
        : [],
  };
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
