/**
 * A data directory is open in one process at a time: in a server, which can be spoken to as soon as it serves, or in a
 * command, which is done in a moment. Whoever comes in between tries again for a while.
 */
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
// Not the whole room: commands that find a server do without the database.
import { StoreLockedError } from "../../store/errors.js";
import { type LocalServer, noServerOn, reachLocalServer } from "./reach.js";

/** Milliseconds. Commands are done, and servers serve, long before. */
const LONGEST_WAIT = 5_000;
const LOOK_EVERY = 50;

export type Say = (line: string) => void;

/**
 * @param say told once what is waited for
 * @param isVain asked while somebody has the data open: whether they will keep it
 * @throws StoreLockedError when they do not leave it
 */
export async function patiently<T>(
  say: Say,
  attempt: () => Promise<T>,
  isVain: () => Promise<boolean> = async () => false,
): Promise<T> {
  const deadline = performance.now() + LONGEST_WAIT;
  let said = false;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof StoreLockedError) || performance.now() >= deadline) throw error;
      if (await isVain()) throw error;
      if (!said) say(waitingFor(error));
      said = true;
    }
    await sleep(LOOK_EVERY);
  }
}

/**
 * With the server that runs on this data directory, else without one.
 * @param without opens the data before it does anything else
 */
export function atServerOr<T>(
  data: string,
  say: Say,
  withServer: (server: LocalServer) => T | Promise<T>,
  without: () => Promise<T>,
): Promise<T> {
  return patiently(say, async () => {
    const server = await reachLocalServer(data);
    return server === undefined ? without() : withServer(server);
  });
}

/** For commands that can do nothing without one. @throws CliError */
export async function requireLocalServer(data: string, say: Say): Promise<LocalServer> {
  try {
    return await atServerOr(
      data,
      say,
      (server) => server,
      async () => {
        const { assertNotLocked } = await import("../../store/index.js");
        assertNotLocked(data);
        throw noServerOn(data);
      },
    );
  } catch (error) {
    throw error instanceof StoreLockedError ? noServerOn(data, nameOf(error)) : error;
  }
}

function waitingFor(error: StoreLockedError): string {
  const data = dirname(error.lock);
  return `${nameOf(error)} has ${data} open, and no server answers there; waiting up to ${LONGEST_WAIT / 1000} s for it`;
}

function nameOf({ holder }: StoreLockedError): string {
  return holder === undefined ? "another process" : `process ${holder.pid} on ${holder.host}`;
}
