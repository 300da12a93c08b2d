/** Mail between swarms. The wrappers themselves are checked by `mail/`, which takes the spellings of all generations. */
import { z } from "zod";
import { Event, Status, TaskError } from "../../extension/index.js";
import { MAILMessage, TaskId } from "../../mail/index.js";
import { AUTH_STATES } from "./swarm-listing.js";

export const WrapperRequest = z
  .looseObject({
    message: z
      .unknown()
      .exactOptional()
      .meta({ description: "A MAILInterswarmMessage. The body may also be the bare message." }),
  })
  .meta({ id: "WrapperRequest" });

export const InterswarmReceipt = z
  .object({
    swarm: z.string(),
    task_id: z.string(),
    status: z.literal("success"),
    local_runner: z
      .string()
      .meta({ description: "`role:id@swarm` of the instance that received the message." }),
  })
  .meta({ id: "InterswarmReceipt" });

/**
 * The body of `/interswarm/message` with every known alias (REF-9). A wrapper of the oldest form has none of these
 * fields.
 */
export const InterswarmMessageRequest = z
  .looseObject({
    user_token: z.string().exactOptional().meta({ description: "Required; neither stored nor forwarded." }),
    body: z.string().exactOptional(),
    message: z.string().exactOptional().meta({ description: "Another name of `body`." }),
    targets: z.array(z.string().min(1)).exactOptional(),
    target_agent: z.string().min(1).exactOptional().meta({ description: "One target." }),
    subject: z.string().max(1000).exactOptional().meta({ description: "Default `Interswarm Message`." }),
    msg_type: z.string().exactOptional().meta({ description: "`request` or `broadcast`." }),
    task_id: TaskId.exactOptional(),
    routing_info: z.record(z.string(), z.unknown()).exactOptional(),
    stream: z
      .boolean()
      .exactOptional()
      .meta({ description: "Whether the response includes the task's events." }),
    ignore_stream_pings: z.boolean().exactOptional(),
    timeout: z.number().min(0).max(86_400).exactOptional().meta({ description: "Seconds. Default 3600." }),
  })
  .meta({ id: "InterswarmMessageRequest" });
export type InterswarmMessageRequest = z.infer<typeof InterswarmMessageRequest>;

export const InterswarmTask = z
  .object({
    task_id: z.string(),
    status: Status,
    busy: z.boolean().meta({
      description: "Whether mail, turns, actions or questions to people or other swarms are open in it.",
    }),
  })
  .meta({ id: "InterswarmTask" });

export const InterswarmMessageAnswer = z
  .object({
    response: MAILMessage.nullable().meta({ description: "Null until an answer has arrived." }),
    events: z.array(Event).nullable(),
    task_id: z.string(),
    status: Status,
    error: TaskError.exactOptional(),
  })
  .meta({ id: "InterswarmMessageAnswer" });

export const OldResponseAnswer = z
  .object({ status: z.enum(["response_processed", "no_mail_instance"]), task_id: z.string() })
  .meta({ id: "OldResponseAnswer" });

const SwarmListing = z
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
      .meta({ description: "Removed at the next start. Shown to admins only, like the fields after it." }),
    auth_ref: z.string().nullable().exactOptional().meta({
      description: "Reference to the variable in which the server finds the token for it; never the token.",
    }),
    auth_state: z
      .enum(AUTH_STATES)
      .exactOptional()
      .meta({ description: "`needs token`: the variable is not set." }),
    failures: z.int().exactOptional().meta({ description: "Failed health checks in a row." }),
    last_error: z
      .string()
      .nullable()
      .exactOptional()
      .meta({ description: "Why the last health check failed; null after one that succeeded." }),
    checked_at: z.string().nullable().exactOptional().meta({ description: "When it was last checked." }),
    checks: z
      .array(z.tuple([z.number(), z.number().nullable()]))
      .exactOptional()
      .meta({
        description:
          "The last 60 health checks since the start, oldest first: milliseconds since the epoch, and the latency in " +
          "seconds or null for one that failed.",
      }),
    waiting: z.int().exactOptional().meta({ description: "Messages for it that are not delivered." }),
    public_key: z
      .string()
      .nullable()
      .exactOptional()
      .meta({ description: "Fingerprint of the key that was seen at registration." }),
  })
  .meta({ id: "SwarmListing" });

export const SwarmList = z.object({ swarms: z.array(SwarmListing) }).meta({ id: "SwarmList" });

export const RegisterRequest = z
  .strictObject({
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
    latency: z.number().nullable().meta({ description: "Seconds; null if there was no answer." }),
    status: z.string().nullable().meta({ description: "The health that it reports." }),
    reason: z.string().nullable().meta({ description: "Why there is no good answer." }),
  })
  .meta({ id: "SwarmPing" });

export const SwarmProposals = z
  .object({
    proposals: z.array(
      z.object({
        swarm_name: z.string(),
        base_url: z.string(),
        source: z.string().meta({ description: "The server that reported it." }),
        proposed_at: z.string(),
      }),
    ),
  })
  .meta({ id: "SwarmProposals" });

export const AcceptRequest = z
  .strictObject({
    auth_token: z.string().max(8192).exactOptional(),
    volatile: z.boolean().exactOptional().meta({ description: "Default false: it is kept." }),
  })
  .meta({ id: "AcceptRequest" });
