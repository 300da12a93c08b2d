/**
 * One process at a time has a data directory open: a server, which accepts requests as soon as it is ready, or a command,
 * which ends soon. A process that finds the directory locked retries for a while.
 */
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { lockOf } from "../../store/index.js";
import type { LocalServer } from "./connect-local.js";

/** Milliseconds. Commands are done, and servers serve, long before. */
const LONGEST_WAIT = 5_000;
const LOOK_EVERY = 50;

type Lock = NonNullable<ReturnType<typeof lockOf>>;

export type Notify = (line: string) => void;

/**
 * @param notify called once with what is waited for
 * @param isVain whether the process that holds the lock will keep it
 * @throws MailroomError `store_locked` when the lock is not released
 */
export async function retryWhileLocked<T>(
  notify: Notify,
  attempt: () => Promise<T>,
  isVain: () => Promise<boolean> = async () => false,
): Promise<T> {
  const deadline = performance.now() + LONGEST_WAIT;
  let said = false;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const lock = lockOf(error);
      if (lock === undefined || performance.now() >= deadline) throw error;
      if (await isVain()) throw error;
      if (!said) notify(waitingFor(lock));
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
  notify: Notify,
  withServer: (server: LocalServer) => T | Promise<T>,
  without: () => Promise<T>,
): Promise<T> {
  return retryWhileLocked(notify, async () => {
    const { reachLocalServer } = await import("./connect-local.js");
    const server = await reachLocalServer(data);
    return server === undefined ? without() : withServer(server);
  });
}

/** For commands that can do nothing without one. @throws MailroomError `no_server` */
export async function requireLocalServer(data: string, notify: Notify): Promise<LocalServer> {
  try {
    return await atServerOr(
      data,
      notify,
      (server) => server,
      async () => {
        const { assertNotLocked } = await import("../../store/index.js");
        assertNotLocked(data);
        const { noServerOn } = await import("./connect-local.js");
        throw noServerOn(data);
      },
    );
  } catch (error) {
    const lock = lockOf(error);
    if (lock === undefined) throw error;
    const { noServerOn } = await import("./connect-local.js");
    throw noServerOn(data, nameOf(lock));
  }
}

function waitingFor(held: Lock): string {
  const data = dirname(held.lock);
  return `${nameOf(held)} has ${data} open, and no server answers there; waiting up to ${LONGEST_WAIT / 1000} s for it`;
}

function nameOf({ holder }: Lock): string {
  return holder === undefined ? "another process" : `process ${holder.pid} on ${holder.host}`;
}
