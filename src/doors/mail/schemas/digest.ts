/** Tasks in figures. */
import { z } from "zod";
import { HoldReason } from "../../../extension/index.js";
import { TaskId } from "../../../mail/index.js";
import { WaitingCall } from "./approvals.js";

const MOST = 100;

export const DigestRequest = z
  .strictObject({ tasks: z.array(TaskId).min(1).max(MOST).meta({ description: "Task ids of the caller." }) })
  .meta({ id: "DigestRequest" });

export const AdminDigestRequest = z
  .strictObject({ keys: z.array(z.string().min(1).max(64)).min(1).max(MOST) })
  .meta({ id: "AdminDigestRequest" });

const ReachedLimit = z
  .object({
    scope: z.enum(["owner", "task", "agent", "caller", "caller_total", "day"]).meta({
      description:
        "`owner` raises it with `POST /tasks/{task_id}/budget`; an admin raises the others: for the task and the agent " +
        "with `POST /admin/tasks/{key}/budget`, for a caller and the day with `POST /admin/budgets/…`.",
    }),
    name: z.enum(["max_cost", "max_tokens", "max_calls"]),
    value: z.number(),
  })
  .meta({ description: "With the reason `budget`: the limit that is reached." });

export const TaskDigest = z
  .object({
    task_id: z.string(),
    key: z.string(),
    number: z.int().meta({ description: "The journal's last number that is included." }),
    messages: z.int(),
    turns: z.int(),
    failed_turns: z.int(),
    actions: z.int(),
    failed_actions: z.int(),
    steps: z.int(),
    max_steps: z.int().nullable(),
    model_calls: z.int().meta({ description: "Including failed ones." }),
    failed_model_calls: z.int(),
    tokens: z.object({ input: z.number(), output: z.number(), cached: z.number() }),
    cost: z.number().nullable().meta({ description: "US dollars; null if no price is known." }),
    waited_ms: z
      .number()
      .meta({ description: "How long the task has waited for people, until it last continued." }),
    paused_at: z
      .number()
      .nullable()
      .meta({ description: "Since when it waits, in milliseconds since the epoch." }),
    agents: z.array(z.string()).meta({ description: "In order of appearance." }),
    others: z.array(z.string()).meta({
      description: "Agents of other swarms that sent or received mail: `name@swarm`.",
    }),
    lanes: z.array(z.tuple([z.int(), z.number(), z.number(), z.int()])).meta({
      description:
        "Who worked when: index of the agent, from, to (milliseconds since the task was opened) and flags: 1 failed, " +
        "2 still open, 4 the task waits for a person since.",
    }),
    open: z.array(WaitingCall).meta({ description: "Calls that wait for a person." }),
    held: z
      .object({
        reason: HoldReason,
        agent: z.string(),
        message: z.string(),
        limit: ReachedLimit.exactOptional(),
      })
      .nullable()
      .meta({ description: "What an agent needs before the task can continue." }),
    answerers: z.array(z.string()).meta({ description: "Who may answer: `role:id`, the owner first." }),
    partial: z.boolean().exactOptional().meta({ description: "Only the first 20,000 entries are counted." }),
  })
  .meta({ id: "TaskDigest" });

export const TaskDigestList = z
  .object({
    digests: z
      .array(TaskDigest)
      .meta({ description: "In the order of the request; unknown ones are left out." }),
  })
  .meta({ id: "TaskDigestList" });
