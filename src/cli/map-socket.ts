/** Connects to MAP on the given server, or on the local one (decision C4). */
import { WebSocket } from "ws";
import { controlPath, type LocalServer, reachLocalServer } from "../server/control.js";
import { loadConfig, type Settings } from "../server/index.js";
import { parseAddress } from "./connect.js";
import { dataDirectoryOf, flagsOf } from "./data-directory.js";
import type { DataOptions } from "./options.js";
import type { Terminal } from "./terminal.js";

export interface MapOptions extends DataOptions {
  readonly url?: string;
  readonly token?: string;
  /** Identity on this machine, `role:id`. */
  readonly as?: string;
}

/** A server, or a data directory without a running server. */
export type MapTarget = { readonly settings: Settings } & (
  | { readonly url: string; open(): WebSocket }
  | { readonly url: undefined; readonly data: string }
);

/**
 *
 * @param reach finds the local server
 */
export async function findMapTarget(
  options: MapOptions,
  terminal: Terminal,
  reach: (data: string) => Promise<LocalServer | undefined> = reachLocalServer,
): Promise<MapTarget> {
  const directory = process.cwd();
  const { settings, rows } = loadConfig({ flags: flagsOf(options), env: terminal.env, directory });
  if (rows.some(({ key, source }) => key === "client.url" && source.from !== "default")) {
    const { url, token } = parseAddress(settings.client.url, settings.client.token);
    return target(`${url.replace(/^http/, "ws").replace(/\/$/, "")}/map`, token, settings);
  }
  const data = await dataDirectoryOf(settings, directory);
  const server = await reach(data);
  await server?.close();
  const path = server === undefined ? undefined : controlPath(data);
  if (path === undefined) return { url: undefined, data, settings };
  return target(`ws+unix:${path}:/map`, options.as, settings);
}

function target(url: string, bearer: string | undefined, settings: Settings): MapTarget {
  return {
    url,
    settings,
    open: () =>
      new WebSocket(url, bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } }),
  };
}
