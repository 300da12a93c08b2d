/** Figures for Prometheus. Each server has its own. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Bus } from "../engine/ports.js";
import { ALL_TASKS_CHANNEL, isCommitNote, type Outcome, outcomeOf } from "../engine/runtime/index.js";
import type { WriterHealth } from "../journal/writer.js";

export interface Figures {
  readonly figures: () => {
    readonly liveTasks: number;
    readonly runningTasks: number;
    readonly turns: number;
    readonly recovery?: { readonly done: number; readonly of: number };
  };
  readonly store: () => WriterHealth;
  readonly now: () => number;
  readonly waits: () => number;
  readonly streams: () => number;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Histogram<"method" | "route" | "status">;
  readonly #failedAuthentications: Counter;
  readonly #rounds = new Tally<Outcome["status"]>();
  readonly #answeredTurns = new Tally<string>();
  readonly #failedTurns = new Tally<string>();
  readonly #droppedListeners: Counter;

  constructor({ figures, store, now, waits, streams }: Figures) {
    const registers = [this.#registry];
    this.#requests = new Histogram({
      name: "mailroom_http_request_seconds",
      help: "Requests by route and status, and how long they took (a waiting request takes as long as its task).",
      labelNames: ["method", "route", "status"],
      buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
      registers,
    });
    this.#failedAuthentications = new Counter({
      name: "mailroom_failed_authentications_total",
      help: "Credentials that nobody vouched for.",
      registers,
    });
    const rounds = this.#rounds;
    new Counter({
      name: "mailroom_rounds_total",
      help: "Rounds of tasks that ended, by how they ended.",
      labelNames: ["status"],
      registers,
      collect() {
        for (const [status, more] of rounds.take()) this.inc({ status }, more);
      },
    });
    const turns = { answered: this.#answeredTurns, failed: this.#failedTurns };
    new Counter({
      name: "mailroom_turns_total",
      help: "Turns of agents.",
      labelNames: ["agent", "outcome"],
      registers,
      collect() {
        for (const [outcome, tally] of Object.entries(turns)) {
          for (const [agent, more] of tally.take()) this.inc({ agent, outcome }, more);
        }
      },
    });
    this.#droppedListeners = new Counter({
      name: "mailroom_dropped_listeners_total",
      help: "Streams that were given up because nobody read them.",
      registers,
    });
    const gauge = (name: string, help: string, read: () => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    gauge("mailroom_running_tasks", "Tasks that run.", () => figures().runningTasks);
    gauge("mailroom_tasks_in_memory", "Tasks held in memory.", () => figures().liveTasks);
    gauge("mailroom_running_turns", "Turns under way.", () => figures().turns);
    gauge("mailroom_tasks_to_take_up", "Running tasks of the last process, after a start.", () => {
      const { done, of } = figures().recovery ?? { done: 0, of: 0 };
      return of - done;
    });
    gauge("mailroom_store_waiting_writes", "Writes that are not durable yet.", () => store().waiting);
    gauge(
      "mailroom_store_waiting_characters",
      "Characters of journals that are not durable yet.",
      () => store().characters,
    );
    gauge("mailroom_store_degraded_seconds", "How long nothing could be written; 0 when all is well.", () => {
      const { since } = store();
      return since === undefined ? 0 : (now() - since) / 1000;
    });
    new Counter({
      name: "mailroom_store_retries_total",
      help: "Writes that were tried again.",
      registers,
      collect() {
        this.reset();
        this.inc(store().retries);
      },
    });
    gauge("mailroom_waiting_requests", "Requests that wait for the end of a round.", waits);
    gauge("mailroom_streams", "Open streams.", streams);
    gauge("mailroom_store_degraded", "1 while nothing can be written.", () =>
      store().state === "open" ? 0 : 1,
    );
    collectDefaultMetrics({ register: this.#registry });
  }

  /** Counts what happens in tasks. The returned function stops it. */
  watch(bus: Bus): () => void {
    return bus.subscribe(ALL_TASKS_CHANNEL, (note) => {
      if (!isCommitNote(note)) return;
      for (const entry of note.entries) {
        const outcome = outcomeOf(entry);
        if (outcome !== undefined) this.#rounds.add(outcome.status);
        else if (entry.t === "turn") this.#answeredTurns.add(entry.agent);
        else if (entry.t === "turn_failed") this.#failedTurns.add(entry.agent);
      }
    });
  }

  request(method: string, route: string, status: number, seconds: number): void {
    this.#requests.observe({ method, route, status: String(status) }, seconds);
  }

  failedAuthentication(): void {
    this.#failedAuthentications.inc();
  }

  droppedListener(): void {
    this.#droppedListeners.inc();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

/** Counts what happens many times per task. The library's counters hash their labels each time; here they get sums. */
class Tally<K extends string> {
  #counts = new Map<K, number>();

  add(key: K): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** What was counted since this was last asked. */
  take(): ReadonlyMap<K, number> {
    const counts = this.#counts;
    this.#counts = new Map();
    return counts;
  }
}
