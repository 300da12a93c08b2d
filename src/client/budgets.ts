/** What model calls used, and the limits on it. */
import * as z from "zod/mini";
import { callOptions } from "./options.js";
import type { CallOptions, Transport, WriteOptions } from "./transport.js";
import { Budget, TaskBudgetAnswer, Usage } from "./wire.js";

/** A change of limits: a number sets one, null lifts it, and absent keeps it. */
export interface BudgetChange {
  readonly max_cost?: number | null;
  /** Input and output tokens together. */
  readonly max_tokens?: number | null;
  /** Model calls, including failed ones. */
  readonly max_calls?: number | null;
}

/** The same for a task, and for what its agents use in it. */
export interface AdminTaskBudget extends BudgetChange {
  readonly agents?: Readonly<Record<string, BudgetChange>>;
}

/** Days in UTC, such as `2026-01-31`; both are included. */
export interface UsageOptions extends CallOptions {
  /**
   * First day.
   * @defaultValue the first one with any usage
   */
  readonly from?: string;
  /**
   * Last day.
   * @defaultValue today
   */
  readonly to?: string;
}

const AgentUsages = z.array(z.looseObject({ agent: z.string(), usage: Usage }));
const Days = z.array(z.looseObject({ day: z.string(), usage: Usage }));

const UsageReport = z.looseObject({
  today: z.looseObject({ day: z.string(), usage: z.nullable(Usage), agents: AgentUsages }),
  budget: Budget,
  /** On all days together. Older servers do not report it. */
  total: z.optional(z.looseObject({ usage: z.nullable(Usage), budget: Budget })),
  days: Days,
});
/** What the model calls of the caller's tasks used. */
export type UsageReport = z.infer<typeof UsageReport>;

const AdminUsageReport = z.looseObject({
  day: z.string(),
  usage: z.nullable(Usage),
  agents: AgentUsages,
  callers: z.array(z.looseObject({ caller: z.string(), usage: Usage })),
  budget: Budget,
  days: Days,
});
/** What all model calls used: one day by agent and by caller, and all days. */
export type AdminUsageReport = z.infer<typeof AdminUsageReport>;

const DailyBudget = z.looseObject({ budget: Budget });

const BudgetPage = z.looseObject({
  configured: z.looseObject({
    task: Budget,
    caller: Budget,
    caller_total: z.optional(Budget),
    day: Budget,
  }),
  day: Budget,
  callers: z.array(z.looseObject({ caller: z.string(), budget: Budget, total: z.optional(Budget) })),
  next_after: z.nullable(z.string()),
});
/** Limits of the server for a day (UTC), and of callers for a day and in total. */
export type BudgetPage = z.infer<typeof BudgetPage>;

/** @param path the task's */
export function setTaskBudget(
  transport: Transport,
  path: string,
  change: BudgetChange | AdminTaskBudget,
  options: WriteOptions,
): Promise<TaskBudgetAnswer> {
  const { agents, ...budget }: AdminTaskBudget = change;
  const body = { budget, ...(agents !== undefined && { agents }) };
  const call = { method: "POST", path: `${path}/budget`, body } as const;
  return transport.json({ ...call, ...callOptions(options) }, TaskBudgetAnswer);
}

export function getUsage(transport: Transport, options: UsageOptions): Promise<UsageReport> {
  const { from, to } = options;
  return transport.json(
    { method: "GET", path: "/usage", query: { from, to }, ...callOptions(options) },
    UsageReport,
  );
}

export function getAllUsage(
  transport: Transport,
  options: UsageOptions & { readonly day?: string },
): Promise<AdminUsageReport> {
  const { from, to, day } = options;
  const call = { method: "GET", path: "/admin/usage", query: { from, to, day } } as const;
  return transport.json({ ...call, ...callOptions(options) }, AdminUsageReport);
}

export function listBudgets(
  transport: Transport,
  options: CallOptions & { readonly limit?: number; readonly after?: string },
): Promise<BudgetPage> {
  const { limit, after } = options;
  const call = { method: "GET", path: "/admin/budgets", query: { limit, after } } as const;
  return transport.json({ ...call, ...callOptions(options) }, BudgetPage);
}

/** @param change null returns to the configured limits */
export async function setDailyBudget(
  transport: Transport,
  of: "day" | { readonly caller: string; readonly total?: true },
  change: BudgetChange | null,
  options: WriteOptions,
): Promise<Budget> {
  const path =
    of === "day"
      ? "/admin/budgets/day"
      : `/admin/budgets/callers/${encodeURIComponent(of.caller)}${of.total === true ? "/total" : ""}`;
  const call =
    change === null
      ? ({ method: "DELETE", path } as const)
      : ({ method: "POST", path, body: { budget: change } } as const);
  return (await transport.json({ ...call, ...callOptions(options) }, DailyBudget)).budget;
}
