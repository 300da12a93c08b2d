/** Tokens, cost and time of a task, by agent, by model and by turn. */
import { usedIn } from "../../engine/pure.js";
import type { JournalEntry } from "./journal-entry.js";

export interface Sum {
  turns: number;
  failed: number;
  input: number;
  output: number;
  cached: number;
  cost: number;
}

export interface TurnCost {
  readonly n: number;
  readonly agent: string;
  readonly model: string | undefined;
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly cost: number;
}

export interface Costs {
  readonly total: Sum;
  readonly agents: ReadonlyMap<string, Sum>;
  readonly models: ReadonlyMap<string, Sum>;
  readonly turns: readonly TurnCost[];
  readonly messages: number;
  readonly actions: number;
  readonly failedActions: number;
  /** Milliseconds in which the task waited for a person. */
  readonly waited: number;
  readonly from: number;
  /** When it ended; of a task that has not ended, its last entry. */
  readonly to: number;
}

const none = (): Sum => ({ turns: 0, failed: 0, input: 0, output: 0, cached: 0, cost: 0 });

export function costsOf(entries: readonly JournalEntry[]): Costs {
  const total = none();
  const agents = new Map<string, Sum>();
  const models = new Map<string, Sum>();
  const turns: TurnCost[] = [];
  const sumOf = (sums: Map<string, Sum>, name: string) => {
    const sum = sums.get(name) ?? none();
    sums.set(name, sum);
    return sum;
  };
  let messages = 0;
  let actions = 0;
  let failedActions = 0;
  let waited = 0;
  let pausedAt: number | undefined;
  let endedAt: number | undefined;
  for (const entry of entries) {
    const used = "usage" in entry ? usedIn(entry) : undefined;
    if (used !== undefined && "usage" in entry) {
      const { model } = entry.usage ?? {};
      const sums = [
        total,
        sumOf(agents, entry.agent),
        ...(model === undefined ? [] : [sumOf(models, model)]),
      ];
      for (const sum of sums) {
        sum.input += used.inputTokens;
        sum.output += used.outputTokens;
        sum.cached += used.cachedInputTokens;
        sum.cost += used.cost ?? 0;
      }
    }
    switch (entry.t) {
      case "turn": {
        const {
          inputTokens = 0,
          outputTokens = 0,
          cachedInputTokens = 0,
          cost = 0,
          model,
        } = entry.usage ?? {};
        turns.push({
          n: entry.n,
          agent: entry.agent,
          model,
          input: inputTokens,
          output: outputTokens,
          cached: cachedInputTokens,
          cost,
        });
        const sums = [
          total,
          sumOf(agents, entry.agent),
          ...(model === undefined ? [] : [sumOf(models, model)]),
        ];
        for (const sum of sums) sum.turns++;
        break;
      }
      case "turn_failed":
        for (const sum of [total, sumOf(agents, entry.agent)]) {
          sum.turns++;
          sum.failed++;
        }
        break;
      case "sent":
        if (entry.message.message.sender.address_type !== "system") messages++;
        break;
      case "action_finished":
        actions++;
        if (!entry.ok) failedActions++;
        break;
      case "paused":
        pausedAt = entry.at;
        break;
      case "resumed":
      case "completed":
      case "cancelled":
      case "failed":
        if (pausedAt !== undefined) waited += entry.at - pausedAt;
        pausedAt = undefined;
        endedAt = entry.t === "resumed" ? undefined : entry.at;
        break;
    }
  }
  return {
    total,
    agents,
    models,
    turns,
    messages,
    actions,
    failedActions,
    waited,
    from: entries[0]?.at ?? 0,
    to: endedAt ?? entries.at(-1)?.at ?? 0,
  };
}
