/** Connects to the MCP servers that a swarm declares: their tools become actions of the swarm. */
import { resolve } from "node:path";
import type { McpServerOptions } from "../actions/index.js";
import type { Action } from "../engine/index.js";
import type { McpServerEntry, SwarmEntry, UnplacedProblem } from "../mail/index.js";
import { badReference } from "./references.js";
import { type Resolver, toProblem } from "./resolver.js";

export interface ConnectedServers {
  readonly actions: readonly Action[];
  /** Whether all servers are connected, so that all actions are known. */
  readonly complete: boolean;
  close(): Promise<void>;
}

export async function connectServers(
  swarm: SwarmEntry,
  resolver: Resolver,
  errors: UnplacedProblem[],
  warnings: UnplacedProblem[],
): Promise<ConnectedServers> {
  let loading = true;
  const servers = await Promise.all(
    Object.entries(swarm.mcp_servers).map(async ([name, entry]) => {
      const at = ["mcp_servers", name];
      try {
        return await resolver.mcp({
          ...optionsOf(name, entry, resolver),
          // Problems of single tools are warnings of the swarm until it is loaded.
          warn: (message) => (loading ? warnings.push({ at, message }) : process.emitWarning(message)),
        });
      } catch (error) {
        (entry.required ? errors : warnings).push(toProblem(at, error));
        return undefined;
      }
    }),
  );
  loading = false;
  const connected = servers.filter((server) => server !== undefined);
  return {
    actions: connected.flatMap((server) => server.actions),
    complete: connected.length === servers.length,
    close: async () => {
      await Promise.all(connected.map((server) => server.close()));
    },
  };
}

/** `files__*` in an agent's actions stands for all actions of the server. */
export function withAllOfServers(swarm: SwarmEntry, actions: readonly Action[]): SwarmEntry {
  const expand = (name: string): readonly string[] => {
    if (!name.endsWith("__*")) return [name];
    const prefix = name.slice(0, -1);
    return actions.flatMap((action) => (action.name.startsWith(prefix) ? [action.name] : []));
  };
  return {
    ...swarm,
    agents: swarm.agents.map((agent) => ({ ...agent, actions: [...new Set(agent.actions.flatMap(expand))] })),
  };
}

function optionsOf(
  name: string,
  entry: McpServerEntry,
  { directory, modules, env, outbound }: Resolver,
): McpServerOptions {
  const common = {
    name,
    ...(entry.time_limit_ms !== undefined && { timeLimit: entry.time_limit_ms }),
  };
  if ("url" in entry) {
    const { client, allow } = outbound;
    return {
      ...common,
      url: entry.url,
      headers: modules === false ? withoutVariables(entry.headers) : filledIn(entry.headers, env),
      ...(client !== undefined && { client }),
      ...(allow !== undefined && { allow }),
    };
  }
  if (modules === false) {
    throw badReference(
      `'${entry.command}' must not be started`,
      "a swarm that the operator did not define cannot start programs; use an MCP server with a url",
    );
  }
  return {
    ...common,
    command: entry.command,
    args: entry.args,
    env: filledIn(entry.env, env),
    cwd: resolve(directory, entry.cwd ?? "."),
  };
}

/** A swarm that cannot start programs also cannot send the operator's secrets to its URLs. */
function withoutVariables(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(headers)) {
    const [variable] = VARIABLE.exec(value) ?? [];
    if (variable === undefined) continue;
    throw badReference(
      `the header '${name}' cannot use the environment variable ${variable}`,
      "a swarm that the operator did not define cannot use variables; write the value itself",
    );
  }
  return headers;
}

const VARIABLE = /\$\{(\w+)\}/;

/** `${NAME}` is replaced by an environment variable, so that swarm files contain no secrets. */
function filledIn(
  values: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const fill = (text: string): string =>
    text.replaceAll(new RegExp(VARIABLE, "g"), (_, name: string) => {
      const value = env[name];
      if (value !== undefined) return value;
      throw badReference(
        `the environment variable ${name} is not set`,
        `set ${name} before you load the swarm`,
      );
    });
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, fill(value)]));
}
