/** Connects the parts of federation: registry, router, inbound mail, health checks and event streams. */

import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Clock, Ids } from "../base/index.js";
import { defaultsOf, type Random, type Report } from "../base/index.js";
import { createFile, replaceFile } from "../base/node.js";
import type { Action, Carrier, Runtime, Store, TaskStatus } from "../engine/index.js";
import { isIdle } from "../engine/index.js";
import type { Bus, JournalKey, RowWrite } from "../journal/index.js";
import { PROTOCOL_VERSION, parseTaskContributor } from "../mail/index.js";

import {
  createHttpClient,
  type Guard,
  type HttpClient,
  type Resolve,
  type TlsOptions,
} from "../net/index.js";
import { discoverSwarmsAction } from "./actions.js";
import { federationGuards } from "./guards.js";
import { Inbound, takesPart } from "./inbound/inbound.js";
import { type FederationStore, federationStoreOf, type ReceivedExpire } from "./ports.js";
import { formatRegistryFile, readRegistryFile } from "./registry/file.js";
import { HealthChecks, type HealthRecord, type HealthResult } from "./registry/health.js";
import { type SkippedEntry, SwarmRegistry, unknownSwarm } from "./registry/registry.js";
import type { Environment } from "./registry/token.js";
import { ReplyChecks, TASK_QUERY_CAPABILITY } from "./router/reply-checks.js";
import { QUEUE, Router } from "./router/router.js";
import { type FederationSettings, federationSettings } from "./settings.js";
import { EventCopier, MOST_STREAMS } from "./streams/copier.js";
import { generateSigningKey, readSigningKey, type SigningKey } from "./wrapper/signature.js";

export interface FederationOptions {
  /** Must have federation's tables. */
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  /** The name of the local swarm. */
  readonly swarm: string;
  readonly settings?: Partial<FederationSettings>;
  /** File of the key that signs wrappers. Without it, wrappers are not signed. */
  readonly keyFile?: string;
  /** A registry file in the reference's format (decision E4, REF-16). */
  readonly registryFile?: string;
  /** Public URL of this server; used only in the registry file. */
  readonly publicUrl?: string;
  /** Environment that token references are resolved in. Default: empty. */
  readonly env?: Environment;
  readonly tls?: TlsOptions;
  /** Resolves host names. Default: the operating system's resolver. */
  readonly resolve?: Resolve;
  /** Names owned by another carrier (decision I1). */
  readonly isNameTaken?: (name: string) => boolean;
  readonly random?: Random;
  readonly report: Report;
}

/**
 * Capabilities beyond the protocol that `GET /` announces (decision E5, decision E6, decision E7): duplicate detection, event streams
 * and questions about tasks.
 */
export const CAPABILITIES: readonly string[] = ["dedupe", "events", TASK_QUERY_CAPABILITY];

const SWEEP_INTERVAL = 60 * 60 * 1000;
/** The first sweep runs early, so that servers that restart often also sweep. */
const FIRST_SWEEP = 60 * 1000;
/** Extra connections to each swarm, so that a health check does not wait for a hanging delivery. */
const CHECKS_PER_SWARM = 4;

export interface SwarmUpkeep extends HealthRecord {
  /** Mail for it that is not delivered. */
  readonly waiting: number;
}

export class Federation {
  readonly settings: FederationSettings;
  readonly registry: SwarmRegistry;
  /** For untrusted URLs: connects only to destinations that the operator allowed. */
  readonly client: HttpClient;
  readonly publicKey: string | undefined;
  readonly #options: FederationOptions;
  readonly #store: FederationStore;
  readonly #guard: Guard;
  readonly #untrusted: Guard;
  readonly #router: Router;
  readonly #health: HealthChecks;
  /** Streams stay open, so they use their own connections and leave those of mail free. */
  readonly #streamClient: HttpClient;
  #started:
    | {
        readonly inbound: Inbound;
        readonly runtime: Runtime;
        readonly copier: EventCopier;
        readonly replies: ReplyChecks;
      }
    | undefined;
  /** Entries of the registry file that are unusable here. They stay in the file unchanged. */
  #skipped: readonly SkippedEntry[] = [];
  #cancelSweep: () => void = () => {};
  #unsubscribe: () => void = () => {};

  private constructor(options: FederationOptions, signingKey: SigningKey | undefined) {
    const { clock, ids, report, random = Math.random, env = {}, tls } = options;
    const settings = { ...defaultsOf(federationSettings), ...options.settings };
    this.settings = settings;
    this.#options = options;
    this.#store = federationStoreOf(options.store);
    this.publicKey = signingKey?.publicKey;
    const { untrusted, registered: guard } = federationGuards(settings.allow);
    this.#guard = guard;
    this.#untrusted = untrusted;
    const http = {
      clock,
      guard: untrusted,
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
      timeLimit: settings.healthTimeout,
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
      onAccepted: (key, swarm) => this.#started?.replies.accepted(key, swarm),
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
      const message = `${registryFile}: '${found.entry.name}' was not imported: ${reason}`;
      options.report({ code: "registry_file", message, cause: undefined });
    }
    return federation;
  }

  /** Pass it to the runtime before the runtime recovers its tasks. */
  get outbox(): Router["outbox"] {
    return this.#router.outbox;
  }

  get carrier(): Carrier {
    return this.#router;
  }

  /** For the runtime: the implementation of `discover_swarms`. */
  get systemActions(): readonly Action[] {
    const { registry, client, settings } = this;
    return [discoverSwarmsAction({ registry, client, guard: this.#untrusted, policy: settings.discovery })];
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
      tellsContributors: (swarm) => registry.get(swarm)?.capabilities.includes("dedupe") === true,
    });
    const local = () => runtime.rules.swarm;
    const copier = new EventCopier({
      runtime,
      bus,
      clock,
      random,
      registry,
      client: this.#streamClient,
      guard,
      local,
    });
    const { report } = this.#options;
    const { client } = this;
    const replies = new ReplyChecks({ runtime, registry, client, guard, clock, random, settings, report });
    this.#started = { inbound, runtime, copier, replies };
    // Fail mail to an unregistered swarm now instead of at its next attempt.
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

  /** Stops sending. Call it while the runtime still runs: outcomes of running attempts are committed. */
  async stop(): Promise<void> {
    this.#cancelSweep();
    this.#unsubscribe();
    this.#started?.copier.stop();
    this.#started?.replies.stop();
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

  /** What health checks found, and how much mail waits for each swarm. */
  async upkeep(): Promise<(name: string) => SwarmUpkeep> {
    const waiting = await this.#store.outbox.waitingByTarget(QUEUE);
    return (name) => ({ ...this.#health.recordOf(name), waiting: waiting.get(name) ?? 0 });
  }

  /** Runs one health check now; a successful one makes the swarm active. @throws MailroomError `unknown_swarm` */
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

  /** Finds the task with this id that a peer may watch: one that it owns or works on (decision E7). */
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

  /** Says where a task stands here, and whether anything is left to do for it, to a peer that may watch it. */
  async standing(
    peer: string,
    taskId: string,
  ): Promise<{ readonly status: TaskStatus; readonly busy: boolean } | undefined> {
    const key = await this.watchable(peer, taskId);
    if (key === undefined) return undefined;
    return this.#started?.runtime.read(key, (state) => ({ status: state.status, busy: !isIdle(state) }));
  }

  /** Returns the owner of a task that a peer works on, for older message forms that do not name it (REF-10). */
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

  /**
   * A name belongs to one carrier (decision I1). Checked at start, because other carriers may open after the registry
   * is read.
   */
  #reportNamesTaken(): void {
    const { isNameTaken, report } = this.#options;
    for (const { name } of this.registry.list()) {
      if (isNameTaken?.(name) !== true) continue;
      const message = `the name of swarm '${name}' is used by another carrier: unregister the swarm or rename the other`;
      report({ code: "name_taken", message, cause: undefined });
    }
  }

  #armSweep(wait: number): void {
    this.#cancelSweep = this.#options.clock.after(wait, () => {
      const before = this.#options.clock.now() - this.settings.dedupeWindow;
      const expire: ReceivedExpire = { kind: "federation.received.expire", before };
      const rows: RowWrite[] = [expire, this.#router.purge()];
      this.#store.commit({ appends: [], rows }).catch((cause: unknown) => {
        this.#options.report({
          code: "federation_sweep",
          message: "removing expired message ids failed",
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
      this.#options.report({ code: "registry_file", message: `writing ${registryFile} failed`, cause });
    }
  }
}

/** Reads this server's signing key, or creates it. Only the file's owner can read the file. */
async function openSigningKey(path: string): Promise<SigningKey> {
  try {
    return readSigningKey(await readFile(path, "utf8"));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  const pem = generateSigningKey();
  createFile(path, pem);
  return readSigningKey(pem);
}
