/** What the server reports about itself, for `GET /`, `GET /health` and `GET /status`. */
import { LRUCache } from "lru-cache";
import type { Clock } from "../base/index.js";
import type { OutboxQueue } from "./outbox-queue.js";

export interface ExtensionHealth {
  readonly status: "ok" | "degraded";
  readonly detail?: string;
}

/** Where figures come from, one row per second. */
export interface StatsSource {
  onRow(listener: (row: readonly (number | null)[]) => void): () => void;
}

/** The part of an extension that the server reports. */
interface Reporting {
  readonly capabilities?: readonly string[];
  readonly info?: Readonly<Record<string, unknown>>;
  readonly outbox?: OutboxQueue;
  health?(): ExtensionHealth;
}

export interface NamedExtension<E = Reporting> {
  readonly name: string;
  readonly extension: E;
}

/** Milliseconds after which a user without a request no longer counts as active. */
const ACTIVE_FOR = 60 * 60 * 1000;
const MAX_ACTIVE = 100_000;

export class ServerState {
  readonly startedAt: number;
  /** What an admin said with `POST /health`. */
  status: { readonly word: string; readonly since: number };
  /** Figures by the second, while a listener serves. */
  stats: StatsSource | undefined;
  readonly #active = new LRUCache<string, true>({ max: MAX_ACTIVE, ttl: ACTIVE_FOR });
  readonly #extensions: () => readonly NamedExtension[];
  readonly #queues: readonly OutboxQueue[];

  /** @param queues of carriers whose outbox the server keeps */
  constructor(
    clock: Clock,
    extensions: () => readonly NamedExtension[] = () => [],
    queues: readonly OutboxQueue[] = [],
  ) {
    this.#queues = queues;
    this.startedAt = clock.now();
    this.status = { word: "healthy", since: this.startedAt };
    this.#extensions = extensions;
  }

  recordUser(id: string): void {
    this.#active.set(id, true);
  }

  get activeUsers(): number {
    this.#active.purgeStale();
    return this.#active.size;
  }

  get capabilities(): readonly string[] {
    return this.#extensions().flatMap(({ extension }) => extension.capabilities ?? []);
  }

  /** Further fields of `GET /`. */
  get info(): Readonly<Record<string, unknown>> {
    return Object.assign({}, ...this.#extensions().map(({ extension }) => extension.info ?? {}));
  }

  /** The queues of the outbox. */
  get outbox(): readonly OutboxQueue[] {
    return [...this.#extensions().flatMap(({ extension }) => extension.outbox ?? []), ...this.#queues];
  }

  /** Extensions that are not well. */
  get degraded(): readonly (ExtensionHealth & { readonly extension: string })[] {
    return this.#extensions().flatMap(({ name, extension }) => {
      const health = extension.health?.();
      return health === undefined || health.status === "ok" ? [] : [{ ...health, extension: name }];
    });
  }
}
