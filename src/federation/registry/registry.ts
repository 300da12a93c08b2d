/**
 * The swarms that this server knows: one list for everybody. What is kept is in the table; volatile entries and literal
 * tokens live in memory only (decisions E4).
 */
import type { Clock, RowWrite, Store } from "../../engine/ports.js";
import { checkSwarmName } from "../../mail/address.js";
import { ownValue } from "../../mail/record.js";
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
import { normaliseUrl } from "./base-url.js";
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
  /** Where it was seen: of an address that it has left, nothing is believed. */
  readonly baseUrl?: string;
}

/** An entry of the registry file that was not taken over, and why. */
export interface SkippedEntry {
  readonly found: FileEntry;
  readonly reason: string;
}

const MOST_PROPOSALS = 1_000;
/** Of one server: a stranger with a long list must leave room for the others. */
const MOST_OF_SOURCE = 100;
const LARGEST_ROOT = 256 * 1024;

export class SwarmRegistry {
  readonly #parts: RegistryParts;
  readonly #entries = new Map<string, SwarmEntry>();
  /** Tokens that were given literally, until the process ends. */
  readonly #literals = new Map<string, string>();
  readonly #listeners = new Set<(name: string) => void>();
  /** Swarms that said in this process what they are, at the URL that they have now. */
  readonly #described = new Set<string>();
  /** By name: the last write that was begun. Each waits for the one before it, so what is learnt late undoes nothing. */
  readonly #writes = new Map<string, Promise<unknown>>();

  constructor(parts: RegistryParts) {
    this.#parts = parts;
  }

  /** Reads the table, then adds what the file has and the table has not. What cannot be added is given back. */
  async load(fromFile: readonly FileEntry[] = []): Promise<readonly SkippedEntry[]> {
    for (const { name, entry: text } of await this.#parts.store.federation.swarms()) {
      const entry = readEntry(name, text);
      if (entry !== undefined) this.#entries.set(name, entry);
    }
    const rows: RowWrite[] = [];
    const skipped: SkippedEntry[] = [];
    for (const found of fromFile) {
      const { token } = found;
      const { name } = found.entry;
      if (this.#entries.has(name)) continue;
      const wrong = checkSwarmName(name);
      const checked =
        wrong === undefined ? this.#checkUrl(found.entry.baseUrl) : ({ ok: false, reason: wrong } as const);
      if (!checked.ok) {
        skipped.push({ found, reason: checked.reason });
        continue;
      }
      const baseUrl = checked.url;
      const authRef = token === undefined ? found.entry.authRef : defaultReference(name);
      const entry: SwarmEntry = { ...found.entry, baseUrl, authRef, volatile: false, isActive: true };
      if (token !== undefined) this.#literals.set(entry.name, token);
      this.#entries.set(entry.name, entry);
      rows.push(putOf(entry));
    }
    if (rows.length > 0) await this.#parts.store.commit({ appends: [], rows });
    return skipped;
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
      if (variable !== undefined) found[variable] = (ownValue(this.#parts.env, variable) ?? "") !== "";
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
    await this.#inOrder(name, async () => {
      await this.#parts.store.commit({ appends: [], rows: [write, proposal, ...rows] });
      if (literal === undefined) this.#literals.delete(name);
      else this.#literals.set(name, literal);
      if (found === undefined) this.#described.delete(name);
      else this.#described.add(name);
      this.#set(entry);
      this.#parts.changed?.();
    });
    return entry;
  }

  /** @throws FederationError `unknown_swarm` */
  async unregister(name: string, rows: readonly RowWrite[] = []): Promise<void> {
    const remove: SwarmRemove = { kind: "federation.swarm.remove", name };
    await this.#inOrder(name, async () => {
      if (!this.#entries.has(name)) throw unknownSwarm(name);
      await this.#parts.store.commit({ appends: [], rows: [remove, ...rows] });
      this.#entries.delete(name);
      this.#literals.delete(name);
      this.#described.delete(name);
      for (const listener of this.#listeners) listener(name);
      // What the file still names would be known again at the next start.
      this.#parts.changed?.();
    });
  }

  /** The swarm was seen alive: it is active, and its description is fetched if it is not known yet. */
  async seen(name: string, { at, latency, baseUrl }: Sighting): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined || (baseUrl !== undefined && entry.baseUrl !== baseUrl)) return;
    // One that was away, or that we know from before we were started, may have become another version.
    const needsDescription = !this.#described.has(name) || entry.version === null || !entry.isActive;
    const found = needsDescription ? await this.#describe(entry.baseUrl) : undefined;
    await this.#inOrder(name, async () => {
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
      if (described) this.#described.add(name);
    });
  }

  /** Nothing was heard of it for too long, where it was looked for. */
  async lost(name: string, baseUrl?: string): Promise<void> {
    await this.#inOrder(name, async () => {
      const entry = this.#entries.get(name);
      if (entry?.isActive !== true || (baseUrl !== undefined && entry.baseUrl !== baseUrl)) return;
      await this.#update({ ...entry, isActive: false }, true);
    });
  }

  /**
   * Suggestions of discovery: they overwrite nothing, bring no tokens and lead nowhere until accepted. Returns the names
   * of those that stand there now.
   */
  async propose(found: readonly Omit<Proposal, "proposedAt">[]): Promise<readonly string[]> {
    const rows: ProposalPut[] = [];
    const known = new Set<string>();
    const bySource = new Map<string, number>();
    for (const { name, source } of await this.proposals()) {
      known.add(name);
      bySource.set(serverOf(source), (bySource.get(serverOf(source)) ?? 0) + 1);
    }
    for (const { name, baseUrl, source } of found) {
      if (checkSwarmName(name) !== undefined || name === this.#parts.local() || this.has(name)) continue;
      const url = normaliseUrl(baseUrl);
      if (url === undefined || this.#parts.guard.checkUrl(url) !== undefined) continue;
      const proposal = { name, baseUrl: url, source, proposedAt: this.#parts.clock.now() };
      if (!known.has(name)) {
        const server = serverOf(source);
        const count = bySource.get(server) ?? 0;
        if (count >= MOST_OF_SOURCE) continue;
        bySource.set(server, count + 1);
        known.add(name);
      }
      rows.push({ kind: "federation.proposal.put", proposal, most: MOST_PROPOSALS });
    }
    if (rows.length === 0) return [];
    await this.#parts.store.commit({ appends: [], rows });
    const kept = new Map((await this.proposals()).map(({ name, baseUrl }) => [name, baseUrl]));
    return rows.filter(({ proposal: { name, baseUrl } }) => kept.get(name) === baseUrl).map(nameOf);
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

  /** One after the other for each name: an entry is read, changed and written in one go. */
  async #inOrder(name: string, write: () => Promise<void>): Promise<void> {
    const before = this.#writes.get(name) ?? Promise.resolve();
    const mine = before.then(write, write);
    this.#writes.set(name, mine);
    try {
      await mine;
    } finally {
      if (this.#writes.get(name) === mine) this.#writes.delete(name);
    }
  }

  /** Only in order. */
  async #update(entry: SwarmEntry, keep: boolean): Promise<void> {
    if (keep && !entry.volatile) await this.#parts.store.commit({ appends: [], rows: [putOf(entry)] });
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
    const checked = this.#checkUrl(text);
    if (!checked.ok) throw new FederationError("bad_swarm_url", checked.reason);
    return checked.url;
  }

  #checkUrl(
    text: string,
  ): { readonly ok: true; readonly url: string } | { readonly ok: false; readonly reason: string } {
    const url = normaliseUrl(text);
    if (url === undefined) {
      const shown = text.slice(0, 200);
      return { ok: false, reason: `'${shown}' is not the base URL of a server: write https://host/path` };
    }
    const refusal = this.#parts.guard.checkUrl(url);
    return refusal === undefined ? { ok: true, url } : { ok: false, reason: `${url}: ${refusal.message}` };
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

function describing({ name: _, publicKey: __, ...rest }: SelfDescription) {
  return rest;
}

/** The paths of one server are all its own. */
function serverOf(source: string): string {
  return URL.canParse(source) ? new URL(source).host : source;
}

function nameOf({ proposal }: ProposalPut): string {
  return proposal.name;
}

function putOf(entry: SwarmEntry): SwarmPut {
  return { kind: "federation.swarm.put", name: entry.name, entry: writeEntry(entry) };
}

export function unknownSwarm(name: string): FederationError {
  return new FederationError("unknown_swarm", `no swarm named '${name}' is registered here`);
}
