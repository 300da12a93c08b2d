/** A swarm that this server knows, and its form in the table and in the reference's files. */
import { isRecord } from "../../mail/record.js";

export interface SwarmEntry {
  readonly name: string;
  /** Without a slash at its end: paths are appended to it. */
  readonly baseUrl: string;
  /** `${VARIABLE}`; never the token itself (decisions C7). */
  readonly authRef: string | null;
  readonly volatile: boolean;
  /** Milliseconds since the epoch. */
  readonly lastSeen: number | null;
  readonly isActive: boolean;
  /** Seconds that the last health check took. */
  readonly latency: number | null;
  /** As whoever registered it gave it. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** What the swarm says about itself (`GET /`). */
  readonly version: string | null;
  readonly description: string | null;
  readonly keywords: readonly string[];
  readonly public: boolean;
  readonly entrypoint: string | null;
  readonly capabilities: readonly string[];
  /** Pinned at registration: a later one of the same swarm is not believed (decisions E9). */
  readonly publicKey: string | null;
}

export function newEntry(name: string, baseUrl: string): SwarmEntry {
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

export function writeEntry(entry: SwarmEntry): string {
  return JSON.stringify(entry);
}

/** An entry from text, with defaults for what an older version did not write. */
export function readEntry(name: string, text: string): SwarmEntry | undefined {
  const parsed: unknown = JSON.parse(text);
  if (!isRecord(parsed)) return undefined;
  const baseUrl = textOf(parsed.baseUrl);
  if (baseUrl === null) return undefined;
  return {
    name,
    baseUrl,
    authRef: textOf(parsed.authRef),
    volatile: parsed.volatile === true,
    lastSeen: numberOf(parsed.lastSeen),
    isActive: parsed.isActive === true,
    latency: numberOf(parsed.latency),
    metadata: isRecord(parsed.metadata) ? parsed.metadata : null,
    version: textOf(parsed.version),
    description: textOf(parsed.description),
    keywords: textsOf(parsed.keywords),
    public: parsed.public === true,
    entrypoint: textOf(parsed.entrypoint),
    capabilities: textsOf(parsed.capabilities),
    publicKey: textOf(parsed.publicKey),
  };
}

export function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
