/** How the server does, second by second for 15 minutes and minute by minute for a day. In memory only. */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "../base/index.js";
import { ALL_TASKS_CHANNEL, type Entry, isCommitNotification } from "../engine/index.js";
import type { Bus } from "../journal/index.js";
import { Quantiles } from "./quantiles.js";
import { Traffic } from "./traffic.js";

export const STATS_COLUMNS = [
  "at",
  "opened",
  "completed",
  "failed",
  "cancelled",
  "paused",
  "turns",
  "failed_turns",
  "actions",
  "failed_actions",
  "commits",
  "entries",
  "commit_p50",
  "commit_p99",
  "turn_p50",
  "turn_p99",
  "http_p99",
  "running",
  "in_memory",
  "turns_running",
  "writes_waiting",
  "requests_waiting",
  "streams",
  "loop_lag_p99",
  "heap_bytes",
  "rss_bytes",
  "store_bytes",
  "wal_bytes",
  "outbox_waiting",
] as const;

export type StatsRow = readonly (number | null)[];
export type StatsStep = "1s" | "1m";

/** What is read at the end of each second. */
export interface StatsGauges {
  readonly running: number;
  readonly inMemory: number;
  readonly turnsRunning: number;
  readonly writesWaiting: number;
  readonly requestsWaiting: number;
  readonly streams: number;
  readonly storeBytes: number | null;
  readonly walBytes: number | null;
  readonly outboxWaiting: number | null;
}

const SECONDS = 900;
const MINUTES = 1_440;
const NANOSECONDS = 1e6;

const COUNTERS = [
  "opened",
  "completed",
  "failed",
  "cancelled",
  "paused",
  "turns",
  "failedTurns",
  "actions",
  "failedActions",
  "commits",
  "entries",
] as const;
type Counter = (typeof COUNTERS)[number];

/** What was counted in one second or minute. */
class Interval {
  readonly counts: Record<Counter, number> = {
    opened: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    paused: 0,
    turns: 0,
    failedTurns: 0,
    actions: 0,
    failedActions: 0,
    commits: 0,
    entries: 0,
  };
  readonly commit = new Quantiles();
  readonly turn = new Quantiles();
  readonly http = new Quantiles();
  lag: number | null = null;

  add(other: Interval): void {
    for (const name of COUNTERS) this.counts[name] += other.counts[name];
    this.commit.merge(other.commit);
    this.turn.merge(other.turn);
    this.http.merge(other.http);
    if (other.lag !== null) this.lag = Math.max(this.lag ?? 0, other.lag);
  }

  clear(): void {
    for (const name of COUNTERS) this.counts[name] = 0;
    for (const durations of [this.commit, this.turn, this.http]) durations.clear();
    this.lag = null;
  }
}

export class Stats {
  readonly traffic: Traffic;
  readonly #clock: Clock;
  readonly #gauges: () => StatsGauges;
  readonly #second = new Interval();
  readonly #minute = new Interval();
  readonly #seconds: StatsRow[] = [];
  readonly #minutes: StatsRow[] = [];
  readonly #listeners = new Set<(row: StatsRow) => void>();
  #lag: IntervalHistogram | undefined;
  #minuteAt: number;
  /** When the second that is counted ends. */
  #due = 0;
  #cancel = (): void => {};

  constructor(clock: Clock, gauges: () => StatsGauges) {
    this.#clock = clock;
    this.#gauges = gauges;
    this.#minuteAt = minuteOf(clock.now());
    this.traffic = new Traffic(clock);
  }

  /** Counts what happens in tasks. Returns a function that stops it. */
  watch(bus: Bus): () => void {
    const subscription = bus.subscribe(ALL_TASKS_CHANNEL, (note) => {
      if (!isCommitNotification(note)) return;
      this.#second.counts.entries += note.entries.length;
      for (const [index, entry] of note.entries.entries()) {
        this.#count(entry);
        this.traffic.count(entry, note.key, note.first + index);
      }
    });
    this.#schedule();
    return () => {
      subscription.close();
      this.#cancel();
      this.#lag?.disable();
    };
  }

  commit(ms: number): void {
    this.#second.counts.commits++;
    this.#second.commit.add(ms);
  }

  turn(agent: string, ms: number): void {
    this.#second.turn.add(ms);
    this.traffic.turn(agent, ms);
  }

  request(ms: number): void {
    this.#second.http.add(ms);
  }

  /** Oldest first. */
  rows(step: StatsStep, since = 0): StatsRow[] {
    this.#measureLag();
    const all = step === "1s" ? this.#seconds : this.#minutes;
    return all.filter(([at]) => (at ?? 0) >= since);
  }

  /** Calls back with each second's row. Returns a function that ends it. */
  onRow(listener: (row: StatsRow) => void): () => void {
    this.#measureLag();
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #count(entry: Entry): void {
    const { counts } = this.#second;
    switch (entry.t) {
      case "opened":
      case "completed":
      case "failed":
      case "cancelled":
      case "paused":
        counts[entry.t]++;
        return;
      case "turn":
        counts.turns++;
        return;
      case "turn_failed":
        counts.turns++;
        counts.failedTurns++;
        return;
      case "action_started":
        if (entry.attempt <= 1) counts.actions++;
        return;
      case "action_finished":
        if (!entry.ok) counts.failedActions++;
        return;
      default:
        return;
    }
  }

  #schedule(): void {
    const now = this.#clock.now();
    // A timer may fire a millisecond early. The same second must not end twice.
    this.#due = Math.max(Math.floor(now / 1_000) * 1_000, this.#due) + 1_000;
    this.#cancel = this.#clock.after(this.#due - now, () => {
      this.#tick();
      this.#schedule();
    });
  }

  #tick(): void {
    const now = this.#due;
    if (this.#lag !== undefined) {
      this.#second.lag = Math.round(this.#lag.percentile(99) / NANOSECONDS);
      this.#lag.reset();
    }
    const gauges = this.#gauges();
    const row = toRow(now - 1_000, this.#second, gauges);
    push(this.#seconds, row, SECONDS);
    this.#minute.add(this.#second);
    this.#second.clear();
    if (minuteOf(now) !== this.#minuteAt) {
      push(this.#minutes, toRow(this.#minuteAt, this.#minute, gauges), MINUTES);
      this.#minute.clear();
      this.#minuteAt = minuteOf(now);
    }
    for (const listener of this.#listeners) listener(row);
  }

  /** Costs a timer, so it begins when the figures are first read. */
  #measureLag(): void {
    if (this.#lag !== undefined) return;
    this.#lag = monitorEventLoopDelay({ resolution: 20 });
    this.#lag.enable();
  }
}

function toRow(at: number, { counts, commit, turn, http, lag }: Interval, gauges: StatsGauges): StatsRow {
  const { heapUsed, rss } = process.memoryUsage();
  return [
    at,
    ...COUNTERS.map((name) => counts[name]),
    commit.at(0.5),
    commit.at(0.99),
    turn.at(0.5),
    turn.at(0.99),
    http.at(0.99),
    gauges.running,
    gauges.inMemory,
    gauges.turnsRunning,
    gauges.writesWaiting,
    gauges.requestsWaiting,
    gauges.streams,
    lag,
    heapUsed,
    rss,
    gauges.storeBytes,
    gauges.walBytes,
    gauges.outboxWaiting,
  ];
}

function push(rows: StatsRow[], row: StatsRow, most: number): void {
  rows.push(row);
  if (rows.length > most) rows.shift();
}

function minuteOf(ms: number): number {
  return Math.floor(ms / 60_000) * 60_000;
}
