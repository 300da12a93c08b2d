/**
 * The registered swarms, one list for all callers. Persistent entries are in the table; volatile entries and literal
 * tokens are in memory only (decision E4).
 */

import type { Clock } from "../../base/index.js";
import { MailroomError, ownValue } from "../../base/index.js";
import type { Store } from "../../engine/index.js";
import type { RowWrite } from "../../journal/index.js";
import { checkSwarmName } from "../../mail/index.js";
import { type Guard, type HttpClient, NetError } from "../../net/index.js";
import type {
  FederationReads,
  Proposal,
  ProposalPut,
  ProposalRemove,
  SwarmPut,
  SwarmRemove,
} from "../ports.js";
import { normalizeUrl } from "./base-url.js";
import { type KnownSwarm, newEntry, readEntry, writeEntry } from "./entry.js";
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
  /** Time limit for `GET /` of another swarm, in milliseconds. */
  readonly timeLimit: number;
  /** Names owned by another carrier (decision I1). */
  readonly isNameTaken?: (name: string) => boolean;
  /** Called after each change of a persistent entry; writes the registry file before it returns. */
  readonly changed?: () => void;
}

export interface SwarmRegistration {
  readonly name: string;
  readonly baseUrl: string;
  readonly authToken?: string;
  readonly volatile: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** A successful health check, or a delivery that got a response. */
export interface HealthObservation {
  readonly at: number;
  readonly latency?: number;
  /** The address that answered. Observations of an address that the swarm has left are ignored. */
  readonly baseUrl?: string;
}

/** An entry of the registry file that was not imported, and why. */
export interface SkippedEntry {
  readonly found: FileEntry;
  readonly reason: string;
}

const MOST_PROPOSALS = 1_000;
/** Per server, so that one long list leaves capacity for others. */
const MOST_OF_SOURCE = 100;
const LARGEST_ROOT = 256 * 1024;

export class SwarmRegistry {
  readonly #parts: RegistryParts;
  readonly #entries = new Map<string, KnownSwarm>();
  /** Literal tokens, for this process only. */
  readonly #literals = new Map<string, string>();
  readonly #listeners = new Set<(name: string) => void>();
  /** Swarms that described themselves in this process, at their current URL. */
  readonly #described = new Set<string>();
  /**
   * The last write per name. Writes of one name run in order, so that a late result does not overwrite a newer one.
   */
  readonly #writes = new Map<string, Promise<unknown>>();

  constructor(parts: RegistryParts) {
    this.#parts = parts;
  }

  /** Reads the table, then imports entries of the file that the table lacks. Returns the entries that it skipped. */
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
      const entry: KnownSwarm = { ...found.entry, baseUrl, authRef, volatile: false, isActive: true };
      if (token !== undefined) this.#literals.set(entry.name, token);
      this.#entries.set(entry.name, entry);
      rows.push(putOf(entry));
    }
    if (rows.length > 0) await this.#parts.store.commit({ appends: [], rows });
    return skipped;
  }

  get(name: string): KnownSwarm | undefined {
    return this.#entries.get(name);
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  list(): readonly KnownSwarm[] {
    return [...this.#entries.values()];
  }

  tokenOf(name: string): TokenState {
    const entry = this.#entries.get(name);
    if (entry === undefined) return { kind: "none" };
    return resolveToken(entry.authRef, this.#literals.get(name), this.#parts.env);
  }

  /** Returns the variables that entries refer to, and whether each is set. */
  variables(): Readonly<Record<string, boolean>> {
    const found: Record<string, boolean> = {};
    for (const { authRef } of this.#entries.values()) {
      const variable = authRef === null ? undefined : variableIn(authRef);
      if (variable !== undefined) found[variable] = (ownValue(this.#parts.env, variable) ?? "") !== "";
    }
    return found;
  }

  /** Calls the listener whenever a swarm is added, changed or removed. */
  onChange(listener: (name: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Adds a swarm or replaces its entry. An unreachable swarm is stored as inactive (decision E3).
   * @throws MailroomError `bad_swarm_name`, `bad_swarm_url`, `name_differs`
   */
  async register(swarm: SwarmRegistration, rows: readonly RowWrite[] = []): Promise<KnownSwarm> {
    const { name, volatile, authToken } = swarm;
    const wrong = checkSwarmName(name);
    if (wrong !== undefined) throw new MailroomError("bad_swarm_name", wrong);
    if (name === this.#parts.local()) {
      throw new MailroomError("bad_swarm_name", `'${name}' is the local swarm and cannot be registered`);
    }
    if (this.#parts.isNameTaken?.(name) === true) {
      throw new MailroomError("bad_swarm_name", `the name '${name}' is already used by another carrier`);
    }
    const baseUrl = this.#checkedUrl(swarm.baseUrl);
    const found = await this.#describe(baseUrl);
    if (found !== undefined && found.name !== null && found.name !== name) {
      throw new MailroomError(
        "name_differs",
        `the swarm at ${baseUrl} announces the name '${found.name}', not '${name}': register it under that name`,
      );
    }
    const given = authToken === undefined || authToken === "" ? undefined : authToken;
    const isReference = given !== undefined && variableIn(given) !== undefined;
    const literal = given === undefined || isReference ? undefined : given;
    // Without a token, the variable that the operator has set for this swarm is meant.
    const standard = defaultReference(name);
    const isSet = resolveToken(standard, undefined, this.#parts.env).kind === "ready";
    const kept = given === undefined ? (isSet ? standard : null) : volatile ? null : standard;
    const entry: KnownSwarm = {
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

  /** @throws MailroomError `unknown_swarm` */
  async unregister(name: string, rows: readonly RowWrite[] = []): Promise<void> {
    const remove: SwarmRemove = { kind: "federation.swarm.remove", name };
    await this.#inOrder(name, async () => {
      if (!this.#entries.has(name)) throw unknownSwarm(name);
      await this.#parts.store.commit({ appends: [], rows: [remove, ...rows] });
      this.#entries.delete(name);
      this.#literals.delete(name);
      this.#described.delete(name);
      for (const listener of this.#listeners) listener(name);
      // Otherwise the next start would import the swarm from the file again.
      this.#parts.changed?.();
    });
  }

  /** Records that the swarm answered: it is active, and its description is fetched if unknown. */
  async seen(name: string, observation: HealthObservation): Promise<void> {
    const { baseUrl } = observation;
    const entry = this.#entries.get(name);
    if (entry === undefined || (baseUrl !== undefined && entry.baseUrl !== baseUrl)) return;
    // A swarm that was inactive, or was described before this process started, may run another version now.
    const needsDescription = !this.#described.has(name) || entry.version === null || !entry.isActive;
    const found = needsDescription ? await this.#describe(entry.baseUrl) : undefined;
    await this.#note(entry, observation, found);
  }

  async #note(
    entry: KnownSwarm,
    { at, latency }: HealthObservation,
    found: SelfDescription | undefined,
  ): Promise<void> {
    const { name } = entry;
    await this.#inOrder(name, async () => {
      const now = this.#entries.get(name);
      if (now?.baseUrl !== entry.baseUrl) return;
      const described = found !== undefined && (found.name === null || found.name === name);
      const next: KnownSwarm = {
        ...now,
        ...(described && describing(found)),
        // Only the first key is trusted. This swarm was unreachable when it was registered, so it has none yet.
        ...(described && now.publicKey === null && { publicKey: found.publicKey }),
        isActive: true,
        lastSeen: at,
        ...(latency !== undefined && { latency }),
      };
      await this.#update(next, !now.isActive || described);
      if (described) this.#described.add(name);
    });
  }

  /**
   * Fetches the description of a swarm that was unreachable so far: how mail is sent depends on it.
   * @throws NetError
   */
  async describeUnknown(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined || entry.version !== null) return;
    const found = await this.#fetchDescription(entry.baseUrl).catch((error: unknown) => {
      // It is reachable, and will never be described.
      if (error instanceof NetError && error.code === "response_too_large") return undefined;
      throw error;
    });
    if (found !== undefined) await this.#note(entry, { at: this.#parts.clock.now() }, found);
  }

  /** Marks the swarm inactive after too many failed checks of its address. */
  async lost(name: string, baseUrl?: string): Promise<void> {
    await this.#inOrder(name, async () => {
      const entry = this.#entries.get(name);
      if (entry?.isActive !== true || (baseUrl !== undefined && entry.baseUrl !== baseUrl)) return;
      await this.#update({ ...entry, isActive: false }, true);
    });
  }

  /**
   * Stores discovered swarms as proposals. They overwrite nothing, carry no tokens, and are not called until
   * accepted. Returns the names that are stored now.
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
      const url = normalizeUrl(baseUrl);
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
   * Registers a proposed swarm under the proposed URL.
   * @throws MailroomError `unknown_proposal`, and those of `register`
   */
  async accept(
    name: string,
    terms: Pick<SwarmRegistration, "authToken" | "volatile">,
    rows: readonly RowWrite[] = [],
  ): Promise<KnownSwarm> {
    const { baseUrl } = await this.#proposal(name);
    return this.register({ name, baseUrl, ...terms }, rows);
  }

  /** Removes a proposal. The swarm may be proposed again. @throws MailroomError `unknown_proposal` */
  async reject(name: string, rows: readonly RowWrite[] = []): Promise<void> {
    await this.#proposal(name);
    const remove: ProposalRemove = { kind: "federation.proposal.remove", name };
    await this.#parts.store.commit({ appends: [], rows: [remove, ...rows] });
  }

  async #proposal(name: string): Promise<Proposal> {
    const found = (await this.proposals()).find((proposal) => proposal.name === name);
    if (found !== undefined) return found;
    throw new MailroomError("unknown_proposal", `no swarm named '${name}' is proposed`);
  }

  /** Runs writes of one name in order, so that read, change and write of an entry are one step. */
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

  /** Call only within `#inOrder`. */
  async #update(entry: KnownSwarm, keep: boolean): Promise<void> {
    if (keep && !entry.volatile) await this.#parts.store.commit({ appends: [], rows: [putOf(entry)] });
    if (keep) {
      this.#set(entry);
      this.#parts.changed?.();
    } else this.#entries.set(entry.name, entry);
  }

  #set(entry: KnownSwarm): void {
    this.#entries.set(entry.name, entry);
    for (const listener of this.#listeners) listener(entry.name);
  }

  #checkedUrl(text: string): string {
    const checked = this.#checkUrl(text);
    if (!checked.ok) throw new MailroomError("bad_swarm_url", checked.reason);
    return checked.url;
  }

  #checkUrl(
    text: string,
  ): { readonly ok: true; readonly url: string } | { readonly ok: false; readonly reason: string } {
    const url = normalizeUrl(text);
    if (url === undefined) {
      const shown = text.slice(0, 200);
      return { ok: false, reason: `'${shown}' is not a valid base URL: write https://host/path` };
    }
    const refusal = this.#parts.guard.checkUrl(url);
    return refusal === undefined ? { ok: true, url } : { ok: false, reason: `${url}: ${refusal.message}` };
  }

  /** The swarm's self-description; undefined if it is unreachable or does not answer like a MAIL server. */
  async #describe(baseUrl: string): Promise<SelfDescription | undefined> {
    try {
      return await this.#fetchDescription(baseUrl);
    } catch (error) {
      if (error instanceof NetError) return undefined;
      throw error;
    }
  }

  /** @throws NetError */
  async #fetchDescription(baseUrl: string): Promise<SelfDescription | undefined> {
    const { client, guard, timeLimit } = this.#parts;
    const answer = await client.request(`${baseUrl}/`, {
      guard,
      timeLimit,
      maxBytes: LARGEST_ROOT,
      headers: { accept: "application/json" },
    });
    return answer.status === 200 ? readSelfDescription(answer.text()) : undefined;
  }
}

function describing({ name: _, publicKey: __, ...rest }: SelfDescription) {
  return rest;
}

/** Paths on one server count as the same source. */
function serverOf(source: string): string {
  return URL.canParse(source) ? new URL(source).host : source;
}

function nameOf({ proposal }: ProposalPut): string {
  return proposal.name;
}

function putOf(entry: KnownSwarm): SwarmPut {
  return { kind: "federation.swarm.put", name: entry.name, entry: writeEntry(entry) };
}

export function unknownSwarm(name: string): MailroomError {
  return new MailroomError("unknown_swarm", `no swarm named '${name}' is registered`);
}
