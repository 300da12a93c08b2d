/** Loads swarms from a swarm file: parses it, resolves its references, checks everything and reports all problems. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { OutboundOptions } from "../actions/index.js";
import { connectMcpServer } from "../actions/index.js";
import { didYouMean, messageOf } from "../base/index.js";
import type { SwarmDefinition } from "../engine/index.js";
import type { SwarmEntry } from "../mail/index.js";
import {
  badSwarmFile,
  checkReferences,
  checkSwarm,
  checkSwarmNames,
  outlineOfEntry,
  type ParsedSwarmFile,
  parseSwarmFile,
  type SwarmFileProblem,
  swarmProblemsOf,
  type UnplacedProblem,
  within,
} from "../mail/index.js";
import { toBudget } from "./budget.js";
import { type Builtins, defaultBuiltins } from "./builtins.js";
import { assemble } from "./define.js";
import { loadModuleExport, type ModuleLoader } from "./modules.js";
import { resolveActions } from "./resolve-actions.js";
import { resolveAgents } from "./resolve-agents.js";
import { connectServers, withAllOfServers } from "./resolve-mcp.js";
import type { McpConnector, Resolver } from "./resolver.js";
import type { UrlOptions } from "./urls.js";

/** How references of a swarm file are resolved. */
export interface LoadOptions {
  /** Targets of `mail:<name>` references. Default: the built-in agents and actions. */
  readonly builtins?: Builtins;
  /** Loads `module:` references; `false` rejects them. Default: imports the file. */
  readonly modules?: ModuleLoader | false;
  /** Options for `url::` references. Default: no host is allowed. */
  readonly urls?: UrlOptions;
  /** Connects to MCP servers. Default: over stdio and, behind the outbound guard, streamable HTTP. */
  readonly mcp?: McpConnector;
  /** Exceptions to the outbound guard for MCP servers with a URL. Default: none. */
  readonly outbound?: OutboundOptions;
  /** Values of `${NAME}` in the declaration of an MCP server. Default: the process's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** A swarm from a file. */
export interface LoadedSwarm {
  readonly definition: SwarmDefinition;
  /** Warnings, which do not prevent loading. */
  readonly warnings: readonly SwarmFileProblem[];
}

/**
 * Loads all swarms of a file.
 * @throws MailroomError `bad_swarm_file` with every problem and its position.
 */
export async function loadSwarms(file: string, options: LoadOptions = {}): Promise<readonly LoadedSwarm[]> {
  return loadSwarmsFromText(await readText(file), {
    ...options,
    source: file,
    directory: dirname(resolve(file)),
  });
}

/**
 * Loads one swarm of a file: the named one, or the only one. References of other swarms are not resolved.
 * @throws MailroomError `bad_swarm_file` with every problem and its position.
 */
export async function loadSwarm(
  file: string,
  name?: string,
  options: LoadOptions = {},
): Promise<LoadedSwarm> {
  const parsed = parseSwarmFile(await readText(file), file);
  return loadOne(parsed, chooseSwarm(parsed, name), resolverFor(options, dirname(resolve(file))));
}

export interface TextOptions extends LoadOptions {
  /** The file name in messages. Default: `swarms.json`. */
  readonly source?: string;
  /** Base directory of relative module references. Default: the working directory. */
  readonly directory?: string;
}

/** Loads all swarms from the text of a swarm file. */
export async function loadSwarmsFromText(
  text: string,
  options: TextOptions = {},
): Promise<readonly LoadedSwarm[]> {
  const parsed = parseSwarmFile(text, options.source);
  const resolver = resolverFor(options, options.directory ?? process.cwd());
  const problems: SwarmFileProblem[] = checkSwarmNames(parsed.swarms).map(parsed.locate);
  const loaded: LoadedSwarm[] = [];
  for (const index of parsed.swarms.keys()) {
    try {
      loaded.push(await loadOne(parsed, index, resolver));
    } catch (error) {
      const found = swarmProblemsOf(error);
      if (found === undefined) throw error;
      problems.push(...found);
    }
  }
  if (problems.length > 0) {
    await Promise.all(loaded.map(({ definition }) => definition.close?.()));
    throw badSwarmFile(parsed.source, problems);
  }
  return loaded;
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const reason = messageOf(error);
    const message = `it cannot be read: ${missing ? "no such file" : reason}`;
    const problem = { path: "", message };
    throw badSwarmFile(file, [problem], { cause: error });
  }
}

function resolverFor(options: LoadOptions, directory: string): Resolver {
  return {
    builtins: options.builtins ?? defaultBuiltins(),
    modules: options.modules ?? loadModuleExport,
    urls: options.urls ?? {},
    directory,
    mcp: options.mcp ?? connectMcpServer,
    outbound: options.outbound ?? {},
    env: options.env ?? process.env,
  };
}

function chooseSwarm(file: ParsedSwarmFile, name: string | undefined): number {
  const names = file.swarms.map((swarm) => swarm.name);
  if (name === undefined) {
    if (names.length === 1) return 0;
    const hint = `name one: ${names.map((known) => `'${known}'`).join(", ")}`;
    throw badSwarmFile(file.source, [
      { path: "swarms", message: `the file has ${names.length} swarms`, hint },
    ]);
  }
  const index = names.indexOf(name);
  if (index >= 0) return index;
  const hint = didYouMean(name, names);
  throw badSwarmFile(file.source, [
    { path: "swarms", message: `unknown swarm '${name}'`, ...(hint === undefined ? {} : { hint }) },
  ]);
}

async function loadOne(file: ParsedSwarmFile, index: number, resolver: Resolver): Promise<LoadedSwarm> {
  const declared = file.swarms[index];
  if (declared === undefined) throw new RangeError(`the file has no swarm number ${index}`);
  const errors: UnplacedProblem[] = checkReferences(declared);
  const warnings: UnplacedProblem[] = [];
  const servers = await connectServers(declared, resolver, errors, warnings);
  const entry = withAllOfServers(declared, servers.actions);
  const actions = [
    ...(await resolveActions(entry, resolver, errors)),
    ...servers.actions.map((action) => ({ action, imported: true, at: ["mcp_servers"] })),
  ];
  const imported = actions
    .filter((action) => action.imported)
    .map(({ action, at }) => ({ name: action.name, at }));
  const allImported = imported.length === entry.action_imports.length + servers.actions.length;
  const allKnown = allImported && servers.complete;
  const found = checkSwarm(outlineOfEntry(entry, allKnown ? imported : undefined));
  const agents = await resolveAgents(entry, actions, resolver, errors, warnings);
  errors.push(...found.errors);
  warnings.push(...found.warnings);
  const place = (finding: UnplacedProblem): SwarmFileProblem => file.locate(within([index], finding));
  if (errors.length > 0) {
    await servers.close();
    throw badSwarmFile(file.source, errors.map(place).sort(byPlace));
  }
  const definition = assemble(
    { ...inCode(entry), agents },
    entry.entrypoint,
    actions.map(({ action }) => action),
  );
  return {
    definition:
      Object.keys(entry.mcp_servers).length === 0 ? definition : { ...definition, close: servers.close },
    warnings: [
      ...file.warnings.filter(({ at }) => at[0] === index).map(file.locate),
      ...warnings.map(place),
    ].sort(byPlace),
  };
}

function inCode(entry: SwarmEntry) {
  return {
    name: entry.name,
    version: entry.version,
    description: entry.description,
    keywords: entry.keywords,
    public: entry.public,
    enableInterswarm: entry.enable_interswarm,
    breakpointTools: entry.breakpoint_tools,
    excludeTools: entry.exclude_tools,
    ...toBudget(entry.budget),
  };
}

function byPlace(a: SwarmFileProblem, b: SwarmFileProblem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}
