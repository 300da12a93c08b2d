/** The way to a server's MAP: one that was named, else the one that runs here (decisions C4). */
import { WebSocket } from "ws";
import { loadConfig, type Settings } from "../config/index.js";
import { parseAddress } from "./connect.js";
import { controlPath } from "./control/path.js";
import { type LocalServer, reachLocalServer } from "./control/reach.js";
import type { PlaceOptions } from "./options.js";
import { dataDirectoryOf, flagsOf } from "./place.js";
import type { Terminal } from "./terminal.js";

export interface MapOptions extends PlaceOptions {
  readonly url?: string;
  readonly token?: string;
  /** On this machine: whom to speak for, `role:id`. */
  readonly as?: string;
}

/** To a server, or to a data directory on which none runs. */
export type MapWay = { readonly settings: Settings } & (
  | { readonly url: string; open(): WebSocket }
  | { readonly url: undefined; readonly data: string }
);

/** @param reach how the server that runs here is found */
export async function wayToMap(
  options: MapOptions,
  terminal: Terminal,
  reach: (data: string) => Promise<LocalServer | undefined> = reachLocalServer,
): Promise<MapWay> {
  const directory = process.cwd();
  const { settings, rows } = loadConfig({ flags: flagsOf(options), env: terminal.env, directory });
  if (rows.some(({ key, source }) => key === "client.url" && source.from !== "default")) {
    const { url, token } = parseAddress(settings.client.url, settings.client.token);
    return way(`${url.replace(/^http/, "ws").replace(/\/$/, "")}/map`, token, settings);
  }
  const data = await dataDirectoryOf(settings, directory);
  const server = await reach(data);
  await server?.close();
  const path = server === undefined ? undefined : controlPath(data);
  if (path === undefined) return { url: undefined, data, settings };
  return way(`ws+unix:${path}:/map`, options.as, settings);
}

function way(url: string, bearer: string | undefined, settings: Settings): MapWay {
  return {
    url,
    settings,
    open: () =>
      new WebSocket(url, bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } }),
  };
}
