/** Ports for servers that must keep theirs over restarts. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the range from which systems take ports for outgoing connections and for servers that ask for any port, so that
 * nothing else takes one between this check and its use. Each worker has its own part of the range.
 */
const FIRST = 11_000;
const PER_WORKER = 1_000;
const WORKERS = 20;

const worker = Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS;
let next = randomInt(PER_WORKER);

export async function freePort(): Promise<number> {
  for (let tried = 0; tried < PER_WORKER; tried++) {
    const port = FIRST + worker * PER_WORKER + (next++ % PER_WORKER);
    if (await isFree(port)) return port;
  }
  throw new Error("no port is free");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
