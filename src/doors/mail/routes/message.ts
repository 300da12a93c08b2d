/** `POST /message`, and the answer to a breakpoint. */
import { isUuid, MailroomError } from "../../../base/index.js";
import { readBudgetChange } from "../../../engine/index.js";
import {
  type Caller,
  defineRoute,
  eventsUrl,
  MAIL_USERS,
  NO_INPUT,
  type RoundEnd,
  type Route,
  type RouteRequest,
  type RouteResponse,
  type RouteResult,
  TaskPath,
  USERS_AND_ADMINS,
  type Waiting,
} from "../../../extension/index.js";
import { normalizeBreakpointCall } from "../../../mail/index.js";
import { readBreakpointResults } from "../breakpoint-results.js";
import type { MailDoor } from "../door.js";
import { BreakpointRequest, MessageAnswer, MessageRequest } from "../schemas/message.js";

const ANSWERS = {
  200: {
    description:
      "The round has ended: completed, paused, failed or cancelled. With `stream` the events of it.",
    schema: MessageAnswer,
    contentType: "text/event-stream",
  },
  202: {
    description:
      "The message is durable and the task is running: `wait` was false, or the time limit of the wait passed.",
    schema: MessageAnswer,
  },
} as const;

export function messageRoutes(door: MailDoor): Route[] {
  return [
    defineRoute({
      ...NO_INPUT,
      id: "postMessage",
      method: "POST",
      path: "/message",
      tag: "messages",
      summary: "Post a message to the swarm",
      description:
        "Opens a task, or continues the one that `task_id` names, and answers with what becomes of it. A failed " +
        "task is an answer with status `failed`, not an error.",
      access: MAIL_USERS,
      body: MessageRequest,
      idempotent: true,
      answers: ANSWERS,
      errors: [
        "not_entrypoint",
        "unknown_task",
        "wrong_state",
        "not_paused",
        "missing_results",
        "unknown_calls",
        "overloaded",
        "mailbox_full",
      ],
      handle: ({ request, body }, caller) => postMessage(door, request, caller, body),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "answerBreakpoint",
      method: "POST",
      path: "/tasks/{task_id}/breakpoint",
      tag: "tasks",
      summary: "Answer the calls that a paused task waits for",
      access: USERS_AND_ADMINS,
      params: TaskPath,
      body: BreakpointRequest,
      idempotent: true,
      answers: ANSWERS,
      errors: [
        "unknown_task",
        "not_paused",
        "missing_results",
        "unknown_calls",
        "unknown_agent",
        "overloaded",
      ],
      handle({ params: { task_id }, body, request }, caller) {
        const { results, caller: agent, max_steps, timeout, stream, wait, show_events } = body;
        const answer = {
          results: readBreakpointResults(results, "results"),
          ...(agent !== undefined && { caller: agent }),
          ...stepsOf(max_steps),
        };
        return request.round(caller, {
          waiting: { stream, wait, showEvents: show_events, timeout: secondsOf(timeout) },
          post: (rows) => door.mailroom.runtime.answerBreakpoint(caller.instance, task_id, answer, rows),
          respond: messageResponse,
        });
      },
    }),
  ];
}

function postMessage(
  door: MailDoor,
  request: RouteRequest,
  caller: Caller,
  given: MessageRequest,
): Promise<RouteResult> {
  const { kwargs = {}, stream, wait, show_events } = given;
  const { runtime } = door.mailroom;
  const body = given.body ?? given.message ?? "";
  if (given.task_id !== undefined) checkTaskId(door, given.task_id);
  const waiting: Waiting = { stream, wait, showEvents: show_events, timeout: secondsOf(kwargs.timeout) };
  if (given.resume_from === "breakpoint_tool_call") {
    const { task_id } = given;
    if (task_id === undefined) throw required("task_id");
    const result = kwargs.breakpoint_tool_call_result ?? undefined;
    if (result === undefined) throw required("kwargs.breakpoint_tool_call_result");
    const results = readBreakpointResults(result, "kwargs.breakpoint_tool_call_result");
    const agent = kwargs.breakpoint_tool_caller ?? undefined;
    const answer = { results, ...(agent !== undefined && { caller: agent }), ...stepsOf(kwargs.max_steps) };
    return request.round(caller, {
      waiting,
      post: (rows) => runtime.answerBreakpoint(caller.instance, task_id, answer, rows),
      respond: messageResponse,
    });
  }
  if (body === "")
    throw new MailroomError("bad_request", "no message provided", { details: { field: "body" } });
  const { resume_from, task_id, subject, msg_type } = given;
  if (resume_from !== undefined && task_id === undefined) throw required("task_id");
  const entrypoint = given.entrypoint?.trim();
  return request.round(caller, {
    waiting,
    post: (rows) =>
      runtime.post(caller.instance, {
        body,
        ...(subject !== undefined && { subject }),
        ...(msg_type !== undefined && { type: msg_type }),
        ...(entrypoint !== undefined && entrypoint !== "" && { entrypoint }),
        ...(task_id !== undefined && { taskId: task_id }),
        ...(resume_from !== undefined && { resumeFrom: resume_from }),
        ...stepsOf(kwargs.max_steps),
        ...(kwargs.budget !== undefined && { budget: readBudgetChange(kwargs.budget) }),
        rows,
      }),
    respond: messageResponse,
  });
}

/** With `strict_ids`, task ids must be UUIDs (decision A3). */
function checkTaskId(door: MailDoor, taskId: string): void {
  if (!door.server.strictIds || isUuid(taskId)) return;
  throw new MailroomError("bad_request", "task_id must be a UUID on this server (strict_ids)", {
    details: { field: "task_id" },
  });
}

function secondsOf(given: number | string | null | undefined): number | undefined {
  return given === undefined || given === null ? undefined : Number(given);
}

function stepsOf(given: number | string | null | undefined): { maxSteps?: number | null } {
  if (given === undefined) return {};
  return { maxSteps: given === null ? null : Number(given) };
}

function required(field: string): MailroomError {
  return new MailroomError("bad_request", `${field} is required`, { details: { field } });
}

/** The outcome of a message in the form of `POST /message` (decision D1). */
function messageResponse({ taskId, outcome, events }: RoundEnd): RouteResponse {
  if (outcome === undefined) {
    const body: MessageAnswer = { response: null, events, task_id: taskId, status: "running" };
    return { status: 202, body, headers: { location: eventsUrl(taskId) } };
  }
  const { status, message, error, reason, breakpoints, approvals } = outcome;
  const body: MessageAnswer = {
    response: message.message.body,
    events,
    task_id: taskId,
    status,
    ...(error !== undefined && { error }),
    ...(reason !== undefined && { reason }),
    ...(breakpoints !== undefined && { breakpoint: breakpoints.map(normalizeBreakpointCall) }),
    ...(approvals !== undefined && { approvals: approvals.map(normalizeBreakpointCall) }),
  };
  return { status: 200, body };
}
