/** `POST /message`, and the answer to a breakpoint. */
import type { RowWrite } from "../../engine/ports.js";
import type { PostedAt } from "../../engine/runtime/index.js";
import type { MailEvent } from "../../engine/view/events.js";
import { endedAnswer, eventsUrl, runningAnswer, waitFor } from "../answers.js";
import { readBreakpointResults } from "../breakpoint-results.js";
import type { Door } from "../door.js";
import { HttpError } from "../errors.js";
import { whenGone } from "../gone.js";
import {
  type Caller,
  defineRoute,
  type Handled,
  NOTHING,
  OUR_PERSONS,
  PERSONS,
  type RawCall,
  type Route,
  STREAMED,
} from "../route.js";
import { TaskPath } from "../schemas/common.js";
import { BreakpointRequest, MessageAnswer, MessageRequest } from "../schemas/message.js";
import { streamTask } from "../task-stream.js";
import { type PostedRound, REPLAYED, type WriteCall } from "../writes.js";

const ANSWERS = {
  200: {
    description:
      "The round has ended: completed, paused, failed or cancelled. With `stream` the events of it.",
    schema: MessageAnswer,
    contentType: "text/event-stream",
  },
  202: {
    description: "The message is durable and the task runs: `wait` was false, or the time to wait was up.",
    schema: MessageAnswer,
  },
} as const;

export function messageRoutes(door: Door): Route[] {
  return [
    defineRoute({
      ...NOTHING,
      id: "postMessage",
      method: "POST",
      path: "/message",
      tag: "messages",
      summary: "Put a message to the swarm",
      description:
        "Opens a task, or goes on with the one that `task_id` names, and answers with what becomes of it. A failed " +
        "task is an answer with status `failed`, not an error.",
      access: PERSONS,
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
      handle: (call, caller) => postMessage(door, call, caller, call.body),
    }),
    defineRoute({
      ...NOTHING,
      id: "answerBreakpoint",
      method: "POST",
      path: "/tasks/{task_id}/breakpoint",
      tag: "tasks",
      summary: "Answer the calls that a paused task waits for",
      access: OUR_PERSONS,
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
      handle: (call, caller) => {
        const { results, caller: agent, max_steps, timeout, ...how } = call.body;
        const { task_id } = call.params;
        const write: WriteCall = { ...call, caller, route: "answerBreakpoint" };
        return answerRound(door, call, caller, { ...how, timeout }, write, (rows) =>
          door.mailroom.runtime.answerBreakpoint(
            caller.instance,
            task_id,
            {
              results: readBreakpointResults(results, "results"),
              ...(agent !== undefined && { caller: agent }),
              ...stepsOf(max_steps),
            },
            rows,
          ),
        );
      },
    }),
  ];
}

function postMessage(door: Door, call: RawCall, caller: Caller, given: MessageRequest): Promise<Handled> {
  const { kwargs = {}, stream, wait, show_events } = given;
  const body = given.body ?? given.message ?? "";
  if (given.task_id !== undefined) checkTaskId(door, given.task_id);
  const write: WriteCall = { request: call.request, caller, route: "postMessage", params: {}, body: given };
  const how: Waiting = {
    ...(stream !== undefined && { stream }),
    ...(wait !== undefined && { wait }),
    ...(show_events !== undefined && { show_events }),
    timeout: kwargs.timeout,
  };
  if (given.resume_from === "breakpoint_tool_call") {
    const { task_id } = given;
    if (task_id === undefined) throw required("task_id");
    const result = kwargs.breakpoint_tool_call_result ?? undefined;
    if (result === undefined) throw required("kwargs.breakpoint_tool_call_result");
    const results = readBreakpointResults(result, "kwargs.breakpoint_tool_call_result");
    const agent = kwargs.breakpoint_tool_caller ?? undefined;
    const answer = { results, ...(agent !== undefined && { caller: agent }), ...stepsOf(kwargs.max_steps) };
    return answerRound(door, call, caller, how, write, (rows) =>
      door.mailroom.runtime.answerBreakpoint(caller.instance, task_id, answer, rows),
    );
  }
  if (body === "") throw new HttpError("bad_request", "no message provided", { details: { field: "body" } });
  const { resume_from, task_id, subject, msg_type } = given;
  if (resume_from !== undefined && task_id === undefined) throw required("task_id");
  const entrypoint = given.entrypoint?.trim();
  return answerRound(door, call, caller, how, write, (rows) =>
    door.mailroom.runtime.post(caller.instance, {
      body,
      ...(subject !== undefined && { subject }),
      ...(msg_type !== undefined && { type: msg_type }),
      ...(entrypoint !== undefined && entrypoint !== "" && { entrypoint }),
      ...(task_id !== undefined && { taskId: task_id }),
      ...(resume_from !== undefined && { resumeFrom: resume_from }),
      ...stepsOf(kwargs.max_steps),
      rows,
    }),
  );
}

/** How the caller wants to be told what becomes of it. */
interface Waiting {
  readonly stream?: boolean;
  readonly wait?: boolean;
  readonly show_events?: boolean;
  readonly timeout: number | string | null | undefined;
}

type Rows = (at: PostedAt) => readonly RowWrite[];

async function answerRound(
  door: Door,
  { request, reply }: RawCall,
  caller: Caller,
  how: Waiting,
  write: WriteCall,
  post: (rows: Rows) => Promise<PostedRound>,
): Promise<Handled> {
  if (how.stream === true && how.wait === false) {
    throw new HttpError("bad_request", "stream and wait: false exclude each other", {
      details: { field: "wait" },
    });
  }
  door.meet(caller, request.headers.authorization);
  // A place is taken before anything is written: whoever is refused has changed nothing.
  const places = how.stream === true ? door.streams : door.waits;
  const leave = how.wait === false ? () => {} : places.take(caller.name);
  try {
    await door.writers.join();
    const { result: posted, replayed } = await door.writes.round(write, post);
    request.taskKey = posted.key;
    const headers = replayed ? REPLAYED : {};
    if (how.stream === true) {
      const stream = await streamTask({
        ...door.streaming,
        reply,
        caller,
        task: { id: posted.taskId, key: posted.key },
        // Only what comes after the request (mail.md 5.4), the message itself included.
        after: `${posted.number - 1}`,
        end: { kind: "outcome", start: posted },
        headers: { location: eventsUrl(posted.taskId), ...headers },
      });
      if (stream.ended === "too_slow") door.metrics.droppedListener();
      return STREAMED;
    }
    const outcome = how.wait === false ? undefined : await waitForRound(door, reply, how, posted);
    const events = how.show_events === true ? await eventsOfTask(door, caller, posted.taskId) : null;
    const answer =
      outcome === undefined
        ? runningAnswer(posted.taskId, events)
        : endedAnswer(posted.taskId, outcome, events);
    return { ...answer, headers: { ...answer.headers, ...headers } };
  } finally {
    leave();
  }
}

function waitForRound(door: Door, { raw }: RawCall["reply"], how: Waiting, posted: PostedRound) {
  const seconds = Number(how.timeout ?? door.options.defaultTimeout ?? 3600);
  return waitFor(posted.outcome, {
    clock: door.clock,
    ms: seconds * 1000,
    giveUpWhen: [(giveUp) => door.closing.listen(giveUp), (giveUp) => whenGone(raw, giveUp)],
  });
}

async function eventsOfTask(door: Door, caller: Caller, taskId: string): Promise<MailEvent[]> {
  const task = await door.mailroom.instance(caller.instance).requireTask(taskId);
  const events: MailEvent[] = [];
  for await (const event of task.events()) events.push(event);
  return events;
}

/** Decisions A3. */
function checkTaskId(door: Door, taskId: string): void {
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
  if (door.options.strictIds !== true || uuid.test(taskId)) return;
  throw new HttpError("bad_request", "task_id must be a UUID on this server (strict_ids)", {
    details: { field: "task_id" },
  });
}

function stepsOf(given: number | string | null | undefined): { maxSteps?: number | null } {
  if (given === undefined) return {};
  return { maxSteps: given === null ? null : Number(given) };
}

function required(field: string): HttpError {
  return new HttpError("bad_request", `${field} is required`, { details: { field } });
}
