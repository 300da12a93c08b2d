/** Questions of tasks to people, and the audit log. */
import { z } from "zod";
import { AUDIT_ACTIONS, MOST_APPROVERS, MOST_DECISIONS } from "../../../engine/index.js";
import { BreakpointCall, Status } from "../../../extension/index.js";
import { BreakpointRequest } from "./message.js";

const RIGHTS = ["owner", "approver", "admin"] as const;

const Approver = z
  .string()
  .min(1)
  .max(300)
  .meta({ description: "A principal (`user:bob`, `admin:root`) or a role (`user`, `admin`)." });

export const ApproversRequest = z
  .strictObject({
    approvers: z
      .array(Approver)
      .max(MOST_APPROVERS)
      .meta({ description: "Who may answer for the owner from now on; an empty list removes them." }),
  })
  .meta({ id: "ApproversRequest" });

export const ApproversAnswer = z
  .object({ key: z.string(), task_id: z.string(), approvers: z.array(Approver) })
  .meta({ id: "Approvers" });

export const WaitingCall = BreakpointCall.extend({
  agent: z.string(),
  kind: z.enum(["breakpoint", "approval"]).meta({
    description:
      "`breakpoint`: a person supplies the result. `approval`: a person decides whether the call runs.",
  }),
  expires: z.string().exactOptional().meta({ description: "When it can no longer be approved." }),
}).meta({ id: "WaitingCall", description: "A call that waits for a person." });

export const Approval = z
  .object({
    key: z.string().meta({ description: "The task's internal key, for `/approvals/{key}`." }),
    task_id: z.string(),
    task_owner: z.string(),
    title: z.string().nullable(),
    since: z.string().meta({ description: "Since when the task waits." }),
    right: z.enum(RIGHTS).meta({ description: "Why the caller may answer." }),
    calls: z.array(WaitingCall),
    approvers: z.array(Approver),
  })
  .meta({ id: "Approval", description: "A task that waits for a person." });

export const ApprovalPage = z
  .object({ approvals: z.array(Approval), next_cursor: z.string().nullable() })
  .meta({ id: "ApprovalPage" });

export const ApprovalQuery = z.object({
  limit: z.int().min(1).max(200).exactOptional().meta({ description: "Tasks on a page. Default 50." }),
  cursor: z.string().min(1).max(512).exactOptional(),
  scope: z
    .enum(["mine", "all"])
    .exactOptional()
    .meta({
      description:
        "`mine` (the default): the caller's own tasks, and those that the caller was named for. `all`: every task " +
        "that waits, for admins that may act for owners.",
    }),
});

const ApprovalDecision = z
  .strictObject({
    call_id: z.string().min(1),
    decision: z.enum(["approve", "reject"]),
    arguments: z
      .record(z.string(), z.unknown())
      .exactOptional()
      .meta({ description: "For an approval: replaces the arguments of the call. They are checked." }),
    reason: z.string().exactOptional().meta({ description: "For a rejection: shown to the agent." }),
  })
  .meta({ id: "ApprovalDecision" });

export const ApprovalAnswerRequest = z
  .strictObject({
    results: BreakpointRequest.shape.results
      .exactOptional()
      .meta({ description: "The results of the open breakpoint calls." }),
    caller: BreakpointRequest.shape.caller,
    decisions: z
      .array(ApprovalDecision)
      .min(1)
      .max(MOST_DECISIONS)
      .exactOptional()
      .meta({ description: "In place of `results`: decisions on calls that wait for approval." }),
  })
  .meta({ id: "ApprovalAnswer" });

export const ApprovalReceipt = z
  .object({ key: z.string(), task_id: z.string(), status: z.literal("answered") })
  .meta({ id: "ApprovalReceipt", description: "The answer is durable and the task continues." });

export const AdminMessageRequest = z
  .strictObject({ body: z.string().min(1), subject: z.string().max(1000).exactOptional() })
  .meta({ id: "AdminMessage" });

export const AdminMessageReceipt = z
  .object({ key: z.string(), task_id: z.string(), status: Status })
  .meta({ id: "AdminMessageReceipt" });

export const AuditPage = z
  .object({
    records: z.array(
      z
        .object({
          number: z.number(),
          time: z.string(),
          actor: z.string().meta({ description: "The principal that acted." }),
          action: z.enum(AUDIT_ACTIONS),
          right: z.enum(RIGHTS).meta({ description: "Why it was allowed to." }),
          key: z.string(),
          task_id: z.string(),
          owner: z.string(),
          details: z.record(z.string(), z.unknown()),
        })
        .meta({ id: "AuditRecord" }),
    ),
    next_before: z.number().nullable().meta({ description: "Pass it as `before`; null on the last page." }),
  })
  .meta({ id: "AuditPage" });

export const AuditPageQuery = z.object({
  limit: z.int().min(1).max(1000).exactOptional().meta({ description: "Records on a page. Default 100." }),
  before: z.int().min(1).exactOptional().meta({ description: "`next_before` of the previous page." }),
  actor: z.string().min(1).max(300).exactOptional().meta({ description: "Only what this principal did." }),
  key: z.string().min(1).max(64).exactOptional().meta({ description: "Only this task." }),
});
