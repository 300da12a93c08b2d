/** The server itself and the swarms it knows. */
import { z } from "zod";
import { TaskId } from "../../mail/message.js";
import { AUTH_STATES } from "../registry.js";

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
    timestamp: z.string().meta({ description: "Of the last change of `status`." }),
    store: z
      .object({
        waiting: z.number().meta({ description: "Writes that wait." }),
        retries: z.number().meta({ description: "Attempts that were repeated since the start." }),
        reason: z.string().exactOptional(),
        since: z.string().exactOptional(),
      })
      .exactOptional()
      .meta({ description: "While it cannot be written. Messages are refused with 503 meanwhile." }),
    taking_up: z
      .object({ done: z.number(), of: z.number() })
      .exactOptional()
      .meta({ description: "After a start, while running tasks of the last process are taken up." }),
  })
  .meta({ id: "Health" });

export const HealthRequest = z
  .looseObject({ status: z.string().min(1).max(200) })
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
  .object({ id: z.string(), username: z.string(), role: z.string() })
  .meta({ id: "Identity" });

export const SwarmListing = z
  .object({
    swarm_name: z.string(),
    name: z.string(),
    base_url: z.string().nullable(),
    version: z.string().nullable(),
    last_seen: z.string().nullable(),
    is_active: z.boolean(),
    latency: z.number().nullable(),
    swarm_description: z.string().nullable(),
    keywords: z.array(z.string()),
    metadata: z.record(z.string(), z.unknown()).nullable(),
    volatile: z
      .boolean()
      .exactOptional()
      .meta({ description: "Forgotten at the next start. For admins, as what follows." }),
    auth_ref: z.string().nullable().exactOptional().meta({
      description: "Reference to the variable in which the server finds the token for it; never the token.",
    }),
    auth_state: z
      .enum(AUTH_STATES)
      .exactOptional()
      .meta({ description: "`needs token`: the variable is not set." }),
  })
  .meta({ id: "SwarmListing" });

export const SwarmList = z.object({ swarms: z.array(SwarmListing) }).meta({ id: "SwarmList" });

export const RegisterRequest = z
  .looseObject({
    name: z.string().min(1).max(256).exactOptional(),
    swarm_name: z.string().min(1).max(256).exactOptional().meta({ description: "Newer name of `name`." }),
    base_url: z.string().min(1).max(2048).exactOptional(),
    auth_token: z.string().max(8192).exactOptional(),
    volatile: z.boolean().exactOptional().meta({ description: "Default true: forgotten at the next start." }),
    metadata: z.record(z.string(), z.unknown()).exactOptional(),
  })
  .meta({ id: "RegisterRequest" });

export const SwarmPath = z.object({
  name: z.string().min(1).max(256).meta({ description: "The swarm's name." }),
});

export const SwarmPing = z
  .object({
    swarm_name: z.string(),
    ok: z.boolean(),
    latency: z.number().nullable().meta({ description: "Seconds; null without an answer." }),
    status: z.string().nullable().meta({ description: "What it says about its health." }),
    reason: z.string().nullable().meta({ description: "Why there is no good answer." }),
  })
  .meta({ id: "SwarmPing" });

export const SwarmProposals = z
  .object({
    proposals: z.array(
      z.object({
        swarm_name: z.string(),
        base_url: z.string(),
        source: z.string().meta({ description: "The server that said so." }),
        proposed_at: z.string(),
      }),
    ),
  })
  .meta({ id: "SwarmProposals" });

export const AcceptRequest = z
  .looseObject({
    auth_token: z.string().max(8192).exactOptional(),
    volatile: z.boolean().exactOptional().meta({ description: "Default false: it is kept." }),
  })
  .meta({ id: "AcceptRequest" });

export const SwarmReceipt = z
  .object({ status: z.string(), swarm_name: z.string() })
  .meta({ id: "SwarmReceipt" });

export const SwarmDump = z
  .object({
    status: z.literal("dumped"),
    swarm_name: z.string(),
    swarm: z.record(z.string(), z.unknown()).meta({ description: "The definition in force, as data." }),
  })
  .meta({ id: "SwarmDump" });

export const LoadRequest = z
  .looseObject({
    json: z.string().min(1).meta({ description: "One swarm as JSON text, as in `swarms.json`." }),
  })
  .meta({ id: "LoadRequest" });

export const CancelAnswer = z
  .object({ task_id: z.string(), status: z.literal("cancelled") })
  .meta({ id: "CancelAnswer" });

export const TaskQuery = z.object({ task_id: TaskId.exactOptional() });
