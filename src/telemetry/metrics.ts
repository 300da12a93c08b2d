/** Metrics for Prometheus, one registry per server. */
import type { Registry } from "prom-client";
import {
  ALL_TASKS_CHANNEL,
  type Entry,
  isCommitNotification,
  outcomeOf,
  type RoundOutcome,
  totalsOf,
} from "../engine/index.js";
import type { Bus, WriterHealth } from "../journal/index.js";

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
  /** Of the database files; null if there are none. */
  readonly storeBytes: () => number | null;
  /** Mail to other servers that is not delivered; null before it is counted. */
  readonly outboxWaiting: () => number | null;
}

const USAGE_NAMES = [
  "calls",
  "failedCalls",
  "inputTokens",
  "outputTokens",
  "cachedInputTokens",
  "cost",
] as const;

export class Metrics {
  readonly #figures: Figures;
  readonly #requests = new Durations(
    "mailroom_http_request_seconds",
    "Requests by route and status, with their duration (a waiting request lasts as long as its round).",
  );
  readonly #commits = new Durations("mailroom_commit_seconds", "Commits to the store.");
  readonly #turnTimes = new Durations("mailroom_turn_seconds", "Turns that ran in this process, by agent.");
  readonly #actionTimes = new Durations("mailroom_action_seconds", "Action calls, by outcome.");
  /** When actions that run were started, by task and call. */
  readonly #actionsStarted = new Map<string, number>();
  readonly #rounds = new LabelCounts<RoundOutcome["status"]>();
  readonly #answeredTurns = new LabelCounts<string>();
  readonly #failedTurns = new LabelCounts<string>();
  readonly #usage = {
    calls: new LabelCounts<string>(),
    failedCalls: new LabelCounts<string>(),
    inputTokens: new LabelCounts<string>(),
    outputTokens: new LabelCounts<string>(),
    cachedInputTokens: new LabelCounts<string>(),
    cost: new LabelCounts<string>(),
  };
  readonly #budgetPauses = new LabelCounts<"all">();
  readonly #failedAuthentications = new LabelCounts<"all">();
  readonly #droppedListeners = new LabelCounts<"all">();
  #registry: Promise<Registry> | undefined;

  constructor(figures: Figures) {
    this.#figures = figures;
  }

  /** Counts task events. Returns a function that stops it. */
  watch(bus: Bus): () => void {
    const subscription = bus.subscribe(ALL_TASKS_CHANNEL, (note) => {
      if (!isCommitNotification(note)) return;
      for (const entry of note.entries) {
        this.#countUsage(entry);
        if (entry.t === "paused" && entry.reason === "budget") this.#budgetPauses.add("all");
        const outcome = outcomeOf(entry);
        if (outcome !== undefined) this.#rounds.add(outcome.status);
        else if (entry.t === "turn") this.#answeredTurns.add(entry.agent);
        else if (entry.t === "turn_failed") this.#failedTurns.add(entry.agent);
        else if (entry.t === "action_started") {
          if (this.#actionsStarted.size < MOST_ACTIONS)
            this.#actionsStarted.set(`${note.key} ${entry.call}`, entry.at);
        } else if (entry.t === "action_finished") this.#actionFinished(`${note.key} ${entry.call}`, entry);
      }
    });
    return () => subscription.close();
  }

  /** A call that is about to start is counted when its turn ends. */
  #countUsage(entry: Entry): void {
    if (!("usage" in entry) || entry.usage === undefined || ("begun" in entry && entry.begun === true))
      return;
    const { agent } = entry;
    const used = { cost: 0, ...totalsOf(entry.usage) };
    for (const name of USAGE_NAMES) if (used[name] > 0) this.#usage[name].add(agent, used[name]);
  }

  request(method: string, route: string, status: number, seconds: number): void {
    // Methods, route templates and numbers need no escaping.
    this.#requests.add(`method="${method}",route="${route}",status="${status}"`, seconds);
  }

  commit(ms: number): void {
    this.#commits.add("", ms / 1_000);
  }

  turn(agent: string, ms: number): void {
    this.#turnTimes.add(`agent="${escaped(agent)}"`, ms / 1_000);
  }

  #actionFinished(call: string, { at, ok }: { readonly at: number; readonly ok: boolean }): void {
    const started = this.#actionsStarted.get(call);
    if (started === undefined) return;
    this.#actionsStarted.delete(call);
    this.#actionTimes.add(`outcome="${ok ? "succeeded" : "failed"}"`, (at - started) / 1_000);
  }

  failedAuthentication(): void {
    this.#failedAuthentications.add("all");
  }

  droppedListener(): void {
    this.#droppedListeners.add("all");
  }

  async text(): Promise<{ readonly contentType: string; readonly text: string }> {
    // The library is loaded, and starts to observe the process, on the first request for metrics.
    this.#registry ??= this.#register();
    const registry = await this.#registry;
    return {
      contentType: registry.contentType,
      text: [
        ...[this.#requests, this.#commits, this.#turnTimes, this.#actionTimes].map((times) => times.text()),
        await registry.metrics(),
      ].join("\n"),
    };
  }

  async #register(): Promise<Registry> {
    const { Counter, collectDefaultMetrics, Gauge, Registry } = await import("prom-client");
    const { figures, store, now, waits, streams, storeBytes, outboxWaiting } = this.#figures;
    const registry = new Registry();
    const registers = [registry];
    const rounds = this.#rounds;
    new Counter({
      name: "mailroom_rounds_total",
      help: "Ended rounds, by outcome.",
      labelNames: ["status"],
      registers,
      collect() {
        for (const [status, more] of rounds.take()) this.inc({ status }, more);
      },
    });
    const turns = { answered: this.#answeredTurns, failed: this.#failedTurns };
    new Counter({
      name: "mailroom_turns_total",
      help: "Agents' turns.",
      labelNames: ["agent", "outcome"],
      registers,
      collect() {
        for (const [outcome, tally] of Object.entries(turns)) {
          for (const [agent, more] of tally.take()) this.inc({ agent, outcome }, more);
        }
      },
    });
    const byAgent = (name: string, help: string, tallies: Readonly<Record<string, LabelCounts<string>>>) =>
      new Counter({
        name,
        help,
        labelNames: ["agent", "kind"],
        registers,
        collect() {
          for (const [kind, tally] of Object.entries(tallies)) {
            for (const [agent, more] of tally.take()) this.inc({ agent, kind }, more);
          }
        },
      });
    const usage = this.#usage;
    byAgent("mailroom_model_calls_total", "Model calls by agent: all, and those of them that failed.", {
      all: usage.calls,
      failed: usage.failedCalls,
    });
    byAgent(
      "mailroom_model_tokens_total",
      "Tokens of model calls by agent; cached ones are part of the input.",
      {
        input: usage.inputTokens,
        output: usage.outputTokens,
        cached: usage.cachedInputTokens,
      },
    );
    byAgent("mailroom_model_cost_total", "Cost of model calls by agent, in the currency of the prices.", {
      all: usage.cost,
    });
    const count = (name: string, help: string, tally: LabelCounts<"all">) =>
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.inc(tally.take().get("all") ?? 0);
        },
      });
    count("mailroom_failed_authentications_total", "Failed authentications.", this.#failedAuthentications);
    count("mailroom_budget_pauses_total", "Tasks that were paused at a budget's limit.", this.#budgetPauses);
    count(
      "mailroom_dropped_listeners_total",
      "Streams closed because their reader was too slow.",
      this.#droppedListeners,
    );
    const gauge = (name: string, help: string, read: () => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    gauge("mailroom_running_tasks", "Running tasks.", () => figures().runningTasks);
    gauge("mailroom_tasks_in_memory", "Tasks in memory.", () => figures().liveTasks);
    gauge("mailroom_running_turns", "Running turns.", () => figures().turns);
    gauge("mailroom_tasks_to_take_up", "Tasks recovered at startup.", () => {
      const { done, of } = figures().recovery ?? { done: 0, of: 0 };
      return of - done;
    });
    gauge("mailroom_store_waiting_writes", "Writes that are not durable yet.", () => store().waiting);
    gauge(
      "mailroom_store_waiting_characters",
      "Characters of journals that are not durable yet.",
      () => store().characters,
    );
    gauge(
      "mailroom_store_degraded_seconds",
      "How long the store has not been writable; 0 while it is.",
      () => {
        const { since } = store();
        return since === undefined ? 0 : (now() - since) / 1000;
      },
    );
    new Counter({
      name: "mailroom_store_retries_total",
      help: "Retried writes.",
      registers,
      collect() {
        this.reset();
        this.inc(store().retries);
      },
    });
    gauge("mailroom_waiting_requests", "Requests waiting for the end of a round.", waits);
    gauge("mailroom_streams", "Open streams.", streams);
    gauge("mailroom_store_bytes", "Size of the database.", () => storeBytes() ?? 0);
    gauge(
      "mailroom_outbox_waiting",
      "Mail to other servers that is not delivered.",
      () => outboxWaiting() ?? 0,
    );
    gauge("mailroom_store_degraded", "1 while the store is not writable.", () =>
      store().state === "open" ? 0 : 1,
    );
    collectDefaultMetrics({ register: registry });
    return registry;
  }
}

/** Counts frequent events. The library's counters hash their labels on every call; here they get sums. */
class LabelCounts<K extends string> {
  #counts = new Map<K, number>();

  add(key: K, more = 1): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + more);
  }

  /** Returns the counts since the last call. */
  take(): ReadonlyMap<K, number> {
    const counts = this.#counts;
    this.#counts = new Map();
    return counts;
  }
}

/** Upper bounds, in seconds. */
const BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60] as const;

/** Running actions whose time is taken; further ones are not measured. */
const MOST_ACTIONS = 10_000;

/** A value of a label in Prometheus' text format. */
function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** Durations as a histogram. Every event is counted, so it consists of sums only. */
class Durations {
  readonly #name: string;
  readonly #help: string;
  readonly #series = new Map<string, { readonly inBucket: number[]; count: number; sum: number }>();

  constructor(name: string, help: string) {
    this.#name = name;
    this.#help = help;
  }

  /** @param labels in Prometheus' text format, without braces */
  add(labels: string, seconds: number): void {
    let series = this.#series.get(labels);
    if (series === undefined) {
      series = { inBucket: BUCKETS.map(() => 0), count: 0, sum: 0 };
      this.#series.set(labels, series);
    }
    series.count += 1;
    series.sum += seconds;
    const bucket = BUCKETS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) series.inBucket[bucket] = (series.inBucket[bucket] ?? 0) + 1;
  }

  /** In Prometheus' text format. */
  text(): string {
    const name = this.#name;
    const lines = [`# HELP ${name} ${this.#help}`, `# TYPE ${name} histogram`];
    for (const [labels, { inBucket, count, sum }] of this.#series) {
      const more = labels === "" ? "" : `,${labels}`;
      const own = labels === "" ? "" : `{${labels}}`;
      let below = 0;
      for (const [index, bound] of BUCKETS.entries()) {
        below += inBucket[index] ?? 0;
        lines.push(`${name}_bucket{le="${bound}"${more}} ${below}`);
      }
      lines.push(
        `${name}_bucket{le="+Inf"${more}} ${count}`,
        `${name}_sum${own} ${sum}`,
        `${name}_count${own} ${count}`,
      );
    }
    return `${lines.join("\n")}\n`;
  }
}
