/** What resolving references takes, and how a failure becomes a finding. */
import type { OutboundOptions } from "../actions/outbound.js";
import { ActionDefinitionError } from "../actions/parameters.js";
import type { Finding, PathSegment } from "../mail/swarm-file/problems.js";
import type { Builtins } from "./builtins.js";
import type { ModuleLoader } from "./modules.js";
import { BadReferenceError, type Reference } from "./references.js";
import type { McpConnector } from "./resolve-mcp.js";
import type { UrlOptions } from "./urls.js";

export interface Resolver {
  readonly builtins: Builtins;
  readonly modules: ModuleLoader | false;
  readonly urls: UrlOptions;
  readonly directory: string;
  readonly mcp: McpConnector;
  /** How MCP servers with an address are reached. */
  readonly outbound: OutboundOptions;
  /** Where `${NAME}` is looked up. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function loadExport(
  reference: Extract<Reference, { kind: "module" }>,
  resolver: Resolver,
): Promise<unknown> {
  if (resolver.modules === false) {
    throw new BadReferenceError(
      `'module:${reference.specifier}' may not be loaded here`,
      "module references are refused where this swarm comes from; use mail:<name>",
    );
  }
  return resolver.modules(reference.specifier, reference.exportName, resolver.directory);
}

/** The result, or `undefined` and a finding. */
export async function attempt<T>(
  at: readonly PathSegment[],
  errors: Finding[],
  work: () => T | Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    errors.push(toFinding(at, error));
    return undefined;
  }
}

export function toFinding(at: readonly PathSegment[], error: unknown): Finding {
  if (error instanceof BadReferenceError) {
    return { at, message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) };
  }
  if (error instanceof ActionDefinitionError) return { at: at.slice(0, 2), message: error.message };
  return { at, message: error instanceof Error ? error.message : String(error) };
}

export function own<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** What a module exports can only be known to be a function; that it is the right one is the author's word. */
export function isFunction<F>(value: unknown): value is F {
  return typeof value === "function";
}
