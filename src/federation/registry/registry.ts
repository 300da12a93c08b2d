/**
 * The swarms that this server knows: one list for everybody. What is kept is in the table; volatile entries and literal
 * tokens live in memory only (decisions E4).
 */
import type { Clock, RowWrite, Store } from "../../engine/ports.js";
import { checkSwarmName } from "../../mail/address.js";
import { type Guard, type HttpClient, NetError } from "../../net/index.js";
import { FederationError } from "../errors.js";
import type {
  FederationReads,
  Proposal,
  ProposalPut,
  ProposalRemove,
  SwarmPut,
  SwarmRemove,
} from "../ports.js";
import { newEntry, readEntry, type SwarmEntry, writeEntry } from "./entry.js";
import type { FileEntry } from "./file.js";
import { readSelfDescription, type SelfDescription } from "./self-description.js";
import { defaultReference, type Environment, resolveToken, type TokenState, variableIn } from "./token.js";

export interface RegistryParts {
  readonly store: Pick<Store, "commit"> & { readonly federation: FederationReads };
  readonly clock: Clock;
  readonly client: HttpClient;
  /** For the URLs of registered swarms. */
  readonly guard: Guard;
  readonly env: Environment;
  readonly local: () => string;
  /** Milliseconds for `GET /` of another swarm. */
  readonly timeLimit: number;
  /** Names that are another carrier's (decisions I). */
  readonly isNameTaken?: (name: string) => boolean;
  /** Called after each change of what is kept. When it returns, the registry file says so too. */
  readonly changed?: () => void;
}

export interface SwarmRegistration {
  readonly name: string;
  readonly baseUrl: string;
  readonly authToken?: string;
  readonly volatile: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** A health check, or a delivery that got an answer. */
export interface Sighting {
  readonly at: number;
  readonly latency?: number;
}

const MOST_PROPOSALS = 1_000;
const LARGEST_ROOT = 256 * 1024;

export class SwarmRegistry {
  readonly #parts: RegistryParts;
  readonly #entries = new Map<string, SwarmEntry>();
  /** Tokens that were given literally, until the process ends. */
  readonly #literals = new Map<string, string>();
  readonly #listeners = new Set<(name: string) => void>();
  /** Being unregistered: whatever is learnt about them now must not bring them back. */
  readonly #leaving = new Set<string>();

  constructor(parts: RegistryParts) {
    this.#parts = parts;
  }

  /** Reads the table, then adds what the file has and the table has not. */
  async load(fromFile: readonly FileEntry[] = []): Promise<void> {
    for (const { name, entry: text } of await this.#parts.store.federation.swarms()) {
      const entry = readEntry(name, text);
      if (entry !== undefined) this.#entries.set(name, entry);
    }
    const rows: RowWrite[] = [];
    for (const { entry: found, token } of fromFile) {
      if (this.#entries.has(found.name) || checkSwarmName(found.name) !== undefined) continue;
      const baseUrl = normaliseUrl(found.baseUrl);
      if (baseUrl === undefined || this.#parts.guard.checkUrl(baseUrl) !== undefined) continue;
      const authRef = token === undefined ? found.authRef : defaultReference(found.name);
      const entry: SwarmEntry = { ...found, baseUrl, authRef, volatile: false, isActive: true };
      if (token !== undefined) this.#literals.set(entry.name, token);
      this.#entries.set(entry.name, entry);
      rows.push(putOf(entry));
    }
    if (rows.length > 0) await this.#parts.store.commit({ appends: [], rows });
  }

  get(name: string): SwarmEntry | undefined {
    return this.#entries.get(name);
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  list(): readonly SwarmEntry[] {
    return [...this.#entries.values()];
  }

  tokenOf(name: string): TokenState {
    const entry = this.#entries.get(name);
    if (entry === undefined) return { kind: "none" };
    return resolveToken(entry.authRef, this.#literals.get(name), this.#parts.env);
  }

  /** Which variables the kept entries refer to, and whether each is set. */
  variables(): Readonly<Record<string, boolean>> {
    const found: Record<string, boolean> = {};
    for (const { authRef } of this.#entries.values()) {
      const variable = authRef === null ? undefined : variableIn(authRef);
      if (variable !== undefined) found[variable] = (this.#parts.env[variable] ?? "") !== "";
    }
    return found;
  }

  /** Told whenever a swarm was added, changed or removed. */
  onChange(listener: (name: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Adds a swarm or replaces what is known about it. An unreachable one is kept as inactive (decisions E3).
   * @throws FederationError `bad_swarm_name`, `bad_swarm_url`, `name_differs`
   */
  async register(swarm: SwarmRegistration, rows: readonly RowWrite[] = []): Promise<SwarmEntry> {
    const { name, volatile, authToken } = swarm;
    const wrong = checkSwarmName(name);
    if (wrong !== undefined) throw new FederationError("bad_swarm_name", wrong);
    if (name === this.#parts.local()) {
      throw new FederationError("bad_swarm_name", `'${name}' is this swarm itself: it cannot be registered`);
    }
    if (this.#parts.isNameTaken?.(name) === true) {
      throw new FederationError("bad_swarm_name", `'${name}' is the name of something else here already`);
    }
    const baseUrl = this.#checkedUrl(swarm.baseUrl);
    const found = await this.#describe(baseUrl);
    if (found !== undefined && found.name !== null && found.name !== name) {
      throw new FederationError(
        "name_differs",
        `the swarm at ${baseUrl} calls itself '${found.name}', not '${name}': register it under that name`,
      );
    }
    const given = authToken === undefined || authToken === "" ? undefined : authToken;
    const isReference = given !== undefined && variableIn(given) !== undefined;
    const literal = given === undefined || isReference ? undefined : given;
    const kept = volatile ? null : given === undefined ? null : defaultReference(name);
    const entry: SwarmEntry = {
      ...newEntry(name, baseUrl),
      volatile,
      authRef: isReference ? given : kept,
      metadata: swarm.metadata ?? null,
      ...(found !== undefined && describing(found)),
      publicKey: found?.publicKey ?? null,
      isActive: found !== undefined,
      lastSeen: found === undefined ? null : this.#parts.clock.now(),
    };
    const write: SwarmPut | SwarmRemove = volatile ? { kind: "federation.swarm.remove", name } : putOf(entry);
    const proposal: ProposalRemove = { kind: "federation.proposal.remove", name };
    await this.#parts.store.commit({ appends: [], rows: [write, proposal, ...rows] });
    if (literal === undefined) this.#literals.delete(name);
    else this.#literals.set(name, literal);
    this.#set(entry);
    this.#parts.changed?.();
    return entry;
  }

  /** @throws FederationError `unknown_swarm` */
  async unregister(name: string, rows: readonly RowWrite[] = []): Promise<void> {
    if (!this.#entries.has(name)) throw unknownSwarm(name);
    const remove: SwarmRemove = { kind: "federation.swarm.remove", name };
    this.#leaving.add(name);
    try {
      await this.#parts.store.commit({ appends: [], rows: [remove, ...rows] });
    } finally {
      this.#leaving.delete(name);
    }
    this.#entries.delete(name);
    this.#literals.delete(name);
    for (const listener of this.#listeners) listener(name);
    // What the file still names would be known again at the next start.
    this.#parts.changed?.();
  }

  /** The swarm was seen alive: it is active, and its description is fetched if it is not known yet. */
  async seen(name: string, { at, latency }: Sighting): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    // One that was away may have come back as another version.
    const needsDescription = entry.version === null || !entry.isActive;
    const found = needsDescription ? await this.#describe(entry.baseUrl) : undefined;
    const now = this.#entries.get(name);
    if (now?.baseUrl !== entry.baseUrl) return;
    const described = found !== undefined && (found.name === null || found.name === name);
    const next: SwarmEntry = {
      ...now,
      ...(described && describing(found)),
      // Only the first key is believed: this one belongs to a swarm that was away when it was registered.
      ...(described && now.publicKey === null && { publicKey: found.publicKey }),
      isActive: true,
      lastSeen: at,
      ...(latency !== undefined && { latency }),
    };
    await this.#update(next, !now.isActive || described);
  }

  /** Nothing was heard of it for too long. */
  async lost(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry?.isActive === true) await this.#update({ ...entry, isActive: false }, true);
  }

  /** Suggestions of discovery: they overwrite nothing, bring no tokens and lead nowhere until accepted. */
  async propose(found: readonly Omit<Proposal, "proposedAt">[]): Promise<readonly string[]> {
    const rows: ProposalPut[] = [];
    for (const { name, baseUrl, source } of found) {
      if (checkSwarmName(name) !== undefined || name === this.#parts.local() || this.has(name)) continue;
      const url = normaliseUrl(baseUrl);
      if (url === undefined || this.#parts.guard.checkUrl(url) !== undefined) continue;
      const proposal = { name, baseUrl: url, source, proposedAt: this.#parts.clock.now() };
      rows.push({ kind: "federation.proposal.put", proposal, most: MOST_PROPOSALS });
    }
    if (rows.length > 0) await this.#parts.store.commit({ appends: [], rows });
    return rows.map(({ proposal }) => proposal.name);
  }

  proposals(): Promise<readonly Proposal[]> {
    return this.#parts.store.federation.proposals();
  }

  /**
   * An admin agrees to a proposal: it is registered under the URL that was proposed.
   * @throws FederationError `unknown_proposal`, and those of `register`
   */
  async accept(
    name: string,
    terms: Pick<SwarmRegistration, "authToken" | "volatile">,
    rows: readonly RowWrite[] = [],
  ): Promise<SwarmEntry> {
    const { baseUrl } = await this.#proposal(name);
    return this.register({ name, baseUrl, ...terms }, rows);
  }

  /** An admin does not. It may be proposed again. @throws FederationError `unknown_proposal` */
  async reject(name: string, rows: readonly RowWrite[] = []): Promise<void> {
    await this.#proposal(name);
    const remove: ProposalRemove = { kind: "federation.proposal.remove", name };
    await this.#parts.store.commit({ appends: [], rows: [remove, ...rows] });
  }

  async #proposal(name: string): Promise<Proposal> {
    const found = (await this.proposals()).find((proposal) => proposal.name === name);
    if (found !== undefined) return found;
    throw new FederationError("unknown_proposal", `no swarm named '${name}' was proposed here`);
  }

  async #update(entry: SwarmEntry, keep: boolean): Promise<void> {
    if (this.#leaving.has(entry.name)) return;
    if (keep && !entry.volatile) await this.#parts.store.commit({ appends: [], rows: [putOf(entry)] });
    if (!this.#entries.has(entry.name)) return;
    if (keep) {
      this.#set(entry);
      this.#parts.changed?.();
    } else this.#entries.set(entry.name, entry);
  }

  #set(entry: SwarmEntry): void {
    this.#entries.set(entry.name, entry);
    for (const listener of this.#listeners) listener(entry.name);
  }

  #checkedUrl(text: string): string {
    const url = normaliseUrl(text);
    if (url === undefined) {
      throw new FederationError(
        "bad_swarm_url",
        `'${text}' is not the base URL of a server: write https://host/path`,
      );
    }
    const refusal = this.#parts.guard.checkUrl(url);
    if (refusal !== undefined) throw new FederationError("bad_swarm_url", `${url}: ${refusal.message}`);
    return url;
  }

  /** What the swarm says about itself; nothing if it does not answer like one. */
  async #describe(baseUrl: string): Promise<SelfDescription | undefined> {
    const { client, guard, timeLimit } = this.#parts;
    try {
      const answer = await client.request(`${baseUrl}/`, {
        guard,
        timeLimit,
        maxBytes: LARGEST_ROOT,
        headers: { accept: "application/json" },
      });
      return answer.status === 200 ? readSelfDescription(answer.text()) : undefined;
    } catch (error) {
      if (error instanceof NetError) return undefined;
      throw error;
    }
  }
}

/** `https://host/path` without a slash at the end; nothing if it is no such URL. */
export function normaliseUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") return undefined;
  return `${url.origin === "null" ? url.protocol : url.origin}${url.pathname}`.replace(/\/+$/, "");
}

function describing({ name: _, publicKey: __, ...rest }: SelfDescription) {
  return rest;
}

function putOf(entry: SwarmEntry): SwarmPut {
  return { kind: "federation.swarm.put", name: entry.name, entry: writeEntry(entry) };
}

export function unknownSwarm(name: string): FederationError {
  return new FederationError("unknown_swarm", `no swarm named '${name}' is registered here`);
}
