/** `POST /message` (REF-7) and the answers to breakpoints. */
import { z } from "zod";
import {
  BreakpointCall,
  BudgetChangeBody,
  Event,
  EXPECTS,
  HoldReason,
  Status,
  TaskError,
} from "../../../extension/index.js";
import { TaskId } from "../../../mail/index.js";

/** The message types that a user may send (decision D5). */
const PERSON_MESSAGE_TYPES = ["request", "broadcast", "interrupt"] as const;

const MaxSteps = z.union([z.int().min(1), z.string().regex(/^[1-9][0-9]{0,8}$/), z.null()]).meta({
  description: "Steps before the swarm is made to finish; null for no limit.",
  [EXPECTS]: "a positive integer, the text of one, or null for no limit",
});

const Seconds = z
  .union([z.number().min(0).max(86_400), z.string().regex(/^[0-9]{1,5}(\.[0-9]{1,6})?$/), z.null()])
  .meta({
    description: "Seconds to wait for the end of the round. Default 3600.",
    [EXPECTS]: "a number of seconds from 0 to 86400",
  });

const CallResult = z.looseObject({
  call_id: z.string().exactOptional(),
  content: z.unknown().exactOptional(),
});

const BreakpointResult = z.union([z.string(), z.array(CallResult), CallResult, z.null()]).meta({
  description:
    'Results of the open calls: `{"content": …}` for the only one, `[{"call_id": …, "content": …}]` for several, ' +
    "either of them also as JSON text, or plain text for the only one.",
  [EXPECTS]: "a text, an object with content, or a list of objects with call_id and content",
});

const Kwargs = z
  .looseObject({
    max_steps: MaxSteps.exactOptional(),
    timeout: Seconds.exactOptional(),
    budget: BudgetChangeBody.exactOptional().meta({
      description:
        "Limits on what the model calls of the task use, set by its owner. For an existing task they change those that " +
        "were set before.",
    }),
    breakpoint_tool_call_result: BreakpointResult.exactOptional(),
    breakpoint_tool_caller: z.string().nullable().exactOptional(),
  })
  .meta({ description: "Further settings; keys that are not listed are ignored." });

export const MessageRequest = z
  .strictObject({
    body: z
      .string()
      .exactOptional()
      .meta({ description: "The message. Required unless a breakpoint is answered." }),
    message: z
      .string()
      .exactOptional()
      .meta({ description: "Older name of `body`, which takes precedence." }),
    subject: z.string().max(1000).exactOptional().meta({ description: "Default `New Message`." }),
    msg_type: z.enum(PERSON_MESSAGE_TYPES).exactOptional().meta({ description: "Default `request`." }),
    task_id: TaskId.exactOptional(),
    entrypoint: z.string().exactOptional().meta({ description: "Default: the swarm's." }),
    show_events: z
      .boolean()
      .exactOptional()
      .meta({ description: "Whether the response includes the task's events." }),
    stream: z
      .boolean()
      .exactOptional()
      .meta({ description: "Answers with the events as they happen (SSE)." }),
    wait: z
      .boolean()
      .exactOptional()
      .meta({ description: "`false` answers 202 as soon as the message is durable." }),
    resume_from: z.enum(["user_response", "breakpoint_tool_call"]).exactOptional(),
    kwargs: Kwargs.exactOptional(),
  })
  .meta({ id: "MessageRequest" });
export type MessageRequest = z.infer<typeof MessageRequest>;

export const BreakpointRequest = z
  .strictObject({
    results: BreakpointResult,
    caller: z.string().exactOptional().meta({ description: "The agent whose calls are answered." }),
    show_events: z.boolean().exactOptional(),
    stream: z.boolean().exactOptional(),
    wait: z.boolean().exactOptional(),
    timeout: Seconds.exactOptional(),
    max_steps: MaxSteps.exactOptional(),
  })
  .meta({ id: "BreakpointRequest" });
export type BreakpointRequest = z.infer<typeof BreakpointRequest>;

export const MessageAnswer = z
  .object({
    response: z.string().nullable().meta({ description: "The answer; null while the task runs." }),
    events: z.array(Event).nullable(),
    task_id: z.string(),
    status: Status,
    error: TaskError.exactOptional(),
    breakpoint: z
      .array(BreakpointCall)
      .exactOptional()
      .meta({ description: "Calls that wait for a person." }),
    approvals: z
      .array(BreakpointCall)
      .exactOptional()
      .meta({ description: "Calls that run once a person has approved them." }),
    reason: HoldReason.exactOptional(),
  })
  .meta({ id: "MessageAnswer", description: "The result of a message." });
export type MessageAnswer = z.infer<typeof MessageAnswer>;
