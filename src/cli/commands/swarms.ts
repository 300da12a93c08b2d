/** `mailroom swarms`: the other swarms in a running server's registry. */
import { MailroomError } from "../../base/index.js";
import type { MailClient, RemoteSwarm, SwarmPing } from "../../client/index.js";
import { defaultReference, variableIn } from "../../federation/index.js";
import { requireLocalServer } from "../../server/control.js";
import { loadConfig } from "../../server/index.js";
import { clientFor, parseAddress } from "../connect.js";
import { dataDirectoryOf, flagsOf } from "../data-directory.js";
import { EXIT, type ExitCode } from "../exit.js";
import type { DataOptions } from "../options.js";
import { swarmTable } from "../tables.js";
import { escapeControlCharacters, type Terminal } from "../terminal.js";

export interface SwarmOptions extends DataOptions {
  readonly url?: string;
  readonly token?: string;
}

/** The token and lifetime of a registered swarm. */
export interface TermsOptions extends SwarmOptions {
  readonly tokenEnv?: string;
  readonly authToken?: string;
  /** `--no-auth` makes it false. */
  readonly auth: boolean;
  readonly volatile?: boolean;
}

const NONE_KNOWN = "no other swarm is registered: add one with 'mailroom swarms add'";

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
    // Concurrently, so that a hanging swarm does not delay the others.
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
    else if (proposals.length === 0) terminal.note("no proposals");
    for (const { swarm_name, base_url, source, proposed_at } of options.json === true ? [] : proposals) {
      const when = proposed_at.slice(0, 10);
      terminal.out(escapeControlCharacters(`${swarm_name}  ${base_url}  listed by ${source} on ${when}`));
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

/** Runs a command about one swarm; prints the server's receipt, or one word. */
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

/** Returns the token reference, or a literal token on request. @throws MailroomError */
function tokenFor(name: string, { tokenEnv, authToken, auth }: TermsOptions): string | undefined {
  const given = [tokenEnv !== undefined, authToken !== undefined, !auth].filter(Boolean).length;
  if (given > 1) {
    throw new MailroomError("usage", "--token-env, --auth-token and --no-auth exclude each other");
  }
  if (!auth) return undefined;
  if (authToken !== undefined) return authToken;
  if (tokenEnv === undefined) return defaultReference(name);
  const reference = `\${${tokenEnv}}`;
  if (variableIn(reference) !== undefined) return reference;
  throw new MailroomError("usage", `--token-env '${tokenEnv}' is not the name of an environment variable`, {
    details: { hint: "write the name alone, as in --token-env BETA_TOKEN" },
  });
}

/** Shows the result: a swarm that is unreachable or has no token yet is registered too. */
async function showAdded(
  client: MailClient,
  name: string,
  options: SwarmOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const added = (await othersOf(client)).find((swarm) => swarm.swarm_name === name);
  if (added === undefined) throw new MailroomError("failure", `the server does not list '${name}'`);
  if (options.json === true) terminal.json(added);
  else for (const line of swarmTable([added], terminal)) terminal.out(line);
  if (added.is_active !== true) {
    terminal.note("it does not answer: it is inactive until a health check succeeds");
  }
  const variable = variableIn(added.auth_ref ?? "");
  if (added.auth_state === "needs token" && variable !== undefined) {
    terminal.note(`no mail can be sent to it yet: ${variable} is not set in the server's environment`);
  }
  return EXIT.ok;
}

async function othersOf(client: MailClient): Promise<readonly RemoteSwarm[]> {
  const [info, swarms] = await Promise.all([client.ping(), client.getSwarms()]);
  const own = typeof info.swarm === "string" ? info.swarm : info.swarm?.name;
  return swarms.filter(({ swarm_name }) => swarm_name !== own);
}

function pingLine({ swarm_name, ok, latency, status, reason }: SwarmPing, { colors }: Terminal): string {
  const name = escapeControlCharacters(swarm_name);
  if (!ok) return `${name}  ${colors.red("no answer")}  ${escapeControlCharacters(reason ?? "")}`;
  const took = `${Math.round((latency ?? 0) * 1000)} ms`;
  return `${name}  ${colors.green(escapeControlCharacters(status ?? "ok"))}  ${took}`;
}

/** Calls the given server, or the local one. The registry is live, so a server is required. */
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
