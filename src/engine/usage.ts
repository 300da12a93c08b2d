/**
 * What model calls used, and the limits on it. Pure: totals follow from the journal, so that they are the same after
 * every restart.
 */

export interface Usage {
  /** Model calls, including failed ones. */
  readonly calls?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cachedInputTokens?: number;
  readonly cost?: number;
  readonly model?: string;
  /** A provider reported no usable numbers, or a call was aborted: some are our own estimate. */
  readonly estimated?: true;
  /** Model calls that failed before the one that gave the answer. */
  readonly failures?: readonly FailedCall[];
}

/** A failed model call. The provider's own words are in the log, because they may contain anything. */
export interface FailedCall {
  readonly model: string;
  /** What went wrong, in our words. */
  readonly problem: string;
}

/** Sums over model calls. */
export interface UsageTotals {
  /** All model calls, including failed ones. */
  readonly calls: number;
  readonly failedCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Part of the input. */
  readonly cachedInputTokens: number;
  /** Absent if no model had a price. */
  readonly cost?: number;
}

export const NO_USAGE: UsageTotals = {
  calls: 0,
  failedCalls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
};

/** Limits on what model calls use. Absent: no limit. */
export interface BudgetLimits {
  readonly maxCost?: number;
  /** Input and output tokens together. */
  readonly maxTokens?: number;
  readonly maxCalls?: number;
}

/** A change of limits: `null` lifts a limit, absent keeps it. */
export type BudgetChange = { readonly [K in keyof BudgetLimits]?: number | null };

/** No single number of one turn can be larger. Protects sums from nonsense. */
const LARGEST = 1e12;

const NUMBERS = ["calls", "inputTokens", "outputTokens", "cachedInputTokens", "cost"] as const;

/** A usage of unknown origin without the parts that make no sense. */
export function cleanUsage(given: unknown): Usage | undefined {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return undefined;
  const fields = new Map<string, unknown>(Object.entries(given));
  const clean: { -readonly [K in keyof Usage]: Usage[K] } = {};
  for (const name of NUMBERS) {
    const value = fields.get(name);
    if (typeof value !== "number" || !(value >= 0)) continue;
    clean[name] = Math.min(name === "cost" ? value : Math.ceil(value), LARGEST);
  }
  const model = fields.get("model");
  if (typeof model === "string") clean.model = model;
  if (fields.get("estimated") === true) clean.estimated = true;
  const failures = fields.get("failures");
  if (Array.isArray(failures)) clean.failures = failures.filter(isFailedCall);
  return clean;
}

function isFailedCall(value: unknown): value is NonNullable<Usage["failures"]>[number] {
  if (typeof value !== "object" || value === null) return false;
  return (
    "model" in value &&
    typeof value.model === "string" &&
    "problem" in value &&
    typeof value.problem === "string"
  );
}

export function totalsOf(usage: Usage): UsageTotals {
  const failedCalls = usage.failures?.length ?? 0;
  return {
    // Usage of earlier versions has no number of calls: a model that answered was called once.
    calls: Math.ceil(
      usage.calls ?? failedCalls + (usage.inputTokens !== undefined || usage.model !== undefined ? 1 : 0),
    ),
    failedCalls,
    inputTokens: Math.ceil(numberOf(usage.inputTokens)),
    outputTokens: Math.ceil(numberOf(usage.outputTokens)),
    cachedInputTokens: Math.ceil(numberOf(usage.cachedInputTokens)),
    ...(usage.cost !== undefined && { cost: numberOf(usage.cost) }),
  };
}

/** Journals of earlier versions may hold anything that an agent reported. */
function numberOf(value: number | undefined): number {
  return typeof value === "number" && value >= 0 ? Math.min(value, LARGEST) : 0;
}

export function addTotals(a: UsageTotals, b: UsageTotals): UsageTotals {
  return combine(a, b, 1);
}

/** The part of `whole` that is not in `part`. Tokens and cost can be negative: an estimate was too high. */
export function withoutTotals(whole: UsageTotals, part: UsageTotals): UsageTotals {
  return combine(whole, part, -1);
}

function combine(a: UsageTotals, b: UsageTotals, sign: 1 | -1): UsageTotals {
  const cost =
    a.cost === undefined && b.cost === undefined ? {} : { cost: (a.cost ?? 0) + sign * (b.cost ?? 0) };
  return {
    calls: a.calls + sign * b.calls,
    failedCalls: a.failedCalls + sign * b.failedCalls,
    inputTokens: a.inputTokens + sign * b.inputTokens,
    outputTokens: a.outputTokens + sign * b.outputTokens,
    cachedInputTokens: a.cachedInputTokens + sign * b.cachedInputTokens,
    ...cost,
  };
}

export function isNothing({ calls, inputTokens, outputTokens, cost = 0 }: UsageTotals): boolean {
  return calls === 0 && inputTokens === 0 && outputTokens === 0 && cost === 0;
}

/** What an entry adds to the totals of its agent. */
export function usedIn(entry: {
  readonly usage?: Usage;
  /** The part of it that earlier entries have. */
  readonly counted?: Usage;
}): UsageTotals | undefined {
  const { usage, counted } = entry;
  if (usage === undefined) return undefined;
  const whole = totalsOf(usage);
  return counted === undefined ? whole : withoutTotals(whole, totalsOf(counted));
}

/** The day of a moment, in UTC: `2026-01-31`. */
export function utcDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Milliseconds since the epoch at which the next day begins, in UTC. */
export function nextUtcDay(ms: number): number {
  return Math.floor(ms / DAY) * DAY + DAY;
}

const DAY = 86_400_000;

export function hasLimit(limits: BudgetLimits): boolean {
  return limits.maxCost !== undefined || limits.maxTokens !== undefined || limits.maxCalls !== undefined;
}

export function changedLimits(limits: BudgetLimits, change: BudgetChange): BudgetLimits {
  const changed: { -readonly [K in keyof BudgetLimits]: BudgetLimits[K] } = { ...limits };
  for (const name of LIMIT_NAMES) {
    const value = change[name];
    if (value === null) delete changed[name];
    else if (value !== undefined) changed[name] = value;
  }
  return changed;
}

export const LIMIT_NAMES = ["maxCost", "maxTokens", "maxCalls"] as const;
export type LimitName = (typeof LIMIT_NAMES)[number];

/** Sums of prices are not exact. */
const ROUNDING = 1e-9;

/** The first limit that is reached. */
export function reachedLimit(limits: BudgetLimits, used: UsageTotals): LimitName | undefined {
  const { maxCost, maxTokens, maxCalls } = limits;
  if (maxCalls !== undefined && used.calls >= maxCalls) return "maxCalls";
  if (maxTokens !== undefined && used.inputTokens + used.outputTokens >= maxTokens) return "maxTokens";
  if (maxCost !== undefined && (used.cost ?? 0) >= maxCost * (1 - ROUNDING)) return "maxCost";
  return undefined;
}

/** Names as people and files write them. */
export const LIMIT_KEYS = { maxCost: "max_cost", maxTokens: "max_tokens", maxCalls: "max_calls" } as const;

/** The limit at which a task paused. */
export interface ReachedLimit {
  /**
   * The owner's limit for the task, or one of the operator: for one task, for an agent in one task, for a caller's day
   * (UTC), for all tasks of a caller, for the server's day (UTC).
   */
  readonly scope: "owner" | "task" | "agent" | "caller" | "caller_total" | "day";
  readonly name: (typeof LIMIT_KEYS)[LimitName];
  readonly value: number;
}

/** What is wrong with limits that a caller gave. */
export function budgetProblem(change: BudgetChange): string | undefined {
  for (const name of LIMIT_NAMES) {
    const value = change[name];
    if (value === undefined || value === null) continue;
    if (!Number.isFinite(value) || value < 0) return `${LIMIT_KEYS[name]} must be a number from 0`;
    if (name !== "maxCost" && !Number.isSafeInteger(value))
      return `${LIMIT_KEYS[name]} must be a whole number`;
  }
  return undefined;
}
