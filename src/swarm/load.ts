/** Loads swarms from a swarm file: reads it, follows its references, checks everything, reports all problems. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { connectMcpServer } from "../actions/mcp/index.js";
import type { OutboundOptions } from "../actions/outbound.js";
import type { SwarmDefinition } from "../engine/definition.js";
import { checkSwarm } from "../mail/swarm-file/check.js";
import { type Finding, type Problem, SwarmFileError } from "../mail/swarm-file/problems.js";
import {
  checkReferences,
  checkSwarmNames,
  outlineOfEntry,
  type ParsedSwarmFile,
  parseSwarmFile,
  within,
} from "../mail/swarm-file/read.js";
import type { SwarmEntry } from "../mail/swarm-file/schema.js";
import { didYouMean } from "../mail/swarm-file/suggest.js";
import { type Builtins, defaultBuiltins } from "./builtins.js";
import { assemble } from "./define.js";
import { loadModuleExport, type ModuleLoader } from "./modules.js";
import { resolveActions } from "./resolve-actions.js";
import { resolveAgents } from "./resolve-agents.js";
import { connectServers, type McpConnector, withAllOfServers } from "./resolve-mcp.js";
import type { Resolver } from "./resolver.js";
import type { UrlOptions } from "./urls.js";

export interface LoadOptions {
  /** What `mail:<name>` can name. Default: everything that comes with the package. */
  readonly builtins?: Builtins;
  /** How `module:` references are loaded; `false` refuses them. Default: by importing the file. */
  readonly modules?: ModuleLoader | false;
  /** Whether and how `url::` references are fetched. Default: no host is allowed. */
  readonly urls?: UrlOptions;
  /** How MCP servers are connected to. Default: over stdio and, behind the outbound guard, streamable HTTP. */
  readonly mcp?: McpConnector;
  /** Exceptions to the outbound guard for MCP servers with an address. Default: none. */
  readonly outbound?: OutboundOptions;
  /** Where `${NAME}` in the declaration of an MCP server is looked up. Default: the process's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface LoadedSwarm {
  readonly definition: SwarmDefinition;
  /** What is odd in the file but does not keep it from working. */
  readonly warnings: readonly Problem[];
}

/**
 * All swarms of a file.
 * @throws SwarmFileError (code `bad_swarm_file`) with every problem and its place.
 */
export async function loadSwarms(file: string, options: LoadOptions = {}): Promise<readonly LoadedSwarm[]> {
  return loadSwarmsFromText(await readText(file), {
    ...options,
    source: file,
    directory: dirname(resolve(file)),
  });
}

/**
 * One swarm of a file: the one named, or the only one. What other swarms refer to is not loaded.
 * @throws SwarmFileError (code `bad_swarm_file`) with every problem and its place.
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
  /** What the text is called in messages. Default: `swarms.json`. */
  readonly source?: string;
  /** Where relative module references start. Default: the working directory. */
  readonly directory?: string;
}

/** The same from a text that is at hand already. */
export async function loadSwarmsFromText(
  text: string,
  options: TextOptions = {},
): Promise<readonly LoadedSwarm[]> {
  const parsed = parseSwarmFile(text, options.source);
  const resolver = resolverFor(options, options.directory ?? process.cwd());
  const problems: Problem[] = checkSwarmNames(parsed.swarms).map(parsed.locate);
  const loaded: LoadedSwarm[] = [];
  for (const index of parsed.swarms.keys()) {
    try {
      loaded.push(await loadOne(parsed, index, resolver));
    } catch (error) {
      if (!(error instanceof SwarmFileError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) {
    await Promise.all(loaded.map(({ definition }) => definition.close?.()));
    throw new SwarmFileError(parsed.source, problems);
  }
  return loaded;
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const reason = error instanceof Error ? error.message : String(error);
    const message = `it cannot be read: ${missing ? "there is no such file" : reason}`;
    const problem = { path: "", message };
    throw new SwarmFileError(file, [problem], { cause: error });
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
    const hint = `say which: ${names.map((known) => `'${known}'`).join(", ")}`;
    throw new SwarmFileError(file.source, [
      { path: "swarms", message: `there are ${names.length} swarms`, hint },
    ]);
  }
  const index = names.indexOf(name);
  if (index >= 0) return index;
  const hint = didYouMean(name, names);
  throw new SwarmFileError(file.source, [
    { path: "swarms", message: `there is no swarm '${name}'`, ...(hint === undefined ? {} : { hint }) },
  ]);
}

async function loadOne(file: ParsedSwarmFile, index: number, resolver: Resolver): Promise<LoadedSwarm> {
  const declared = file.swarms[index];
  if (declared === undefined) throw new RangeError(`there is no swarm number ${index}`);
  const errors: Finding[] = checkReferences(declared);
  const warnings: Finding[] = [];
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
  const place = (finding: Finding): Problem => file.locate(within([index], finding));
  if (errors.length > 0) {
    await servers.close();
    throw new SwarmFileError(file.source, errors.map(place).sort(byPlace));
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
  };
}

function byPlace(a: Problem, b: Problem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}
