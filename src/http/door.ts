/** What the routes share: the mailroom behind the door, and what the door itself keeps track of. */
import { LRUCache } from "lru-cache";
import type { Clock } from "../engine/ports.js";
import { systemClock } from "../library/clock.js";
import type { Mailroom } from "../library/mailroom.js";
import { Closing } from "./closing.js";
import { Gathering } from "./gathering.js";
import type { IdempotencyParts } from "./idempotency.js";
import { Metrics } from "./metrics.js";
import { DEFAULT_HTTP_LIMITS, type HttpLimits, type ServerOptions } from "./options.js";
import { Places } from "./places.js";
import { type Registry, registryOf } from "./registry.js";
import { Revocations } from "./revocations.js";
import type { Caller } from "./route.js";
import { httpStateOf } from "./state.js";
import { Turns } from "./turns.js";
import { Writes } from "./writes.js";

/** Milliseconds after which a user who does nothing is not counted as active. */
const ACTIVE_FOR = 60 * 60 * 1000;
const MOST_ACTIVE = 100_000;
/** Answers with whole tasks that are made for one caller at the same time: a task may be large. */
const WHOLE_TASKS_AT_ONCE = 4;

export interface Health {
  readonly status: string;
  /** When it changed, in milliseconds since the epoch. */
  readonly since: number;
}

export class Door {
  readonly options: ServerOptions;
  readonly mailroom: Mailroom;
  readonly limits: HttpLimits;
  readonly clock: Clock;
  readonly kept: IdempotencyParts;
  readonly writes: Writes;
  /** Of those who want to write to tasks. */
  readonly writers = new Gathering();
  readonly waits: Places;
  readonly streams: Places;
  /** Of those who want everything about tasks. */
  readonly wholeTasks: Turns;
  readonly metrics: Metrics;
  readonly revocations: Revocations;
  readonly startedAt: number;
  /** Hash of the definition that is configured, whatever was loaded over HTTP since. */
  configuredSwarm: string;
  health: Health;
  /** Told when the server closes: those who wait are let go, the tasks go on. */
  readonly closing = new Closing();
  readonly #active = new LRUCache<string, true>({ max: MOST_ACTIVE, ttl: ACTIVE_FOR });

  constructor(options: ServerOptions) {
    this.options = options;
    this.mailroom = options.mailroom;
    this.limits = { ...DEFAULT_HTTP_LIMITS, ...options.limits };
    this.clock = options.clock ?? systemClock;
    this.startedAt = this.clock.now();
    this.configuredSwarm = options.mailroom.swarm.hash;
    this.revocations = new Revocations(options.authenticator);
    this.health = { status: "healthy", since: this.startedAt };
    const { store, runtime } = options.mailroom;
    this.kept = { state: httpStateOf(store), store, clock: this.clock };
    this.writes = new Writes(this.kept, runtime);
    const { waits, waitsPerCaller, streams, streamsPerCaller } = this.limits;
    this.waits = new Places("requests can wait", waits, waitsPerCaller);
    this.streams = new Places("streams can be open", streams, streamsPerCaller);
    const askers = new Places("requests can wait for whole tasks", waits, waitsPerCaller);
    this.wholeTasks = new Turns(askers, WHOLE_TASKS_AT_ONCE);
    this.metrics = new Metrics({
      figures: () => runtime.figures,
      store: () => store.writer.health,
      now: () => this.clock.now(),
      waits: () => this.waits.taken,
      streams: () => this.streams.taken,
    });
  }

  /** Other swarms, where this server keeps a list of them. */
  get registry(): Registry | undefined {
    const { registry, federation } = this.options;
    return registry ?? (federation === undefined ? undefined : registryOf(federation));
  }

  /** What every stream of a task needs. */
  get streaming() {
    const { mailroom, limits, clock, closing, revocations } = this;
    return { mailroom, limits, clock, closing, revocations, heartbeat: this.options.heartbeat ?? 15_000 };
  }

  /** Notes that a caller did something, and holds its credential for the agents (in memory only, decisions H1). */
  meet(caller: Caller, authorization: string | undefined): void {
    if (caller.principal.role === "user") this.#active.set(caller.principal.id, true);
    const token = authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (token !== undefined) this.mailroom.runtime.setParams(caller.instance, { user_token: token });
  }

  get activeUsers(): number {
    this.#active.purgeStale();
    return this.#active.size;
  }
}
