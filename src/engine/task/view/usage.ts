/** Usage and limits in the form that clients see. */
import type { BudgetChange, BudgetLimits, UsageTotals } from "../../usage.js";

/** What model calls used, as clients see it. */
export interface UsageView {
  readonly calls: number;
  readonly failed_calls: number;
  readonly tokens: { readonly input: number; readonly output: number; readonly cached: number };
  readonly cost: number | null;
}

export interface BudgetView {
  readonly max_cost?: number;
  readonly max_tokens?: number;
  readonly max_calls?: number;
}

export function usageView(totals: UsageTotals): UsageView {
  return {
    calls: totals.calls,
    failed_calls: totals.failedCalls,
    tokens: { input: totals.inputTokens, output: totals.outputTokens, cached: totals.cachedInputTokens },
    cost: totals.cost === undefined ? null : rounded(totals.cost),
  };
}

/** Sums of prices end in digits that mean nothing. */
function rounded(cost: number): number {
  return Math.round(cost * 1e9) / 1e9;
}

export function budgetView({ maxCost, maxTokens, maxCalls }: BudgetLimits): BudgetView {
  return {
    ...(maxCost !== undefined && { max_cost: maxCost }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(maxCalls !== undefined && { max_calls: maxCalls }),
  };
}

/** @param body limits as clients write them */
export function readBudgetChange(body: {
  readonly max_cost?: number | null;
  readonly max_tokens?: number | null;
  readonly max_calls?: number | null;
}): BudgetChange {
  const { max_cost: maxCost, max_tokens: maxTokens, max_calls: maxCalls } = body;
  return {
    ...(maxCost !== undefined && { maxCost }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(maxCalls !== undefined && { maxCalls }),
  };
}
