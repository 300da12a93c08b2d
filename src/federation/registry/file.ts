/** The reference's registry file (mail.md 7.3): read at the start, rewritten after each change (decisions E4). */
import { readFile } from "node:fs/promises";
import { isRecord } from "../../mail/record.js";
import { numberOf, type SwarmEntry, textOf, textsOf } from "./entry.js";
import { variableIn } from "./token.js";

/** An entry of the file. A token that stands there literally comes beside it, for this process only. */
export interface FileEntry {
  readonly entry: Omit<SwarmEntry, "volatile" | "isActive">;
  readonly token: string | undefined;
  /** As it stands in the file, for entries that are not taken over: they stay there. */
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

/** Every swarm of the file but the local one. A file that is not there has none. @throws Error when it cannot be read */
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
  if (!isRecord(endpoints)) throw new Error(`${path} is no swarm registry: it has no object 'endpoints'`);
  const found: FileEntry[] = [];
  for (const [key, endpoint] of Object.entries(endpoints)) {
    const value = isRecord(endpoint) ? endpoint : {};
    const name = textOf(value.swarm_name) ?? key;
    if (name === localSwarm || value.volatile === true) continue;
    // Without a URL it is nothing to anybody, and that is said by whoever takes the entries over.
    const baseUrl = textOf(value.base_url) ?? "";
    // Older files have the token itself, under either name.
    const auth = textOf(value.auth_token_ref) ?? textOf(value.auth_token);
    const isReference = auth !== null && variableIn(auth) !== undefined;
    const seen = textOf(value.last_seen);
    found.push({
      entry: {
        name,
        baseUrl,
        authRef: isReference ? auth : null,
        lastSeen: seen === null ? null : numberOf(Date.parse(seen)),
        latency: numberOf(value.latency),
        metadata: isRecord(value.metadata) ? value.metadata : null,
        version: textOf(value.version),
        description: textOf(value.swarm_description),
        keywords: textsOf(value.keywords),
        public: value.public === true,
        entrypoint: null,
        capabilities: textsOf(value.capabilities),
        publicKey: textOf(value.public_key),
      },
      token: isReference || auth === null || auth === "" ? undefined : auth,
      key,
      value: endpoint,
    });
  }
  return found;
}

/** `others`: entries that were read and not taken over. Whoever wrote them finds them where they were. */
export function formatRegistryFile(
  local: LocalFacts,
  entries: readonly SwarmEntry[],
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

function endpointOf(entry: SwarmEntry): Record<string, unknown> {
  return {
    swarm_name: entry.name,
    base_url: entry.baseUrl,
    // A file without this key cannot be loaded by the reference.
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
