/** Shapes that several routes share. */
import { z } from "zod";
import { TASK_STATUSES } from "../engine/index.js";
import { MAILMessage, TaskId } from "../mail/index.js";

/** Describes in words what a value must be, where the schema alone would not make a good sentence. */
export const EXPECTS = "x-expects";

export const Status = z.enum(TASK_STATUSES).meta({ description: "The status of a task." });

export const ErrorBody = z
  .looseObject({
    detail: z.string().meta({ description: "The problem, for people." }),
    code: z.string().meta({ description: "Stable, for programs." }),
    field: z.string().exactOptional().meta({ description: "The invalid part of the request." }),
    request_id: z.string().exactOptional(),
  })
  .meta({ id: "Error", description: "Every refusal looks like this." });

export const TaskError = z
  .object({ code: z.string(), message: z.string() })
  .meta({ id: "TaskError", description: "Why a task failed." });

const EventData = z
  .object({
    timestamp: z.string(),
    description: z.string(),
    task_id: z.string(),
    extra_data: z.record(z.string(), z.unknown()),
    response: z.string().exactOptional(),
    status: Status.exactOptional(),
  })
  .meta({ id: "EventData" });

export const Event = z
  .object({
    id: z.string().meta({ description: "Opaque; pass it as `after` or `Last-Event-ID`." }),
    event: z.string(),
    data: EventData,
  })
  .meta({ id: "Event", description: "Something that happened in a task." });

export const BreakpointCall = z
  .object({
    arguments: z.string().meta({ description: "JSON text." }),
    call_id: z.string(),
    name: z.string(),
    type: z.literal("function_call"),
    id: z.string(),
    status: z.literal("completed"),
  })
  .meta({ id: "BreakpointCall", description: "A tool call that waits for a person." });

const WaitingApproval = z
  .object({
    agent: z.string(),
    arguments: z.string().meta({ description: "JSON text." }),
    call_id: z.string(),
    name: z.string(),
    type: z.literal("function_call"),
    id: z.string(),
    status: z.literal("completed"),
    since: z.string(),
    expires: z.string().exactOptional().meta({ description: "When it can no longer be approved." }),
  })
  .meta({ id: "WaitingApproval", description: "A call that runs once a person has approved it." });

export const HoldReason = z.enum(["credentials", "budget"]).meta({
  description: "What an agent needs before the paused task can continue; the response says how to supply it.",
});

const UsageFields = {
  calls: z.int().meta({ description: "Model calls, including failed ones." }),
  failed_calls: z.int(),
  tokens: z
    .object({ input: z.number(), output: z.number(), cached: z.number() })
    .meta({ description: "`cached` is part of `input`." }),
  cost: z.number().nullable().meta({ description: "Null if no model had a price." }),
};

export const UsageBody = z.object(UsageFields).meta({ id: "Usage", description: "What model calls used." });

export const BudgetBody = z
  .object({
    max_cost: z.number().min(0).exactOptional(),
    max_tokens: z.int().min(0).exactOptional().meta({ description: "Input and output together." }),
    max_calls: z.int().min(0).exactOptional(),
  })
  .meta({ id: "Budget", description: "Limits on what model calls use. Absent: no limit." });

const WHOLE_LIMIT = { [EXPECTS]: "a whole number from 0, or null for no limit" };

export const BudgetChangeBody = z
  .strictObject({
    max_cost: z
      .number()
      .min(0)
      .nullable()
      .exactOptional()
      .meta({
        [EXPECTS]: "a number from 0, or null for no limit",
      }),
    max_tokens: z.int().min(0).nullable().exactOptional().meta(WHOLE_LIMIT),
    max_calls: z.int().min(0).nullable().exactOptional().meta(WHOLE_LIMIT),
  })
  .meta({ id: "BudgetChange", description: "A number sets a limit, null lifts it, and absent keeps it." });

export const TaskRecord = z
  .object({
    task_id: z.string(),
    key: z.string(),
    task_owner: z.string(),
    task_contributors: z.array(z.string()),
    start_time: z.string(),
    events: z.array(Event),
    is_running: z.boolean(),
    completed: z.boolean(),
    status: Status,
    task_message_queue: z.array(z.tuple([z.number(), z.number(), MAILMessage])),
    remote_swarms: z.array(z.string()),
    title: z.string().nullable(),
    error: TaskError.exactOptional(),
    reason: HoldReason.exactOptional(),
    approvals: z
      .array(WaitingApproval)
      .exactOptional()
      .meta({ description: "Calls that run once a person has approved them (`POST /approvals/{key}`)." }),
    approvers: z.array(z.string()).exactOptional().meta({ description: "Who may answer for the owner." }),
    waiting_for: z
      .array(
        z.object({
          from: z.string(),
          to: z.string(),
          since: z.string().nullable().meta({ description: "Null while the message is being delivered." }),
          until: z.string().nullable().meta({ description: "When the sender is notified; null if never." }),
        }),
      )
      .exactOptional()
      .meta({ description: "Answers of other swarms that the task waits for." }),
    usage: z
      .object({ ...UsageFields, agents: z.record(z.string(), UsageBody) })
      .exactOptional()
      .meta({ id: "TaskUsage", description: "What its model calls used, in all and by agent." }),
    budget: z
      .object({
        owner: BudgetBody.meta({ description: "Limits that the owner set." }),
        configured: BudgetBody.meta({ description: "Limits of the operator for one task." }),
      })
      .exactOptional()
      .meta({ id: "TaskBudget", description: "Limits for this task, if there are any." }),
  })
  .meta({ id: "TaskRecord", description: "Everything about a task, its events included." });

const TaskSummary = z
  .object({
    task_id: z.string(),
    key: z.string(),
    task_owner: z.string(),
    status: Status,
    title: z.string().nullable(),
    start_time: z.string(),
    updated_time: z.string(),
    is_running: z.boolean(),
    completed: z.boolean(),
    usage: UsageBody.exactOptional(),
  })
  .meta({ id: "TaskSummary" });

export const TaskPage = z
  .object({
    tasks: z.array(TaskSummary),
    next_cursor: z.string().nullable().meta({ description: "Pass it as `cursor`; null on the last page." }),
    scanned: z
      .int()
      .exactOptional()
      .meta({ description: "With `q`: the number of tasks that were searched." }),
  })
  .meta({ id: "TaskPage" });

export const EventPage = z
  .object({
    task_id: z.string(),
    status: Status,
    events: z.array(Event),
    next_after: z.string().nullable().meta({
      description: "Pass it as `after` to continue, now or later; null if nothing has happened yet.",
    }),
    more: z.boolean().meta({ description: "Whether more can be read immediately." }),
  })
  .meta({ id: "EventPage" });

export const TaskPath = z.object({ task_id: TaskId });

export const KeyPath = z.object({
  key: z.string().min(1).max(64).meta({ description: "The task's internal key." }),
});

export const PageQuery = z.object({
  limit: z.int().min(1).max(1000).exactOptional().meta({ description: "Tasks on a page. Default 100." }),
  cursor: z
    .string()
    .min(1)
    .max(512)
    .exactOptional()
    .meta({ description: "`next_cursor` of the previous page." }),
  status: Status.exactOptional(),
});

export const EventQuery = z.object({
  after: z.string().min(1).max(32).exactOptional().meta({
    description: "Id of the last event already seen. `Last-Event-ID` means the same and takes precedence.",
  }),
  until: z.enum(["round"]).exactOptional().meta({
    description: "`round`: the stream ends with the round; otherwise it continues until it is closed.",
  }),
  round: z.int().min(1).exactOptional().meta({
    description:
      "The stream ends with the round of the message at this number, as the `Location` of a message stream names it.",
  }),
  limit: z.int().min(1).max(10_000).exactOptional().meta({ description: "Events on a JSON page." }),
});

export const SwarmReceipt = z
  .object({ status: z.string(), swarm_name: z.string() })
  .meta({ id: "SwarmReceipt" });
