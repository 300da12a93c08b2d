/** A server as `mailroom server` puts it together, in this process. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningServer, startServer } from "../../src/cli/server/start.js";
import { loadConfig } from "../../src/config/index.js";

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly running: RunningServer;
}

/**
 * `toml` is the configuration beside the swarm file. It runs in development mode: tokens are `role:id`.
 * With a directory of the test's own it keeps its data there, and a second server finds them.
 */
export async function served(swarmFile: string, toml = "", own?: string): Promise<Served> {
  const directory = own ?? (await mkdtemp(join(tmpdir(), "mailroom-served-")));
  await writeFile(join(directory, "swarms.json"), swarmFile);
  await writeFile(join(directory, "mail.toml"), toml);
  const { settings } = loadConfig({
    flags: { dev: true, port: "0" },
    env: own === undefined ? { DATABASE_URL: "none" } : {},
    directory,
  });
  const running = await startServer(settings, directory);
  return {
    url: running.url,
    running,
    [Symbol.asyncDispose]: async () => {
      await running.close(0);
      if (own === undefined) await rm(directory, { recursive: true, force: true });
    },
  };
}
