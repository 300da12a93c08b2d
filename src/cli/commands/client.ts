/** `mailroom client URL`: the prompt, or one of its commands. */
import { type MailClient, MailClientError, type WhoAmI } from "../../client/index.js";
import { loadConfig } from "../../server/index.js";
import { clientFor, interruptible, parseAddress } from "../connect.js";
import { flagsOf } from "../data-directory.js";
import { EXIT, type ExitCode } from "../exit.js";
import type { CommonOptions } from "../options.js";
import { runCommand } from "../repl/command.js";
import { runLoop } from "../repl/loop.js";
import { findCommand, helpLines, usageLines } from "../repl/table.js";
import { escapeControlCharacters, type Terminal } from "../terminal.js";

export interface ClientOptions extends CommonOptions {
  readonly config?: string;
  readonly token?: string;
  readonly apiKey?: string;
  readonly timeout?: string;
  readonly verbose?: boolean;
}

export async function runClient(
  target: string,
  words: readonly string[],
  options: ClientOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const [name, ...rest] = words;
  if (name === "help") {
    const [about] = rest;
    for (const line of about === undefined ? helpLines() : usageLines(about)) terminal.out(line);
    return EXIT.ok;
  }
  const { rows, settings } = loadConfig({
    flags: flagsOf(options),
    env: terminal.env,
    directory: process.cwd(),
  });
  const address = parseAddress(target, settings.client.token);
  // The default of an hour is for answers of the swarm, for which the client has its own timeout.
  const limited = rows.some(({ key, source }) => key === "client.timeout" && source.from !== "default");
  const client = clientFor(address, limited ? { timeout: settings.client.timeout } : {});
  const common = { client, terminal, json: options.json === true, verbose: settings.client.verbose };
  if (name !== undefined) return runOnce(name, rest, common);
  await runLoop({ ...common, caller: await greet(client, address.token, terminal) });
  return EXIT.ok;
}

async function runOnce(
  name: string,
  rest: readonly string[],
  common: { client: MailClient; terminal: Terminal; json: boolean; verbose: boolean },
): Promise<ExitCode> {
  const { signal, release } = interruptible();
  try {
    return await runCommand(findCommand(name, rest), rest, { ...common, signal });
  } finally {
    release();
  }
}

/** Continues without a caller if the token is invalid: the user can still type `login`. */
async function greet(
  client: MailClient,
  token: string | undefined,
  terminal: Terminal,
): Promise<WhoAmI | undefined> {
  const info = await client.ping();
  const swarm = typeof info.swarm === "string" ? info.swarm : info.swarm?.name;
  terminal.note(
    `swarm ${escapeControlCharacters(swarm ?? "?")} at ${client.url}; 'message TEXT' asks it something, 'help' lists the commands`,
  );
  try {
    return await client.whoami();
  } catch (error) {
    if (!(error instanceof MailClientError)) throw error;
    terminal.note(
      token === undefined ? "no token: type 'login TOKEN'" : `${error.detail}: type 'login TOKEN'`,
    );
    return undefined;
  }
}
