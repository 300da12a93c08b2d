/** The dependencies of resolving references, and the conversion of failures to problems. */

import type { McpServer, McpServerOptions, OutboundOptions } from "../actions/index.js";
import { hasCode, messageOf } from "../base/index.js";
import type { PathSegment, UnplacedProblem } from "../mail/index.js";
import type { Builtins } from "./builtins.js";
import type { ModuleLoader } from "./modules.js";
import { badReference, type CodeReference } from "./references.js";
import type { UrlOptions } from "./urls.js";

/** Connects to an MCP server of a swarm file. */
export type McpConnector = (options: McpServerOptions) => Promise<McpServer>;

export interface Resolver {
  readonly builtins: Builtins;
  readonly modules: ModuleLoader | false;
  readonly urls: UrlOptions;
  readonly directory: string;
  readonly mcp: McpConnector;
  /** Options for MCP servers with a URL. */
  readonly outbound: OutboundOptions;
  /** Values of `${NAME}`. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function loadExport(
  reference: Extract<CodeReference, { kind: "module" }>,
  resolver: Resolver,
): Promise<unknown> {
  if (resolver.modules === false) {
    throw badReference(
      `'module:${reference.specifier}' cannot be loaded`,
      "a swarm that the operator did not define cannot load modules; use mail:<name>",
    );
  }
  return resolver.modules(reference.specifier, reference.exportName, resolver.directory);
}

/** Returns the result, or reports a problem and returns `undefined`. */
export async function attempt<T>(
  at: readonly PathSegment[],
  errors: UnplacedProblem[],
  work: () => T | Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    errors.push(toProblem(at, error));
    return undefined;
  }
}

export function toProblem(at: readonly PathSegment[], error: unknown): UnplacedProblem {
  if (hasCode(error, "bad_reference")) {
    const { hint } = error.details;
    return { at, message: error.message, ...(typeof hint === "string" && { hint }) };
  }
  if (hasCode(error, "bad_action")) return { at: at.slice(0, 2), message: error.message };
  return { at, message: messageOf(error) };
}

export function own<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** Only the type `function` can be checked at run time; the signature is the author's responsibility. */
export function isFunction<F>(value: unknown): value is F {
  return typeof value === "function";
}
