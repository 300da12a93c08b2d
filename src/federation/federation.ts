/** Everything between this swarm and others, put together. */
import { existsSync, readFileSync } from "node:fs";
import type { Action } from "../engine/agent.js";
import type { Carrier } from "../engine/carrier.js";
import type { Bus, Clock, Ids, JournalKey, RowWrite, Store } from "../engine/ports.js";
import type { Runtime } from "../engine/runtime/index.js";
import { replaceFile } from "../files/durable.js";
import { PROTOCOL_VERSION } from "../mail/message.js";
import { parseTaskContributor } from "../mail/owner.js";
import {
  createHttpClient,
  type Guard,
  type HttpClient,
  type Random,
  type Resolve,
  type TlsOptions,
} from "../net/index.js";
import { discoverSwarmsAction } from "./actions.js";
import { federationGuards } from "./guards.js";
import { Inbound, takesPart } from "./inbound/inbound.js";
import { openSigningKey } from "./key-file.js";
import { type FederationStore, federationStoreOf, type ReceivedExpire } from "./ports.js";
import { formatRegistryFile, readRegistryFile } from "./registry/file.js";
import { HealthChecks, type HealthResult } from "./registry/health.js";
import { type SkippedEntry, SwarmRegistry, unknownSwarm } from "./registry/registry.js";
import type { Environment } from "./registry/token.js";
import { Router } from "./router/router.js";
import { DEFAULT_FEDERATION_SETTINGS, type FederationSettings } from "./settings.js";
import { MOST_STREAMS, StreamCopier } from "./streams/copier.js";
import type { SigningKey } from "./wrapper/signature.js";

export interface FederationProblem {
  readonly code: string;
  readonly message: string;
  readonly cause: unknown;
}

export interface FederationOptions {
  /** With the tables of this room. */
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  /** The name of the local swarm. */
  readonly swarm: string;
  readonly settings?: Partial<FederationSettings>;
  /** Where the key is kept that signs wrappers; without it they are not signed. */
  readonly keyFile?: string;
  /** A registry file in the reference's form (decisions E4). */
  readonly registryFile?: string;
  /** Where others reach this server; only for the registry file. */
  readonly publicUrl?: string;
  /** Where references to tokens are looked up. Default: none are. */
  readonly env?: Environment;
  readonly tls?: TlsOptions;
  /** How names become addresses. Default: as the operating system does it. */
  readonly resolve?: Resolve;
  /** Names that are another carrier's (decisions I). */
  readonly isNameTaken?: (name: string) => boolean;
  readonly random?: Random;
  readonly report: (problem: FederationProblem) => void;
}

/** What this server can do beyond the protocol, for `GET /` (decisions E5, E7). */
export const CAPABILITIES: readonly string[] = ["dedupe", "events"];

const SWEEP_INTERVAL = 60 * 60 * 1000;
/** Servers that never run for an hour are swept, too. */
const FIRST_SWEEP = 60 * 1000;
/** Connections to a swarm beside those of mail, so that a check does not wait for mail that hangs. */
const CHECKS_PER_SWARM = 4;

export class Federation {
  readonly settings: FederationSettings;
  readonly registry: SwarmRegistry;
  /** For URLs that agents and strangers bring: nothing but what the operator allowed. */
  readonly client: HttpClient;
  readonly publicKey: string | undefined;
  readonly #options: FederationOptions;
  readonly #store: FederationStore;
  readonly #guard: Guard;
  readonly #foreign: Guard;
  readonly #router: Router;
  readonly #health: HealthChecks;
  /** Streams stay open: they must not take connections away from mail. */
  readonly #streamClient: HttpClient;
  #started:
    | { readonly inbound: Inbound; readonly runtime: Runtime; readonly copier: StreamCopier }
    | undefined;
  /** What the registry file has and we cannot use. It is its author's, and stays there. */
  #skipped: readonly SkippedEntry[] = [];
  #cancelSweep: () => void = () => {};
  #unsubscribe: () => void = () => {};

  private constructor(options: FederationOptions, signingKey: SigningKey | undefined) {
    const { clock, ids, report, random = Math.random, env = {}, tls } = options;
    const settings = { ...DEFAULT_FEDERATION_SETTINGS, ...options.settings };
    this.settings = settings;
    this.#options = options;
    this.#store = federationStoreOf(options.store);
    this.publicKey = signingKey?.publicKey;
    const { foreign, registered: guard } = federationGuards(settings.allow);
    this.#guard = guard;
    this.#foreign = foreign;
    const http = {
      clock,
      guard: foreign,
      userAgent: `MAIL-Interswarm-Router/${options.swarm}`,
      ...(tls !== undefined && { tls }),
      ...(options.resolve !== undefined && { resolve: options.resolve }),
    };
    this.client = createHttpClient({
      ...http,
      connectionsPerOrigin: settings.attemptsPerSwarm + CHECKS_PER_SWARM,
    });
    this.#streamClient = createHttpClient({ ...http, connectionsPerOrigin: MOST_STREAMS });
    const store = this.#store;
    const { client } = this;
    const local = () => options.swarm;
    this.registry = new SwarmRegistry({
      store,
      clock,
      client,
      guard,
      env,
      local,
      timeLimit: settings.healthTime,
      ...(options.isNameTaken !== undefined && { isNameTaken: options.isNameTaken }),
      changed: () => this.#writeFile(),
    });
    const { registry } = this;
    this.#router = new Router({
      store,
      registry,
      client,
      guard,
      clock,
      ids,
      random,
      settings,
      local,
      signingKey,
      report,
    });
    this.#health = new HealthChecks({
      registry,
      client,
      guard,
      clock,
      random,
      settings,
      report,
      onReturn: (name) => this.#router.retryNow(name),
    });
  }

  /** Reads the registry. Nothing is sent before `start`. */
  static async open(options: FederationOptions): Promise<Federation> {
    const key = options.keyFile === undefined ? undefined : await openSigningKey(options.keyFile);
    const federation = new Federation(options, key);
    const { registryFile, swarm } = options;
    const fromFile = registryFile === undefined ? [] : await readRegistryFile(registryFile, swarm);
    federation.#skipped = await federation.registry.load(fromFile);
    for (const { found, reason } of federation.#skipped) {
      const message = `${registryFile}: '${found.entry.name}' is not taken over: ${reason}`;
      options.report({ code: "registry_file", message, cause: undefined });
    }
    return federation;
  }

  /** For the runtime, before it takes up its tasks. */
  get carrier(): Carrier {
    return this.#router;
  }

  /** For the runtime, too: what `discover_swarms` does. */
  get systemActions(): readonly Action[] {
    const { registry, client, settings } = this;
    return [discoverSwarmsAction({ registry, client, guard: this.#foreign, policy: settings.discovery })];
  }

  start(runtime: Runtime, bus: Bus): void {
    const { clock, random = Math.random } = this.#options;
    const { registry, settings } = this;
    const guard = this.#guard;
    const inbound = new Inbound({
      reads: this.#store.federation,
      runtime,
      clock,
      settings,
      keyOf: (swarm) => registry.get(swarm)?.publicKey ?? null,
      isKnown: (swarm) => registry.has(swarm),
    });
    const local = () => runtime.rules.swarm;
    const copier = new StreamCopier({
      runtime,
      bus,
      clock,
      random,
      registry,
      client: this.#streamClient,
      guard,
      local,
    });
    this.#started = { inbound, runtime, copier };
    // Who waits for a swarm that is not known any more is told now, and not at the next attempt.
    this.#unsubscribe = registry.onChange((name) => {
      if (!registry.has(name)) this.#router.retryNow(name);
    });
    this.#writeFile({ unlessSame: true });
    this.#reportNamesTaken();
    this.#router.start(runtime);
    this.#health.start();
    copier.start();
    this.#armSweep(FIRST_SWEEP);
  }

  /** Sends nothing more. To be called while the runtime still works: it is told what became of what was under way. */
  async stop(): Promise<void> {
    this.#cancelSweep();
    this.#unsubscribe();
    this.#started?.copier.stop();
    await this.#health.stop();
    await this.#router.stop();
  }

  async close(): Promise<void> {
    await this.stop();
    await Promise.all([this.client.close(), this.#streamClient.close()]);
  }

  /** @throws Error before `start` */
  get inbound(): Inbound {
    if (this.#started === undefined) throw new Error("federation has not been started");
    return this.#started.inbound;
  }

  /** One health check, now; a good one makes the swarm active. @throws FederationError `unknown_swarm` */
  async ping(name: string): Promise<HealthResult> {
    const entry = this.registry.get(name);
    if (entry === undefined) throw unknownSwarm(name);
    const result = await this.#health.check(entry.baseUrl);
    if (result.ok) {
      const { latency } = result;
      await this.registry.seen(name, { at: this.#options.clock.now(), latency, baseUrl: entry.baseUrl });
      this.#router.retryNow(name);
    }
    return result;
  }

  /**
   * A task of this id that a peer may watch: its own, one that it owns elsewhere, or one that it works on
   * (decisions E7).
   */
  async watchable(peer: string, taskId: string): Promise<JournalKey | undefined> {
    const runtime = this.#started?.runtime;
    if (runtime === undefined) return undefined;
    const own = await runtime.find({ role: "swarm", id: peer }, taskId);
    if (own !== undefined) return own;
    for (const { key } of await this.#store.federation.links(taskId)) {
      const may = await runtime.read(
        key,
        (state) => takesPart(state, peer) || parseTaskContributor(state.owner).swarm === peer,
      );
      if (may === true) return key;
    }
    return undefined;
  }

  /** Whose task it is that a peer takes part in, for forms of mail that do not say so (mail.md 7.8). */
  async ownership(
    peer: string,
    taskId: string,
  ): Promise<{ readonly owner: string; readonly contributors: readonly string[] } | undefined> {
    const key = await this.watchable(peer, taskId);
    if (key === undefined) return undefined;
    return this.#started?.runtime.read(key, ({ owner, contributors }) => ({
      owner,
      contributors: [...contributors],
    }));
  }

  /** Decisions I. Only now: when the registry is read, not everything else that has names is open yet. */
  #reportNamesTaken(): void {
    const { isNameTaken, report } = this.#options;
    for (const { name } of this.registry.list()) {
      if (isNameTaken?.(name) !== true) continue;
      const message = `swarm '${name}' has the name of something else here: unregister it, or rename the other`;
      report({ code: "name_taken", message, cause: undefined });
    }
  }

  #armSweep(wait: number): void {
    this.#cancelSweep = this.#options.clock.after(wait, () => {
      const before = this.#options.clock.now() - this.settings.remember;
      const expire: ReceivedExpire = { kind: "federation.received.expire", before };
      const rows: RowWrite[] = [expire, this.#router.purge()];
      this.#store.commit({ appends: [], rows }).catch((cause: unknown) => {
        this.#options.report({
          code: "federation_sweep",
          message: "old message ids were not removed",
          cause,
        });
      });
      this.#armSweep(SWEEP_INTERVAL);
    });
  }

  #writeFile({ unlessSame = false } = {}): void {
    const { registryFile, swarm, publicUrl } = this.#options;
    if (registryFile === undefined) return;
    const definition = this.#started?.runtime.definition;
    const local = {
      name: swarm,
      baseUrl: publicUrl ?? null,
      description: definition?.description ?? "",
      keywords: definition?.keywords ?? [],
      public: definition?.public ?? false,
      version: PROTOCOL_VERSION,
    };
    try {
      const others = this.#skipped
        .map(({ found }) => found)
        .filter(({ entry }) => !this.registry.has(entry.name));
      const text = formatRegistryFile(local, this.registry.list(), others);
      if (unlessSame && existsSync(registryFile) && readFileSync(registryFile, "utf8") === text) return;
      replaceFile(registryFile, text);
    } catch (cause) {
      this.#options.report({ code: "registry_file", message: `${registryFile} was not written`, cause });
    }
  }
}
