/** Who may answer for a task's owner, what waits for the caller, and what was done for others. */
import type { z } from "zod";
import { MailroomError } from "../../../base/index.js";
import { type Actor, readDecisions } from "../../../engine/index.js";
import {
  ADMINS,
  actorOf as asActor,
  type Caller,
  defineRoute,
  KeyPath,
  NO_INPUT,
  type Route,
  TaskPath,
  USERS_AND_ADMINS,
} from "../../../extension/index.js";
import type { Approval } from "../../../library/index.js";
import { normalizeBreakpointCall } from "../../../mail/index.js";
import { readBreakpointResults } from "../breakpoint-results.js";
import type { MailDoor } from "../door.js";
import {
  AdminMessageReceipt,
  AdminMessageRequest,
  ApprovalAnswerRequest,
  Approval as ApprovalBody,
  ApprovalPage,
  ApprovalQuery,
  ApprovalReceipt,
  ApproversAnswer,
  ApproversRequest,
  AuditPage,
  AuditPageQuery,
} from "../schemas/approvals.js";

export function approvalRoutes(door: MailDoor): Route[] {
  const { mailroom } = door;
  const { approvals } = mailroom;

  const actorOf = ({ principal }: Caller): Actor => asActor(principal, door.server);

  return [
    defineRoute({
      ...NO_INPUT,
      id: "nameApprovers",
      method: "POST",
      path: "/tasks/{task_id}/approvers",
      tag: "tasks",
      summary: "Name approvers for a task",
      description:
        "They find the task in `GET /approvals` whenever it waits for a person, see the open calls and nothing else of " +
        "it, and answer with their own tokens.",
      access: USERS_AND_ADMINS,
      params: TaskPath,
      body: ApproversRequest,
      idempotent: true,
      answers: { 200: { description: "The approvers may answer from now on.", schema: ApproversAnswer } },
      errors: ["unknown_task", "bad_approvers"],
      handle: ({ params, body, request }, caller) =>
        request.once(caller, async (remember) => {
          const task = await mailroom.instance(caller.instance).requireTask(params.task_id);
          request.taskKey = task.key;
          const approvers = [...new Set(body.approvers)];
          const answer = { status: 200, body: { key: task.key, task_id: task.id, approvers } } as const;
          const rows = remember({ kind: "answer", ...answer });
          await approvals.nameApprovers(actorOf(caller), task.key, approvers, rows);
          return answer;
        }),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "listApprovals",
      method: "GET",
      path: "/approvals",
      tag: "tasks",
      summary: "List tasks that the caller may answer",
      access: USERS_AND_ADMINS,
      query: ApprovalQuery,
      answers: { 200: { description: "Tasks that wait for a person, newest first.", schema: ApprovalPage } },
      async handle({ query: { limit = 50, cursor, scope } }, caller) {
        const page = await approvals.list(actorOf(caller), {
          limit,
          ...(cursor !== undefined && { cursor }),
          all: scope === "all",
        });
        const body = { approvals: page.approvals.map(toBody), next_cursor: page.nextCursor ?? null };
        return { status: 200, body };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "getApproval",
      method: "GET",
      path: "/approvals/{key}",
      tag: "tasks",
      summary: "Show a task that waits for a person",
      access: USERS_AND_ADMINS,
      params: KeyPath,
      answers: { 200: { description: "The open calls of the task.", schema: ApprovalBody } },
      errors: ["unknown_task"],
      async handle({ params: { key } }, caller) {
        return { status: 200, body: toBody(await approvals.get(actorOf(caller), key)) };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "answerApproval",
      method: "POST",
      path: "/approvals/{key}",
      tag: "tasks",
      summary: "Answer the open calls of a task",
      description:
        "For the owner, for those whom the owner named, and for admins that may act for owners. `results` supplies the " +
        "results of breakpoint calls. `decisions` approves or rejects calls that wait for approval: the server then runs " +
        "the approved ones itself.",
      access: USERS_AND_ADMINS,
      params: KeyPath,
      body: ApprovalAnswerRequest,
      idempotent: true,
      answers: { 200: { description: "The task continues.", schema: ApprovalReceipt } },
      errors: [
        "unknown_task",
        "not_paused",
        "missing_results",
        "unknown_calls",
        "unknown_agent",
        "bad_answer",
        "approval_needed",
        "bad_arguments",
        "overloaded",
      ],
      handle: ({ params: { key }, body: { results, decisions, caller: agent }, request }, caller) =>
        request.once(caller, async (remember) => {
          const actor = actorOf(caller);
          const { taskId } = await approvals.get(actor, key);
          request.taskKey = key;
          const answer = { status: 200, body: { key, task_id: taskId, status: "answered" } } as const;
          const rows = remember({ kind: "answer", ...answer });
          if (decisions !== undefined) {
            if (results !== undefined) throw bothGiven();
            await approvals.decide(actor, key, readDecisions(decisions), rows);
            return answer;
          }
          const given = {
            results: readBreakpointResults(results, "results"),
            ...(agent !== undefined && { caller: agent }),
          };
          await approvals.answer(actor, key, given, rows);
          return answer;
        }),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminNameApprovers",
      method: "POST",
      path: "/admin/tasks/{key}/approvers",
      tag: "administration",
      summary: "Name approvers for another owner's task",
      description: "Where `auth.admins_act_for_owners` allows it.",
      access: ADMINS,
      params: KeyPath,
      body: ApproversRequest,
      idempotent: true,
      answers: { 200: { description: "The approvers may answer from now on.", schema: ApproversAnswer } },
      errors: ["unknown_task", "bad_approvers"],
      handle: ({ params: { key }, body, request }, caller) =>
        request.once(caller, async (remember) => {
          const actor = actorOf(caller);
          const taskId = await approvals.taskIdFor(actor, key);
          request.taskKey = key;
          const approvers = [...new Set(body.approvers)];
          const answer = { status: 200, body: { key, task_id: taskId, approvers } } as const;
          await approvals.nameApprovers(actor, key, approvers, remember({ kind: "answer", ...answer }));
          return answer;
        }),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminPostMessage",
      method: "POST",
      path: "/admin/tasks/{key}/message",
      tag: "administration",
      summary: "Post a message to another owner's task",
      description:
        "Where `auth.admins_act_for_owners` allows it. The message carries the admin's name, and the task stays its " +
        "owner's.",
      access: ADMINS,
      params: KeyPath,
      body: AdminMessageRequest,
      idempotent: true,
      answers: { 202: { description: "The message is durable.", schema: AdminMessageReceipt } },
      errors: ["unknown_task", "overloaded", "mailbox_full"],
      handle: ({ params: { key }, body: { body, subject }, request }, caller) =>
        request.once(caller, async (remember) => {
          const actor = actorOf(caller);
          const taskId = await approvals.taskIdFor(actor, key);
          request.taskKey = key;
          const answer = { status: 202, body: { key, task_id: taskId, status: "running" } } as const;
          await approvals.post(actor, key, {
            body,
            ...(subject !== undefined && { subject }),
            rows: remember({ kind: "answer", ...answer }),
          });
          return answer;
        }),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "getAudit",
      method: "GET",
      path: "/audit",
      tag: "administration",
      summary: "List who acted for whom",
      description:
        "Approvers that were named, answers to breakpoints, messages and cancellations by others than the owner. Admins " +
        "see all records; other callers see what they did and what was done to their tasks.",
      access: USERS_AND_ADMINS,
      query: AuditPageQuery,
      answers: { 200: { description: "Records, newest first.", schema: AuditPage } },
      async handle({ query: { limit = 100, before, actor, key } }, caller) {
        const found = await approvals.audit(actorOf(caller), {
          limit: limit + 1,
          ...(before !== undefined && { before }),
          ...(actor !== undefined && { actor }),
          ...(key !== undefined && { key }),
        });
        const records = found.slice(0, limit).map(({ at, taskId, ...rest }) => ({
          ...rest,
          time: new Date(at).toISOString(),
          task_id: taskId,
        }));
        const more = found.length > limit ? (records.at(-1)?.number ?? null) : null;
        return { status: 200, body: { records, next_before: more } };
      },
    }),
  ];
}

function bothGiven(): MailroomError {
  return new MailroomError("bad_request", "decisions and results cannot be given together", {
    details: { field: "decisions" },
  });
}

function toBody({
  taskId,
  owner,
  title,
  since,
  calls,
  approvers,
  ...rest
}: Approval): z.output<typeof ApprovalBody> {
  return {
    ...rest,
    task_id: taskId,
    task_owner: owner,
    title: title ?? null,
    since: new Date(since).toISOString(),
    calls: calls.map(({ agent, call, kind, expires }) => ({
      ...normalizeBreakpointCall(call),
      agent,
      kind,
      ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
    })),
    approvers: [...approvers],
  };
}
