/** State shared by the requests of one listener. */
import { type Clock, defaultsOf, systemClock } from "../base/index.js";
import { FairTurns } from "../base/node.js";
import type { Store } from "../engine/index.js";
import type { Caller } from "../extension/index.js";
import type { Mailroom } from "../library/index.js";
import type { FullStore, HttpStore } from "../store/index.js";
import { Metrics, Stats } from "../telemetry/index.js";
import type { IdempotencyParts } from "./idempotency.js";
import { IdempotentWrites } from "./idempotent-writes.js";
import type { ListenerOptions } from "./options.js";
import { OutboxWaiting } from "./outbox-waiting.js";
import { QueuedSlots } from "./queued-slots.js";
import { RevocationWatcher } from "./revocations.js";
import { type HttpLimits, httpSettings } from "./settings.js";
import { ShutdownSignal } from "./shutdown.js";
import { Slots } from "./slots.js";
import { StreamMemory } from "./stream-memory.js";
import { TickBatcher } from "./tick-batcher.js";

/** Complete tasks read concurrently for one caller, because a task may be large. */
const WHOLE_TASKS_AT_ONCE = 4;

export class HttpContext {
  readonly options: ListenerOptions;
  readonly mailroom: Mailroom;
  readonly limits: HttpLimits;
  readonly clock: Clock;
  readonly kept: IdempotencyParts;
  readonly writes: IdempotentWrites;
  /** Requests that write to tasks. */
  readonly writers = new TickBatcher();
  readonly waits: Slots;
  readonly streams: Slots;
  readonly wholeTasks: QueuedSlots;
  /** For work that takes long: one piece of a caller begins in a turn of the event loop. */
  readonly turns = new FairTurns();
  readonly memory = new StreamMemory();
  readonly metrics: Metrics;
  readonly stats: Stats;
  readonly revocations: RevocationWatcher;
  /** Begins when the listener closes: waiting requests are answered, and their tasks continue. */
  readonly closing = new ShutdownSignal();

  constructor(options: ListenerOptions) {
    this.options = options;
    this.mailroom = options.mailroom;
    this.limits = { ...defaultsOf(httpSettings), ...options.limits };
    this.clock = options.clock ?? systemClock;
    this.revocations = new RevocationWatcher(options.authenticator, this.clock, this.limits.credentialReview);
    const { store, runtime } = options.mailroom;
    this.kept = { state: httpStoreOf(store), store, clock: this.clock };
    this.writes = new IdempotentWrites(this.kept, runtime);
    const { waits, waitsPerCaller, streams, streamsPerCaller } = this.limits;
    this.waits = new Slots("requests can wait", waits, waitsPerCaller);
    this.streams = new Slots("streams can be open", streams, streamsPerCaller);
    const readers = new Slots("requests can wait for whole tasks", waits, waitsPerCaller);
    this.wholeTasks = new QueuedSlots(readers, WHOLE_TASKS_AT_ONCE);
    const outbox = new OutboxWaiting(store, () => options.state.outbox, this.clock);
    this.stats = new Stats(this.clock, () => {
      const { liveTasks, runningTasks, turns } = runtime.stats;
      const size = sizeOf(store);
      return {
        running: runningTasks,
        inMemory: liveTasks,
        turnsRunning: turns,
        writesWaiting: store.writer.health.waiting,
        requestsWaiting: this.waits.taken,
        streams: this.streams.taken,
        storeBytes: size?.store ?? null,
        walBytes: size?.wal ?? null,
        outboxWaiting: outbox.read(),
      };
    });
    options.state.stats = this.stats;
    this.metrics = new Metrics({
      figures: () => runtime.stats,
      store: () => store.writer.health,
      now: () => this.clock.now(),
      waits: () => this.waits.taken,
      streams: () => this.streams.taken,
      storeBytes: () => sizeOf(store)?.store ?? null,
      outboxWaiting: () => outbox.read(),
    });
  }

  /** Common options of every task stream. */
  get streaming() {
    const { mailroom, limits, clock, closing, revocations, memory } = this;
    return {
      mailroom,
      limits,
      clock,
      closing,
      revocations,
      memory,
      heartbeat: this.options.heartbeat ?? 15_000,
    };
  }

  /** Records that a caller was active, and keeps its credential for the agents (in memory only, decision H1). */
  recordCaller(caller: Caller, authorization: string | undefined): void {
    if (caller.principal.role === "user") this.options.state.recordUser(caller.principal.id);
    const token = authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (token !== undefined) this.mailroom.runtime.setParams(caller.instance, { user_token: token });
  }
}

/** @throws Error when the store has no tables for HTTP */
function httpStoreOf(store: Store): HttpStore {
  if (hasHttpTables(store)) return store.http;
  throw new Error("the store has no tables for the HTTP server: it needs the property 'http' (HttpStore)");
}

function sizeOf(store: object): ReturnType<NonNullable<FullStore["size"]>> | undefined {
  return hasSize(store) ? store.size() : undefined;
}

function hasSize(store: object): store is Required<Pick<FullStore, "size">> {
  return "size" in store && typeof store.size === "function";
}

function hasHttpTables(store: Store): store is Store & { readonly http: HttpStore } {
  return "http" in store && typeof store.http === "object" && store.http !== null;
}
