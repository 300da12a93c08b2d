/** Reads the reference's registry file (REF-16) at startup and rewrites it after each change (decision E4). */
import { readFile } from "node:fs/promises";
import { isRecord } from "../../base/index.js";
import { type KnownSwarm, numberOrNull, stringOrNull, stringsIn } from "./entry.js";
import { variableIn } from "./token.js";

/** An entry of the file. A literal token is kept apart, for this process only. */
export interface FileEntry {
  readonly entry: Omit<KnownSwarm, "volatile" | "isActive">;
  readonly token: string | undefined;
  /** Key and value as in the file, to write back entries that were not imported. */
  readonly key: string;
  readonly value: unknown;
}

export interface LocalFacts {
  readonly name: string;
  readonly baseUrl: string | null;
  readonly description: string;
  readonly keywords: readonly string[];
  readonly public: boolean;
  readonly version: string;
}

/**
 * Returns every swarm of the file except the local one; none if the file does not exist. @throws Error when it cannot
 * be read
 */
export async function readRegistryFile(path: string, localSwarm: string): Promise<readonly FileEntry[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
  return parseRegistryFile(text, localSwarm, path);
}

/** @throws Error when the text is not a registry */
export function parseRegistryFile(
  text: string,
  localSwarm: string,
  path = "the registry",
): readonly FileEntry[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new Error(`${path} is not JSON: ${String(cause)}`, { cause });
  }
  const endpoints = isRecord(parsed) ? parsed.endpoints : undefined;
  if (!isRecord(endpoints)) throw new Error(`${path} is not a swarm registry: it has no object 'endpoints'`);
  const found: FileEntry[] = [];
  for (const [key, endpoint] of Object.entries(endpoints)) {
    const value = isRecord(endpoint) ? endpoint : {};
    const name = stringOrNull(value.swarm_name) ?? key;
    if (name === localSwarm || value.volatile === true) continue;
    // An empty URL is rejected on import, with a reason.
    const baseUrl = stringOrNull(value.base_url) ?? "";
    // Older files contain the token itself, under either name.
    const auth = stringOrNull(value.auth_token_ref) ?? stringOrNull(value.auth_token);
    const isReference = auth !== null && variableIn(auth) !== undefined;
    const seen = stringOrNull(value.last_seen);
    found.push({
      entry: {
        name,
        baseUrl,
        authRef: isReference ? auth : null,
        lastSeen: seen === null ? null : numberOrNull(Date.parse(seen)),
        latency: numberOrNull(value.latency),
        metadata: isRecord(value.metadata) ? value.metadata : null,
        version: stringOrNull(value.version),
        description: stringOrNull(value.swarm_description),
        keywords: stringsIn(value.keywords),
        public: value.public === true,
        entrypoint: null,
        capabilities: stringsIn(value.capabilities),
        publicKey: stringOrNull(value.public_key),
      },
      token: isReference || auth === null || auth === "" ? undefined : auth,
      key,
      value: endpoint,
    });
  }
  return found;
}

/** `others`: entries that were read but not imported. They are written back unchanged. */
export function formatRegistryFile(
  local: LocalFacts,
  entries: readonly KnownSwarm[],
  others: readonly Pick<FileEntry, "key" | "value">[] = [],
): string {
  const endpoints: Record<string, unknown> = Object.create(null);
  for (const { key, value } of others) endpoints[key] = value;
  endpoints[local.name] = {
    swarm_name: local.name,
    base_url: local.baseUrl ?? "",
    version: local.version,
    health_check_url: local.baseUrl === null ? "" : `${local.baseUrl}/health`,
    auth_token_ref: null,
    last_seen: null,
    latency: null,
    swarm_description: local.description,
    keywords: local.keywords,
    public: local.public,
    is_active: true,
    metadata: null,
    volatile: false,
  };
  for (const entry of entries) if (!entry.volatile) endpoints[entry.name] = endpointOf(entry);
  const file = {
    local_swarm_name: local.name,
    local_base_url: local.baseUrl ?? "",
    local_swarm_description: local.description,
    local_swarm_keywords: local.keywords,
    local_swarm_public: local.public,
    endpoints,
  };
  return `${JSON.stringify(file, undefined, 2)}\n`;
}

function endpointOf(entry: KnownSwarm): Record<string, unknown> {
  return {
    swarm_name: entry.name,
    base_url: entry.baseUrl,
    // The reference cannot load a file without this key.
    version: entry.version ?? "1.2",
    health_check_url: `${entry.baseUrl}/health`,
    auth_token_ref: entry.authRef,
    last_seen: entry.lastSeen === null ? null : new Date(entry.lastSeen).toISOString(),
    latency: entry.latency,
    swarm_description: entry.description ?? "",
    keywords: entry.keywords,
    public: entry.public,
    is_active: entry.isActive,
    metadata: entry.metadata,
    volatile: false,
    ...(entry.capabilities.length > 0 && { capabilities: entry.capabilities }),
    ...(entry.publicKey !== null && { public_key: entry.publicKey }),
  };
}
