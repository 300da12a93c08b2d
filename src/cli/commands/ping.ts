import { clientFor, parseAddress } from "../connect.js";
import { EXIT, type ExitCode } from "../exit.js";
import { type CommonOptions, millisecondsOf } from "../options.js";
import { escapeControlCharacters, type Terminal } from "../terminal.js";

export interface PingOptions extends CommonOptions {
  readonly timeout: string;
}

export async function runPing(target: string, options: PingOptions, terminal: Terminal): Promise<ExitCode> {
  const address = parseAddress(target);
  const client = clientFor(address, { timeout: millisecondsOf(options.timeout), retries: 0 });
  const started = performance.now();
  const health = await client.getHealth();
  const ms = Math.round(performance.now() - started);
  if (options.json === true) terminal.json({ ...health, url: address.url, ms });
  else {
    const swarm = health.swarm_name ?? "unknown";
    terminal.out(
      `${escapeControlCharacters(health.status)}: swarm ${escapeControlCharacters(swarm)} at ${address.url} (${ms} ms)`,
    );
  }
  return EXIT.ok;
}
