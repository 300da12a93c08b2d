/** A registered swarm, and its stored form. */
import { isRecord } from "../../base/index.js";

export interface KnownSwarm {
  readonly name: string;
  /** Without a trailing slash: paths are appended. */
  readonly baseUrl: string;
  /** `${VARIABLE}`; never the token itself (decision C7). */
  readonly authRef: string | null;
  readonly volatile: boolean;
  /** Milliseconds since the epoch. */
  readonly lastSeen: number | null;
  readonly isActive: boolean;
  /** Duration of the last health check in seconds. */
  readonly latency: number | null;
  /** As given at registration. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** From the swarm's `GET /`. */
  readonly version: string | null;
  readonly description: string | null;
  readonly keywords: readonly string[];
  readonly public: boolean;
  readonly entrypoint: string | null;
  readonly capabilities: readonly string[];
  /** Pinned at registration: a different key later is not trusted (decision E9). */
  readonly publicKey: string | null;
}

export function newEntry(name: string, baseUrl: string): KnownSwarm {
  return {
    name,
    baseUrl,
    authRef: null,
    volatile: true,
    lastSeen: null,
    isActive: false,
    latency: null,
    metadata: null,
    version: null,
    description: null,
    keywords: [],
    public: false,
    entrypoint: null,
    capabilities: [],
    publicKey: null,
  };
}

export function writeEntry(entry: KnownSwarm): string {
  return JSON.stringify(entry);
}

/** Parses a stored entry, with defaults for fields that an older version did not write. */
export function readEntry(name: string, text: string): KnownSwarm | undefined {
  const parsed: unknown = JSON.parse(text);
  if (!isRecord(parsed)) return undefined;
  const baseUrl = stringOrNull(parsed.baseUrl);
  if (baseUrl === null) return undefined;
  return {
    name,
    baseUrl,
    authRef: stringOrNull(parsed.authRef),
    volatile: parsed.volatile === true,
    lastSeen: numberOrNull(parsed.lastSeen),
    isActive: parsed.isActive === true,
    latency: numberOrNull(parsed.latency),
    metadata: isRecord(parsed.metadata) ? parsed.metadata : null,
    version: stringOrNull(parsed.version),
    description: stringOrNull(parsed.description),
    keywords: stringsIn(parsed.keywords),
    public: parsed.public === true,
    entrypoint: stringOrNull(parsed.entrypoint),
    capabilities: stringsIn(parsed.capabilities),
    publicKey: stringOrNull(parsed.publicKey),
  };
}

export function stringOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function numberOrNull(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
