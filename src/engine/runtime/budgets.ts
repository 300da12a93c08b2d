/**
 * Limits on what model calls use: per task, per agent in a task, for a caller per day (UTC) and in total, and per day for
 * the server. A call is counted durably before it starts, so a limit is exceeded by at most the calls that are running, whatever crashes.
 */
import { MailroomError } from "../../base/index.js";
import type { JournalKey } from "../../journal/index.js";
import { type PlannedCall, TurnHeldError, type Usage } from "../agent.js";
import type { BudgetScope, InstanceId, Store, UsageAdd, UsageReads } from "../ports.js";
import type { RuntimeLimits } from "../settings.js";
import type { Command } from "../task/commands.js";
import type { Entry } from "../task/entries.js";
import type { SwarmRules } from "../task/rules.js";
import type { TaskState } from "../task/state.js";
import {
  addTotals,
  type BudgetLimits,
  changedLimits,
  hasLimit,
  isNothing,
  LIMIT_KEYS,
  type LimitName,
  NO_USAGE,
  type ReachedLimit,
  reachedLimit,
  totalsOf,
  type UsageTotals,
  usedIn,
  utcDay,
  withoutTotals,
} from "../usage.js";
import { instanceKey, type LiveTask, type TaskKernel } from "./task-work.js";

export interface BudgetsParts {
  readonly store: Store;
  readonly kernel: TaskKernel;
  readonly limits: Pick<RuntimeLimits, "callerBudget" | "callerTotalBudget" | "dayBudget">;
  readonly rules: () => SwarmRules;
  readonly now: () => number;
}

/** One limit that applies, and what counts toward it. */
interface Level {
  readonly limits: BudgetLimits;
  readonly used: UsageTotals;
  readonly scope: ReachedLimit["scope"];
  /** Whose limit it is, for the task's owner. */
  readonly of: string;
  /** Who can raise it. */
  readonly raise: string;
  /** Whether other tasks count toward it. */
  readonly shared?: true;
}

/** Limits by day, and what counts toward them. */
interface Today {
  /** How many pending calls had become durable when it was read. */
  readonly settled: number;
  readonly caller: BudgetLimits;
  /** Of the caller on all days. */
  readonly total: BudgetLimits;
  readonly all: BudgetLimits;
  readonly callerUsed: UsageTotals | undefined;
  readonly totalUsed: UsageTotals | undefined;
  readonly allUsed: UsageTotals | undefined;
}

const BY_ADMIN = "an admin can raise it";

export class Budgets {
  readonly #parts: BudgetsParts;
  /** Calls that are decided and not durable, by caller. */
  readonly #pending = new Map<string, UsageTotals>();
  #pendingInAll = NO_USAGE;
  /** Grows whenever a pending call has become durable: totals that were read before are outdated. */
  #settled = 0;
  /** Tasks that were refused at a limit which they share with other tasks, the longest waiting first. */
  readonly #waiting = new Map<JournalKey, InstanceId>();

  constructor(parts: BudgetsParts) {
    this.#parts = parts;
    const { callerBudget, callerTotalBudget, dayBudget } = parts.limits;
    if (parts.store.usage === undefined && [callerBudget, callerTotalBudget, dayBudget].some(hasLimit)) {
      throw new MailroomError(
        "bad_input",
        "this store counts no usage by day: set no budgets.caller, budgets.caller_total and budgets.day",
      );
    }
  }

  /**
   * Admits a model call, and counts it durably if a limit applies.
   * @returns what was counted
   * @throws TurnHeldError `budget`
   */
  async begin(live: LiveTask, agent: string, call: PlannedCall): Promise<Usage | undefined> {
    const { instance } = live.work;
    let today = await this.#read(instance);
    while (today.settled !== this.#settled) today = await this.#read(instance);
    const levels = this.#levels(live.state, agent, today);
    if (!levels.some(({ limits }) => hasLimit(limits))) return undefined;
    for (const level of levels) {
      const reached = reachedLimit(level.limits, level.used);
      if (reached !== undefined) {
        if (level.shared === true) this.#wait(live.key, instance);
        throw new TurnHeldError("budget", reachedText(level, reached), limitOf(level, reached));
      }
      if (level.limits.maxCost !== undefined && call.cost === undefined) {
        throw new TurnHeldError("budget", unpricedText(level, call.model), limitOf(level, "maxCost"));
      }
    }
    const { model, inputTokens, cost } = call;
    const usage: Usage = {
      calls: 1,
      inputTokens,
      ...(cost !== undefined && { cost }),
      model,
      estimated: true,
    };
    await this.#count(live, instance, { type: "count_usage", agent, usage, begun: true }, totalsOf(usage));
    return usage;
  }

  async #count(live: LiveTask, instance: InstanceId, command: Command, used: UsageTotals): Promise<void> {
    const caller = instanceKey(instance);
    const pend = (sign: 1 | -1): void => {
      const before = this.#pending.get(caller) ?? NO_USAGE;
      const after = sign === 1 ? addTotals(before, used) : withoutTotals(before, used);
      if (after.calls === 0) this.#pending.delete(caller);
      else this.#pending.set(caller, after);
      this.#pendingInAll =
        this.#pending.size === 0
          ? NO_USAGE
          : sign === 1
            ? addTotals(this.#pendingInAll, used)
            : withoutTotals(this.#pendingInAll, used);
    };
    pend(1);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#parts.kernel.apply(live, command, {
          done: () => resolve(),
          refused: ({ message }) => reject(new Error(message)),
          failed: reject,
        });
      });
    } finally {
      pend(-1);
      this.#settled++;
    }
  }

  /** Whether the agents of a task that have mail could call models now. */
  async admits(state: TaskState): Promise<boolean> {
    const waiting = [...state.agents].filter(([, { mailbox }]) => mailbox.length > 0).map(([name]) => name);
    const today = await this.#read(state.instance);
    const levels = [
      ...waiting.flatMap((agent) => this.#taskLevels(state, agent)),
      ...this.#sharedLevels(state.instance, today),
    ];
    const reached = levels.filter(({ limits, used }) => reachedLimit(limits, used) !== undefined);
    if (reached.some(({ shared }) => shared === true)) this.#wait(state.key, state.instance);
    return reached.length === 0;
  }

  /** The task that has waited longest at a shared limit that has room now. It no longer waits. */
  async nextWithRoom(
    isHeld: (key: JournalKey, instance: string) => boolean,
  ): Promise<JournalKey | undefined> {
    const full = new Set<string>();
    for (const [key, instance] of [...this.#waiting]) {
      const caller = instanceKey(instance);
      if (full.has(caller) || !isHeld(key, caller)) continue;
      const levels = this.#sharedLevels(instance, await this.#read(instance));
      if (levels.some(({ limits, used }) => reachedLimit(limits, used) !== undefined)) full.add(caller);
      else if (this.#waiting.delete(key)) return key;
    }
    return undefined;
  }

  /** The task has ended. */
  forget(key: JournalKey): void {
    this.#waiting.delete(key);
  }

  #wait(key: JournalKey, instance: InstanceId): void {
    if (!this.#waiting.has(key)) this.#waiting.set(key, instance);
  }

  /** Limits of a caller or of the server per day, as an admin set them or as they are configured. */
  async limitsOf(scope: BudgetScope): Promise<BudgetLimits> {
    const { usage } = this.#parts.store;
    return this.#limits(scope, usage);
  }

  /** The rows by which a unit adds to the totals of its day. */
  rowsOf({ instance }: TaskState, entries: readonly Entry[]): readonly UsageAdd[] {
    if (this.#parts.store.usage === undefined) return NO_ROWS;
    let rows: UsageAdd[] | undefined;
    for (const entry of entries) {
      if (!("usage" in entry)) continue;
      const used = usedIn(entry);
      if (used === undefined || (isNothing(used) && used.failedCalls === 0)) continue;
      rows ??= [];
      rows.push({ kind: "usage.add", day: utcDay(entry.at), instance, agent: entry.agent, used });
    }
    return rows ?? NO_ROWS;
  }

  /** Limits and totals of the day, as they are stored. Read again if a pending call became durable meanwhile. */
  async #read(instance: InstanceId): Promise<Today> {
    const { usage } = this.#parts.store;
    const day = utcDay(this.#parts.now());
    const settled = this.#settled;
    const caller = await this.#limits({ caller: instance }, usage);
    const total = await this.#limits({ caller: instance, total: true }, usage);
    const all = await this.#limits("day", usage);
    return {
      settled,
      caller,
      total,
      all,
      totalUsed: hasLimit(total) ? await usage?.total(instance) : undefined,
      callerUsed: hasLimit(caller) ? await usage?.ofDay(day, instance) : undefined,
      allUsed: hasLimit(all) ? await usage?.ofDay(day) : undefined,
    };
  }

  /** All limits that apply to an agent of a task. The caller must decide before it waits for anything. */
  #levels(state: TaskState, agent: string, today: Today): readonly Level[] {
    return [...this.#taskLevels(state, agent), ...this.#sharedLevels(state.instance, today)];
  }

  #taskLevels(state: TaskState, agent: string): readonly Level[] {
    const rules = this.#parts.rules();
    const { adminBudget } = state;
    const used = state.usage ?? NO_USAGE;
    return [
      {
        limits: state.budget ?? {},
        used,
        scope: "owner",
        of: "the owner's limit for this task",
        raise: "its owner can raise it",
      },
      {
        limits: changedLimits(rules.budget, adminBudget?.limits ?? {}),
        used,
        scope: "task",
        of: "the limit for one task",
        raise: BY_ADMIN,
      },
      {
        limits: changedLimits(rules.agents.get(agent)?.budget ?? {}, adminBudget?.agents[agent] ?? {}),
        used: state.agents.get(agent)?.usage ?? NO_USAGE,
        scope: "agent",
        of: `the limit for agent '${agent}' in one task`,
        raise: BY_ADMIN,
      },
    ];
  }

  #sharedLevels(instance: InstanceId, today: Today): readonly Level[] {
    const caller = instanceKey(instance);
    return [
      {
        limits: today.caller,
        used: addTotals(today.callerUsed ?? NO_USAGE, this.#pending.get(caller) ?? NO_USAGE),
        scope: "caller",
        of: `the daily limit (UTC) for ${caller}`,
        raise: `${BY_ADMIN}, or the task continues tomorrow`,
        shared: true,
      },
      {
        limits: today.total,
        used: addTotals(today.totalUsed ?? NO_USAGE, this.#pending.get(caller) ?? NO_USAGE),
        scope: "caller_total",
        of: `the limit for all tasks of ${caller}`,
        raise: BY_ADMIN,
        shared: true,
      },
      {
        limits: today.all,
        used: addTotals(today.allUsed ?? NO_USAGE, this.#pendingInAll),
        scope: "day",
        of: "the server's daily limit (UTC)",
        raise: `${BY_ADMIN}, or the task continues tomorrow`,
        shared: true,
      },
    ];
  }

  async #limits(scope: BudgetScope, usage: UsageReads | undefined): Promise<BudgetLimits> {
    const { callerBudget, callerTotalBudget, dayBudget } = this.#parts.limits;
    const configured = scope === "day" ? dayBudget : scope.total === true ? callerTotalBudget : callerBudget;
    const set = await usage?.limits(scope);
    return set === undefined ? configured : changedLimits(configured, set);
  }
}

const NO_ROWS: readonly UsageAdd[] = [];

function limitOf({ scope, limits }: Level, name: LimitName): ReachedLimit {
  return { scope, name: LIMIT_KEYS[name], value: limits[name] ?? 0 };
}

function reachedText({ limits, of, raise }: Level, reached: LimitName): string {
  const unit = { maxCost: "cost", maxTokens: "tokens", maxCalls: "model calls" }[reached];
  return `${of} is reached (${LIMIT_KEYS[reached]}: ${limits[reached]}, ${unit}); ${raise}`;
}

function unpricedText({ of }: Level, model: string): string {
  return (
    `${of} is a cost (max_cost), and no price is configured for ${model}, so its cost cannot be counted: ` +
    "set its price (models.prices) or lift the limit"
  );
}
