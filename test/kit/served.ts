/** A server like `mailroom server`, in this process. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/server/catalog.js";
import { type RunningServer, startServer } from "../../src/server/start.js";

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly running: RunningServer;
}

/**
 * `toml` is the configuration file. Runs in development mode: tokens are `role:id`. With a directory, it stores its
 * data there for a second server.
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
