/** `mailroom swarms`: the other swarms that a running server knows. */
import type { MailClient, RemoteSwarm, SwarmPing } from "../../client/index.js";
import { loadConfig } from "../../config/index.js";
import { defaultReference, variableIn } from "../../federation/registry/token.js";
import { clientFor, parseAddress } from "../connect.js";
import { requireLocalServer } from "../control/patience.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import type { PlaceOptions } from "../options.js";
import { dataDirectoryOf, flagsOf } from "../place.js";
import { swarmTable } from "../swarm-table.js";
import { harmless, type Terminal } from "../terminal.js";

export interface SwarmOptions extends PlaceOptions {
  readonly url?: string;
  readonly token?: string;
}

/** On what terms a swarm is made known. */
export interface TermsOptions extends SwarmOptions {
  readonly tokenEnv?: string;
  readonly authToken?: string;
  /** `--no-auth` makes it false. */
  readonly auth: boolean;
  readonly volatile?: boolean;
}

const NONE_KNOWN = "no other swarm is registered: 'mailroom swarms add' makes one known";

export async function listSwarms(options: SwarmOptions, terminal: Terminal): Promise<ExitCode> {
  return atServer(options, terminal, async (client) => {
    const swarms = await othersOf(client);
    if (options.json === true) terminal.json({ swarms });
    else if (swarms.length === 0) terminal.note(NONE_KNOWN);
    else for (const line of swarmTable(swarms, terminal)) terminal.out(line);
    return EXIT.ok;
  });
}

export async function addSwarm(
  name: string,
  baseUrl: string,
  options: TermsOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const terms = termsFor(name, options);
  return atServer(options, terminal, async (client) => {
    await client.registerSwarm({ name, baseUrl, ...terms });
    return showAdded(client, name, options, terminal);
  });
}

export const removeSwarm = confirmed("removed", (client, name) => client.admin.unregisterSwarm(name));

export async function pingSwarms(
  name: string | undefined,
  options: SwarmOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  return atServer(options, terminal, async (client) => {
    const names = name === undefined ? (await othersOf(client)).map((swarm) => swarm.swarm_name) : [name];
    // All at once: one that hangs does not hold up the others.
    const pings = await Promise.all(names.map((one) => client.admin.pingSwarm(one)));
    if (options.json === true) terminal.json({ swarms: pings });
    else if (pings.length === 0) terminal.note(NONE_KNOWN);
    else for (const ping of pings) terminal.out(pingLine(ping, terminal));
    return pings.every(({ ok }) => ok) ? EXIT.ok : EXIT.failure;
  });
}

export async function listProposals(options: SwarmOptions, terminal: Terminal): Promise<ExitCode> {
  return atServer(options, terminal, async (client) => {
    const proposals = await client.admin.getSwarmProposals();
    if (options.json === true) terminal.json({ proposals });
    else if (proposals.length === 0) terminal.note("nothing is proposed");
    for (const { swarm_name, base_url, source, proposed_at } of options.json === true ? [] : proposals) {
      const when = proposed_at.slice(0, 10);
      terminal.out(harmless(`${swarm_name}  ${base_url}  said by ${source} on ${when}`));
    }
    return EXIT.ok;
  });
}

export async function acceptProposal(
  name: string,
  options: TermsOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const terms = termsFor(name, options);
  return atServer(options, terminal, async (client) => {
    await client.admin.acceptSwarmProposal(name, terms);
    return showAdded(client, name, options, terminal);
  });
}

export const rejectProposal = confirmed("rejected", (client, name) => client.admin.rejectSwarmProposal(name));

/** A command about one swarm that the server answers with a receipt; to people, a word says as much. */
function confirmed(word: string, ask: (client: MailClient, name: string) => Promise<object>) {
  return (name: string, options: SwarmOptions, terminal: Terminal): Promise<ExitCode> =>
    atServer(options, terminal, async (client) => {
      const receipt = await ask(client, name);
      if (options.json === true) terminal.json(receipt);
      else terminal.out(word);
      return EXIT.ok;
    });
}

function termsFor(name: string, options: TermsOptions) {
  const authToken = tokenFor(name, options);
  return { volatile: options.volatile === true, ...(authToken !== undefined && { authToken }) };
}

/** What the server shall use as its token: a reference, unless somebody insists. @throws CliError */
function tokenFor(name: string, { tokenEnv, authToken, auth }: TermsOptions): string | undefined {
  const given = [tokenEnv !== undefined, authToken !== undefined, !auth].filter(Boolean).length;
  if (given > 1) {
    throw new CliError("usage", "--token-env, --auth-token and --no-auth exclude each other", {
      exit: EXIT.usage,
    });
  }
  if (!auth) return undefined;
  if (authToken !== undefined) return authToken;
  if (tokenEnv === undefined) return defaultReference(name);
  const reference = `\${${tokenEnv}}`;
  if (variableIn(reference) !== undefined) return reference;
  throw new CliError("usage", `--token-env '${tokenEnv}' is not the name of an environment variable`, {
    exit: EXIT.usage,
    hint: "write the name alone, as in --token-env BETA_TOKEN",
  });
}

/** What came of it: a swarm that cannot be reached or written to yet is known all the same. */
async function showAdded(
  client: MailClient,
  name: string,
  options: SwarmOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const added = (await othersOf(client)).find((swarm) => swarm.swarm_name === name);
  if (added === undefined) throw new CliError("failure", `the server does not list '${name}'`);
  if (options.json === true) terminal.json(added);
  else for (const line of swarmTable([added], terminal)) terminal.out(line);
  if (added.is_active !== true) {
    terminal.note("it does not answer: it is inactive until a health check succeeds");
  }
  const variable = variableIn(added.auth_ref ?? "");
  if (added.auth_state === "needs token" && variable !== undefined) {
    terminal.note(`nothing can be sent to it yet: ${variable} is not set where the server runs`);
  }
  return EXIT.ok;
}

async function othersOf(client: MailClient): Promise<readonly RemoteSwarm[]> {
  const [info, swarms] = await Promise.all([client.ping(), client.getSwarms()]);
  const own = typeof info.swarm === "string" ? info.swarm : info.swarm?.name;
  return swarms.filter(({ swarm_name }) => swarm_name !== own);
}

function pingLine({ swarm_name, ok, latency, status, reason }: SwarmPing, { colours }: Terminal): string {
  const name = harmless(swarm_name);
  if (!ok) return `${name}  ${colours.red("no answer")}  ${harmless(reason ?? "")}`;
  const took = `${Math.round((latency ?? 0) * 1000)} ms`;
  return `${name}  ${colours.green(harmless(status ?? "ok"))}  ${took}`;
}

/** A server that was named, else the one that runs here. The registry is live: there is nothing to see without one. */
async function atServer(
  options: SwarmOptions,
  terminal: Terminal,
  work: (client: MailClient) => Promise<ExitCode>,
): Promise<ExitCode> {
  const directory = process.cwd();
  const { settings, rows } = loadConfig({ flags: flagsOf(options), env: terminal.env, directory });
  const elsewhere = rows.some(({ key, source }) => key === "client.url" && source.from !== "default");
  if (elsewhere) return work(clientFor(parseAddress(settings.client.url, settings.client.token)));
  const data = await dataDirectoryOf(settings, directory);
  const server = await requireLocalServer(data, (line) => terminal.note(line));
  try {
    return await work(server.client());
  } finally {
    await server.close();
  }
}
