/**
 * Periodic health checks of every registered swarm. Jitter spreads them, a time limit bounds them, and hysteresis
 * keeps one lost packet from making a swarm inactive.
 */

import type { Clock } from "../../base/index.js";
import { messageOf, type Random, type Report } from "../../base/index.js";

import type { Guard, HttpClient } from "../../net/index.js";
import type { FederationSettings } from "../settings.js";
import type { SwarmRegistry } from "./registry.js";

export interface HealthParts {
  readonly registry: SwarmRegistry;
  readonly client: HttpClient;
  readonly guard: Guard;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: Pick<
    FederationSettings,
    "healthInterval" | "healthTimeout" | "failuresToInactive" | "successesToActive"
  >;
  /** An inactive swarm answers again. */
  readonly onReturn: (name: string) => void;
  readonly report: Report;
}

export type HealthResult =
  | { readonly ok: true; readonly latency: number; readonly status: string | null }
  | { readonly ok: false; readonly reason: string };

/** What the checks of a swarm found, since this process started. */
export interface HealthRecord {
  /** In a row. */
  readonly failures: number;
  /** Why the last check failed; null after one that succeeded. */
  readonly lastError: string | null;
  /** Milliseconds since the epoch; null before the first. */
  readonly checkedAt: number | null;
  /** The last ones, oldest first. */
  readonly checks: readonly HealthCheck[];
}

/** When it was, and the latency in seconds; null if it failed. */
export type HealthCheck = readonly [at: number, latency: number | null];

interface Watch {
  /** Counts apply to one address only. */
  readonly baseUrl: string;
  failures: number;
  successes: number;
  lastError: string | null;
  checkedAt: number | null;
  readonly checks: HealthCheck[];
  cancel: () => void;
}

const LARGEST_HEALTH = 64 * 1024;
/** Checks that are kept for each swarm. */
const KEPT_CHECKS = 60;
/** Share of the interval by which checks vary. */
const JITTER = 0.2;

export class HealthChecks {
  readonly #parts: HealthParts;
  readonly #watches = new Map<string, Watch>();
  readonly #inProgress = new Set<Promise<void>>();
  #unsubscribe: (() => void) | undefined;

  constructor(parts: HealthParts) {
    this.#parts = parts;
  }

  start(): void {
    const { registry } = this.#parts;
    this.#unsubscribe = registry.onChange((name) => this.#follow(name));
    for (const { name } of registry.list()) this.#follow(name);
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    for (const watch of this.#watches.values()) watch.cancel();
    this.#watches.clear();
    await Promise.all(this.#inProgress);
  }

  recordOf(name: string): HealthRecord {
    const { failures = 0, lastError = null, checkedAt = null, checks = [] } = this.#watches.get(name) ?? {};
    return { failures, lastError, checkedAt, checks };
  }

  /** Checks once and changes no state. */
  async check(baseUrl: string): Promise<HealthResult> {
    const { client, clock, guard, settings } = this.#parts;
    const began = clock.now();
    try {
      const answer = await client.request(`${baseUrl}/health`, {
        guard,
        timeLimit: settings.healthTimeout,
        maxBytes: LARGEST_HEALTH,
      });
      // Only the HTTP status counts, as in the reference: a degraded swarm still accepts mail.
      if (answer.status !== 200) return { ok: false, reason: `it answered ${answer.status}` };
      return { ok: true, latency: (clock.now() - began) / 1000, status: statusIn(answer.text()) };
    } catch (error) {
      return { ok: false, reason: messageOf(error) };
    }
  }

  #follow(name: string): void {
    const { registry } = this.#parts;
    const known = this.#watches.get(name);
    const entry = registry.get(name);
    if (entry !== undefined && known?.baseUrl === entry.baseUrl) return;
    known?.cancel();
    this.#watches.delete(name);
    if (entry === undefined) return;
    const watch: Watch = {
      baseUrl: entry.baseUrl,
      failures: 0,
      successes: 0,
      lastError: null,
      checkedAt: null,
      checks: [],
      cancel: () => {},
    };
    this.#watches.set(name, watch);
    // Start soon, but spread the checks.
    this.#schedule(name, watch, this.#parts.random() * Math.min(1_000, this.#parts.settings.healthInterval));
  }

  #schedule(name: string, watch: Watch, delay: number): void {
    watch.cancel = this.#parts.clock.after(delay, () => {
      const run: Promise<void> = this.#checkAndNote(name, watch)
        .catch((cause: unknown) =>
          this.#parts.report({ code: "health_check", message: `health check of '${name}' failed`, cause }),
        )
        .finally(() => {
          this.#inProgress.delete(run);
          if (this.#watches.get(name) !== watch) return;
          const { healthInterval } = this.#parts.settings;
          this.#schedule(name, watch, healthInterval * (1 + JITTER * (2 * this.#parts.random() - 1)));
        });
      this.#inProgress.add(run);
    });
  }

  async #checkAndNote(name: string, watch: Watch): Promise<void> {
    const { registry, clock, settings, onReturn } = this.#parts;
    const { baseUrl } = watch;
    const entry = registry.get(name);
    if (entry?.baseUrl !== baseUrl) return;
    const result = await this.check(baseUrl);
    if (this.#watches.get(name) !== watch) return;
    watch.checkedAt = clock.now();
    watch.lastError = result.ok ? null : result.reason;
    watch.checks.push([watch.checkedAt, result.ok ? result.latency : null]);
    if (watch.checks.length > KEPT_CHECKS) watch.checks.shift();
    if (result.ok) {
      watch.failures = 0;
      watch.successes++;
      if (entry.isActive || watch.successes >= settings.successesToActive) {
        await registry.seen(name, { at: clock.now(), latency: result.latency, baseUrl });
        if (!entry.isActive) onReturn(name);
      }
      return;
    }
    watch.successes = 0;
    watch.failures++;
    if (watch.failures >= settings.failuresToInactive) await registry.lost(name, baseUrl);
  }
}

function statusIn(body: string): string | null {
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed !== "object" || parsed === null || !("status" in parsed)) return null;
    return typeof parsed.status === "string" ? parsed.status : null;
  } catch {
    return null;
  }
}
