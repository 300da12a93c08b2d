/** The server itself and its swarm. */
import { z } from "zod";
import { TaskId } from "../../../mail/index.js";

const SwarmInfo = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string(),
  entrypoint: z.string(),
  keywords: z.array(z.string()),
  public: z.boolean(),
});

export const ServerInfo = z
  .object({
    name: z.literal("mail"),
    version: z.string().meta({ description: "Version of the MAIL protocol." }),
    protocol_version: z.string(),
    swarm: SwarmInfo,
    status: z.string(),
    uptime: z.number().meta({ description: "Seconds." }),
    capabilities: z.array(z.string()),
    public_key: z
      .string()
      .exactOptional()
      .meta({ description: "Verifies what this server signs to others." }),
    server: z.object({ name: z.string(), version: z.string() }),
  })
  .meta({ id: "ServerInfo" });

export const Health = z
  .object({
    status: z.string().meta({
      description:
        "`degraded` while nothing can be written and `failed` when nothing ever will; else what an admin said.",
    }),
    swarm_name: z.string(),
    timestamp: z.string().meta({ description: "Time of the last change of `status`." }),
    store: z
      .object({
        waiting: z.number().meta({ description: "Number of waiting writes." }),
        retries: z.number().meta({ description: "Repeated attempts since the start." }),
        reason: z.string().exactOptional(),
        since: z.string().exactOptional(),
      })
      .exactOptional()
      .meta({
        description: "Present while the store cannot write. Messages are rejected with 503 meanwhile.",
      }),
    taking_up: z.object({ done: z.number(), of: z.number() }).exactOptional().meta({
      description: "Present after a start while tasks of the previous process are being recovered.",
    }),
    degraded: z
      .array(
        z.object({
          extension: z.string(),
          status: z.literal("degraded"),
          detail: z.string().exactOptional(),
        }),
      )
      .exactOptional()
      .meta({ description: "Extensions that report a problem." }),
  })
  .meta({ id: "Health" });

export const HealthRequest = z
  .strictObject({ status: z.string().min(1).max(200) })
  .meta({ id: "HealthRequest" });

export const ServerStatus = z
  .object({
    swarm: z.object({ name: z.string(), status: z.string() }),
    active_users: z.number(),
    user_mail_ready: z.boolean(),
    user_task_running: z.boolean(),
  })
  .meta({ id: "ServerStatus" });

export const Identity = z
  .object({
    id: z.string(),
    username: z.string(),
    role: z.string(),
    provider: z
      .string()
      .meta({ description: "Who accepted the credential: `token`, `service`, `jwt`, `dev`." }),
    token_id: z.string().nullable().meta({ description: "The id of the token, if Mailroom issued it." }),
    dev: z
      .boolean()
      .meta({ description: "Whether the server runs in development mode and accepts any name." }),
  })
  .meta({ id: "Identity" });

export const SwarmDump = z
  .object({
    status: z.literal("dumped"),
    swarm_name: z.string(),
    swarm: z.record(z.string(), z.unknown()).meta({ description: "The definition in force, as data." }),
    limits: z
      .object({
        max_steps: z.int(),
        repetition: z.int(),
        own_turns: z.int(),
        errors_in_a_row: z.int(),
        recoveries: z.int(),
        action_attempts: z.int(),
        turns: z.int(),
        turns_per_task: z.int(),
        actions_per_task: z.int(),
        running_tasks: z.int(),
        running_tasks_per_caller: z.int(),
        mailbox: z.int(),
        result_length: z.int(),
        task_bytes: z.int(),
        task_timeout_ms: z.int(),
        turn_timeout_ms: z.int(),
        action_timeout_ms: z.int(),
        approval_timeout_ms: z.int(),
        reply_timeout_ms: z.int(),
      })
      .meta({
        description: "The limits in force, as configured. 0 means no limit where the setting allows it.",
      }),
  })
  .meta({ id: "SwarmDump" });

export const LoadRequest = z
  .strictObject({
    json: z.string().min(1).meta({ description: "One swarm as JSON text, as in `swarms.json`." }),
  })
  .meta({ id: "LoadRequest" });

export const CancelAnswer = z
  .object({ task_id: z.string(), status: z.literal("cancelled") })
  .meta({ id: "CancelAnswer" });

export const TaskQuery = z.object({ task_id: TaskId.exactOptional() });
