/** Connects to the MCP servers that a swarm declares: their tools become actions of the swarm. */
import { resolve } from "node:path";
import type { McpServer, McpServerOptions } from "../actions/mcp/index.js";
import type { Action } from "../engine/agent.js";
import type { Finding } from "../mail/swarm-file/problems.js";
import type { McpServerEntry, SwarmEntry } from "../mail/swarm-file/schema.js";
import { BadReferenceError } from "./references.js";
import { type Resolver, toFinding } from "./resolver.js";

/** How a swarm file's MCP servers are reached. */
export type McpConnector = (options: McpServerOptions) => Promise<McpServer>;

export interface ConnectedServers {
  readonly actions: readonly Action[];
  /** Whether every server could be connected to, so that every action is known. */
  readonly complete: boolean;
  close(): Promise<void>;
}

export async function connectServers(
  swarm: SwarmEntry,
  resolver: Resolver,
  errors: Finding[],
  warnings: Finding[],
): Promise<ConnectedServers> {
  const servers = await Promise.all(
    Object.entries(swarm.mcp_servers).map(async ([name, entry]) => {
      const at = ["mcp_servers", name];
      try {
        return await resolver.mcp(optionsOf(name, entry, resolver));
      } catch (error) {
        (entry.required ? errors : warnings).push(toFinding(at, error));
        return undefined;
      }
    }),
  );
  const connected = servers.filter((server) => server !== undefined);
  return {
    actions: connected.flatMap((server) => server.actions),
    complete: connected.length === servers.length,
    close: async () => {
      await Promise.all(connected.map((server) => server.close()));
    },
  };
}

/** `files__*` among an agent's actions stands for everything that the server offers. */
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
    throw new BadReferenceError(
      `'${entry.command}' may not be started here`,
      "programs are refused where this swarm comes from; use an MCP server with a url",
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

/** Whoever may not start programs here may not have the operator's secrets sent to an address of theirs, either. */
function withoutVariables(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(headers)) {
    const [variable] = VARIABLE.exec(value) ?? [];
    if (variable === undefined) continue;
    throw new BadReferenceError(
      `the header '${name}' may not use ${variable} of the environment`,
      "variables are refused where this swarm comes from; write the value itself",
    );
  }
  return headers;
}

const VARIABLE = /\$\{(\w+)\}/;

/** `${NAME}` stands for a variable of the environment: secrets do not belong into swarm files. */
function filledIn(
  values: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const fill = (text: string): string =>
    text.replaceAll(new RegExp(VARIABLE, "g"), (_, name: string) => {
      const value = env[name];
      if (value !== undefined) return value;
      throw new BadReferenceError(`the environment has no ${name}`, `set ${name} before you load the swarm`);
    });
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, fill(value)]));
}
