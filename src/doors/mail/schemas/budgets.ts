/** What model calls used, and the limits on it. */
import { z } from "zod";
import {
  BudgetBody,
  BudgetChangeBody,
  EXPECTS,
  Status,
  TaskRecord,
  UsageBody,
} from "../../../extension/index.js";

const Day = z
  .string()
  .regex(/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/)
  .meta({ description: "A day in UTC: `2026-01-31`.", [EXPECTS]: "a day such as 2026-01-31" });

export const UsageQuery = z.object({
  from: Day.exactOptional().meta({ description: "First day, in UTC: `2026-01-31`." }),
  to: Day.exactOptional().meta({ description: "Last day." }),
});

const AgentUsage = z.object({ agent: z.string(), usage: UsageBody });

const UsageDays = z
  .array(z.object({ day: z.string(), usage: UsageBody }))
  .meta({ description: "Days with any usage, newest first, at most 400." });

export const UsageReport = z
  .object({
    today: z.object({
      day: z.string(),
      usage: UsageBody.nullable(),
      agents: z.array(AgentUsage).meta({ description: "The most expensive first." }),
    }),
    budget: BudgetBody.meta({ description: "Limits of the caller for a day (UTC)." }),
    total: z
      .object({ usage: UsageBody.nullable(), budget: BudgetBody })
      .meta({ description: "Usage and limits of the caller on all days together." }),
    days: UsageDays,
  })
  .meta({ id: "UsageReport", description: "What the model calls of the caller's tasks used." });

export const AdminUsageQuery = z.object({
  ...UsageQuery.shape,
  day: Day.exactOptional().meta({
    description: "The day that is shown by agent and by caller. Default: today.",
  }),
});

export const AdminUsageReport = z
  .object({
    day: z.string(),
    usage: UsageBody.nullable(),
    agents: z.array(AgentUsage).meta({ description: "The most expensive first." }),
    callers: z
      .array(z.object({ caller: z.string(), usage: UsageBody }))
      .meta({ description: "`role:id`, the most expensive first." }),
    budget: BudgetBody.meta({ description: "Limits of the server for a day (UTC)." }),
    days: UsageDays,
  })
  .meta({ id: "AdminUsageReport", description: "What all model calls used." });

export const BudgetRequest = z.strictObject({ budget: BudgetChangeBody }).meta({ id: "BudgetRequest" });

export const AdminTaskBudgetRequest = z
  .strictObject({
    budget: BudgetChangeBody.exactOptional(),
    agents: z
      .record(z.string(), BudgetChangeBody)
      .exactOptional()
      .meta({ description: "Limits of agents in this task." }),
  })
  .meta({ id: "AdminTaskBudget" });

export const TaskBudgetAnswer = z
  .object({
    key: z.string(),
    task_id: z.string(),
    status: Status.meta({ description: "`running` if the task was paused at a limit and continues." }),
    budget: TaskRecord.shape.budget,
    usage: TaskRecord.shape.usage,
  })
  .meta({ id: "TaskBudgetAnswer" });

export const DailyBudgetAnswer = z
  .object({ budget: BudgetBody })
  .meta({ id: "DailyBudget", description: "Limits that apply from now on." });

export const CallerPath = z.object({
  caller: z
    .string()
    .regex(/^(?:user|admin|swarm):[^\p{Cc}]{1,256}$/u)
    .meta({ description: "`role:id`", [EXPECTS]: "role:id, such as user:ann" }),
});

export const BudgetPageQuery = z.object({
  limit: z.int().min(1).max(1000).exactOptional().meta({ description: "Callers on a page. Default 100." }),
  after: CallerPath.shape.caller.exactOptional().meta({ description: "The last caller of the page before." }),
});

export const BudgetPage = z
  .object({
    configured: z.object({ task: BudgetBody, caller: BudgetBody, caller_total: BudgetBody, day: BudgetBody }),
    day: BudgetBody.meta({ description: "Limits of the server for a day (UTC) that apply." }),
    callers: z.array(z.object({ caller: z.string(), budget: BudgetBody, total: BudgetBody })).meta({
      description:
        "Callers with limits of their own. `budget` applies for a day (UTC), `total` to all days together.",
    }),
    next_after: z
      .string()
      .nullable()
      .meta({ description: "Hand it back as `after`; null on the last page." }),
  })
  .meta({ id: "BudgetPage" });
