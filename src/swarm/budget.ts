/** Limits of a swarm file in the form of the engine. */
import type { BudgetLimits } from "../engine/index.js";
import type { BudgetEntry } from "../mail/index.js";

export function toBudget(entry: BudgetEntry | undefined): { readonly budget?: BudgetLimits } {
  if (entry === undefined) return {};
  const { max_cost: maxCost, max_tokens: maxTokens, max_calls: maxCalls } = entry;
  return {
    budget: {
      ...(maxCost !== undefined && { maxCost }),
      ...(maxTokens !== undefined && { maxTokens }),
      ...(maxCalls !== undefined && { maxCalls }),
    },
  };
}
