/** What `mailroom server` does: a server as its settings say, with its control socket and its first admin token. */
import { rmSync } from "node:fs";
import type { CreatedToken } from "../auth/index.js";
import { makeDirectories } from "../base/node.js";
import type { SwarmDefinition } from "../engine/index.js";
import type { AnyExtensionFactory } from "../extension/index.js";
import { type FullStore, openStore } from "../store/index.js";
import type { Settings } from "./catalog.js";
import { controlPath } from "./control/path.js";
import { type Notify, retryWhileLocked } from "./control/wait-for-lock.js";
import { createServer, type MailroomServer } from "./create.js";
import { dataDirectoryFor } from "./data-directory.js";
import { standardExtensions } from "./extensions.js";
import { type ServedSwarm, swarmSource } from "./swarm.js";

/** A server that listens. */
export interface RunningServer extends MailroomServer {
  readonly url: string;
  readonly swarm: Omit<ServedSwarm, "definition">;
  /** Whether commands on this machine can reach the server by its data directory. */
  readonly controlled: boolean;
  /** Created at the first start, and shown this once. */
  readonly firstToken: CreatedToken | undefined;
  /** How many unfinished tasks the last process left; they are recovered while the server answers requests. */
  readonly unfinishedTasks: number;
  /** Reads the swarm file again. */
  loadSwarm(): Promise<SwarmDefinition>;
}

/**
 * Does what `mailroom server` does: opens the data directory, listens, and opens the control socket.
 * @param notify receives a line when the start waits for another process
 * @param extensions as `loadServerConfig` returns them
 * @example
 * const { settings, extensions } = await loadServerConfig({ directory, env: process.env });
 * const server = await startServer(settings, directory, console.error, extensions);
 */
export async function startServer(
  settings: Settings,
  directory: string,
  notify: Notify = () => {},
  extensions: readonly AnyExtensionFactory[] = standardExtensions,
): Promise<RunningServer> {
  const source = await swarmSource(settings, directory);
  const data =
    settings.store.database === "memory"
      ? undefined
      : (settings.server.data ?? dataDirectoryFor(source.name, directory));
  const made = data === undefined ? undefined : makeDirectories(data, 0o700);
  const store = await openServerStore(data, settings, notify);
  const closeStore = () => store.close();
  try {
    const server = await createServer({ swarm: source, data: data ?? false, settings, store, extensions });
    return await start(server, settings, data, source.served, closeStore);
  } catch (error) {
    const isUnused = await store.position().then(
      (position) => position === 0,
      () => false,
    );
    await closeStore().catch(() => {});
    // A first start that fails, such as with a swarm file that names an unknown module, leaves nothing behind.
    if (made !== undefined && isUnused) rmSync(made, { recursive: true, force: true });
    throw error;
  }
}

async function start(
  server: MailroomServer,
  settings: Settings,
  data: string | undefined,
  served: () => Omit<ServedSwarm, "definition">,
  closeStore: () => Promise<void>,
): Promise<RunningServer> {
  const url = await server.listen();
  try {
    const path = data === undefined ? undefined : controlPath(data);
    if (path !== undefined) await server.openControl(path);
    // Last: it is created once, and a start that fails would show it to no one.
    const usesTokens = !settings.server.dev && settings.auth.mode.includes("token");
    const firstToken = usesTokens ? await server.tokens.ensureAdminToken() : undefined;
    return {
      ...server,
      get facts() {
        return server.facts;
      },
      url,
      swarm: served(),
      controlled: path !== undefined,
      firstToken,
      unfinishedTasks: await server.unfinished(),
      async close(grace) {
        await server.close(grace).finally(closeStore);
      },
    };
  } catch (error) {
    await server.close(0).catch(() => {});
    throw error;
  }
}

/**
 * Commands open the store themselves while no server runs (`mailroom tasks list`), each for a moment; a server that starts
 * in such a moment waits.
 * @throws MailroomError `store_locked` when a server already runs there, or another process does not release the lock
 */
async function openServerStore(
  data: string | undefined,
  { store: { durability } }: Settings,
  notify: Notify,
): Promise<FullStore> {
  if (data === undefined) return openStore({ path: ":memory:" });
  return retryWhileLocked(
    notify,
    () => openStore({ directory: data, durability }),
    async () => (await import("./control/connect-local.js")).isServerRunning(data),
  );
}
