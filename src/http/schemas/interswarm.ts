/** Mail between swarms. The wrappers themselves are checked by `mail/`, which takes the spellings of all generations. */
import { z } from "zod";
import { MAILMessage, TaskId } from "../../mail/message.js";
import { Event, Status, TaskError } from "./common.js";

export const WrapperRequest = z
  .looseObject({
    message: z
      .unknown()
      .exactOptional()
      .meta({ description: "A MAILInterswarmMessage. It may also stand bare, in place of the whole body." }),
  })
  .meta({ id: "WrapperRequest" });

export const InterswarmReceipt = z
  .object({
    swarm: z.string(),
    task_id: z.string(),
    status: z.literal("success"),
    local_runner: z.string().meta({ description: "`role:id@swarm` of the instance that got the message." }),
  })
  .meta({ id: "InterswarmReceipt" });

/** mail.md 5.5 with every alias of 14 #27. A wrapper of the oldest form has none of these fields. */
export const InterswarmMessageRequest = z
  .looseObject({
    user_token: z
      .string()
      .exactOptional()
      .meta({ description: "Must be there; neither stored nor forwarded." }),
    body: z.string().exactOptional(),
    message: z.string().exactOptional().meta({ description: "Another name of `body`." }),
    targets: z.array(z.string().min(1)).exactOptional(),
    target_agent: z.string().min(1).exactOptional().meta({ description: "One target." }),
    subject: z.string().max(1000).exactOptional().meta({ description: "Default `Interswarm Message`." }),
    msg_type: z.string().exactOptional().meta({ description: "`request` or `broadcast`." }),
    task_id: TaskId.exactOptional(),
    routing_info: z.record(z.string(), z.unknown()).exactOptional(),
    stream: z.boolean().exactOptional().meta({ description: "Whether the answer has the task's events." }),
    ignore_stream_pings: z.boolean().exactOptional(),
    timeout: z.number().min(0).max(86_400).exactOptional().meta({ description: "Seconds. Default 3600." }),
  })
  .meta({ id: "InterswarmMessageRequest" });
export type InterswarmMessageRequest = z.infer<typeof InterswarmMessageRequest>;

export const InterswarmMessageAnswer = z
  .object({
    response: MAILMessage.nullable().meta({ description: "Null while nobody has answered." }),
    events: z.array(Event).nullable(),
    task_id: z.string(),
    status: Status,
    error: TaskError.exactOptional(),
  })
  .meta({ id: "InterswarmMessageAnswer" });

export const OldResponseAnswer = z
  .object({ status: z.enum(["response_processed", "no_mail_instance"]), task_id: z.string() })
  .meta({ id: "OldResponseAnswer" });
