/** The tools of users and admins: post a task, follow it, cancel it. */
import { z } from "zod";
import { isUuid, MailroomError } from "../../base/index.js";
import type { PostReceipt, RoundStart } from "../../engine/index.js";
import { endsRound, type MailEvent, TASK_STATUSES } from "../../engine/index.js";
import type { Instance, Task, TextDelta } from "../../library/index.js";
import { addTool, type ToolAnswer, type ToolCall, type ToolHost, within } from "./tool.js";
import { WrittenProgress } from "./written-progress.js";

/** Most clients abort a call after a minute. */
const MAX_WAIT = 50;
const EVENTS_AT_ONCE = 100;
/** Characters of events, after which no further one is returned. */
const SIZE_AT_ONCE = 1024 * 1024;

export const task_id = z.string().min(1).max(256).describe("The task's id");
export const wait_seconds = z
  .number()
  .min(0)
  .max(MAX_WAIT)
  .default(MAX_WAIT)
  .describe(`Seconds to wait, at most ${MAX_WAIT}; the task continues in any case`);

export function addUserTools(host: ToolHost, instance: Instance, strictIds: boolean): void {
  addTool(host, {
    name: "post_task",
    description:
      "Gives the swarm a task, or continues one of your tasks, and waits for its answer. If the wait ends " +
      "first, call follow_task.",
    input: z.strictObject({
      message: z.string().min(1).describe("Your question or request"),
      subject: z.string().min(1).optional().describe("A short title"),
      task_id: task_id.optional().describe("The task to continue. Default: a new task"),
      entrypoint: z
        .string()
        .min(1)
        .optional()
        .describe("The agent to write to. Default: the swarm's entrypoint"),
      wait_seconds,
    }),
    run: async ({ message, subject, task_id: taskId, entrypoint, wait_seconds: wait }, call) => {
      if (strictIds && taskId !== undefined && !isUuid(taskId))
        throw new MailroomError("bad_input", "task_id must be a UUID on this server (strict_ids)");
      const { task, ...posted } = await instance.post(message, {
        ...(subject !== undefined && { subject }),
        ...(taskId !== undefined && { taskId }),
        ...(entrypoint !== undefined && { entrypoint }),
      });
      return waitFor(task, posted, wait, call);
    },
  });
  addTool(host, {
    name: "follow_task",
    description:
      "Returns the events of a task after a given one, and waits for the next event when there is no later one.",
    readOnly: true,
    input: z.strictObject({
      task_id,
      after: z
        .string()
        .optional()
        .describe("Id of the last event that you have seen. Default: from the beginning"),
      wait_seconds,
    }),
    run: async ({ task_id: taskId, after, wait_seconds: wait }, call) => {
      const task = await instance.requireTask(taskId);
      if (wait > 0 && (await task.status()) === "running") {
        await nextEvent(task, after, within(wait, call));
      }
      await host.reading();
      const events = await eventsOf(task, after);
      const status = await task.status();
      const last = events.at(-1)?.id ?? after;
      const lines = events.map(({ id, event, data }) => `${id} ${event}: ${data.description}`);
      const answer = events.findLast(endsRound)?.data.response;
      return {
        text: [`task ${taskId} is ${status}`, ...lines, ...(answer === undefined ? [] : ["", answer])].join(
          "\n",
        ),
        data: {
          task_id: taskId,
          status,
          events,
          last_event_id: last ?? null,
          ...(answer !== undefined && { response: answer }),
        },
      };
    },
  });
  addTool(host, {
    name: "get_task",
    description: "Returns the status of a task and its last answer.",
    readOnly: true,
    input: z.strictObject({ task_id }),
    run: async ({ task_id: taskId }) => {
      await host.reading();
      const task = await instance.requireTask(taskId);
      let response: string | undefined;
      let read = 0;
      for await (const event of task.events()) {
        if (endsRound(event)) response = event.data.response;
        if (++read % EVENTS_AT_ONCE === 0) await host.turn();
      }
      const { events: _events, task_message_queue: _queue, ...record } = await task.record({ events: false });
      return {
        text: `task ${taskId} is ${record.status}${response === undefined ? "" : `\n\n${response}`}`,
        data: { ...record, ...(response !== undefined && { response }) },
      };
    },
  });
  addTool(host, {
    name: "list_tasks",
    description: "Lists your tasks, newest first.",
    readOnly: true,
    input: z.strictObject({
      status: z.enum(TASK_STATUSES).optional(),
      limit: z.int().min(1).max(100).default(20),
      cursor: z.string().optional().describe("The cursor at the end of an earlier list"),
    }),
    run: async ({ status, limit, cursor }) => {
      await host.reading();
      const { tasks, nextCursor } = await instance.tasks({
        limit,
        ...(status !== undefined && { status }),
        ...(cursor !== undefined && { cursor }),
      });
      const lines = tasks.map((task) => `${task.task_id} ${task.status} ${task.title ?? ""}`.trim());
      return {
        text: lines.length === 0 ? "no tasks" : lines.join("\n"),
        data: { tasks, ...(nextCursor !== undefined && { next_cursor: nextCursor }) },
      };
    },
  });
  addTool(host, {
    name: "cancel_task",
    description: "Cancels a task. Completed steps are not undone.",
    input: z.strictObject({ task_id }),
    run: async ({ task_id: taskId }) => {
      await (await instance.requireTask(taskId)).cancel();
      return { text: `task ${taskId} is cancelled`, data: { task_id: taskId, status: "cancelled" } };
    },
  });
}

/** Waits for the end of the round, at most this long. */
export async function waitFor(
  task: Task,
  posted: PostReceipt,
  seconds: number,
  call: ToolCall,
): Promise<ToolAnswer> {
  const signal = within(seconds, call);
  const watched = watch(task, posted, signal, call);
  const ended = await Promise.race([posted.outcome, aborted(signal)]);
  await watched;
  if (ended === undefined) {
    return {
      text: `task ${task.id} is still running; call follow_task to continue following it`,
      data: { task_id: task.id, status: "running" },
    };
  }
  const response = ended.message.message.body;
  const calls = ended.status === "paused" ? (ended.breakpoints ?? []) : [];
  const waiting = calls.map(({ id, name, args }) => ({ call_id: id, name, args }));
  const approvals = (ended.approvals ?? []).map(({ id, name, args }) => ({ call_id: id, name, args }));
  const text =
    approvals.length > 0
      ? `task ${task.id} waits for the user's decision on:\n${JSON.stringify(approvals)}\nCall decide_calls.`
      : ended.status === "paused" && ended.reason === undefined
        ? `task ${task.id} waits for your answer to:\n${JSON.stringify(waiting)}\nCall answer_breakpoint.`
        : ended.status === "completed"
          ? response
          : `task ${task.id} ${ended.status}: ${response}`;
  return {
    text,
    data: {
      task_id: task.id,
      status: ended.status,
      response,
      ...(waiting.length > 0 && { breakpoints: waiting }),
      ...(approvals.length > 0 && { approvals }),
      ...(ended.error !== undefined && { error: ended.error }),
      ...(ended.reason !== undefined && { reason: ended.reason }),
    },
  };
}

/** Reports progress to clients that asked for it, until the round ends. Best effort. */
async function watch(task: Task, start: RoundStart, signal: AbortSignal, call: ToolCall): Promise<void> {
  if (!call.wantsProgress) return;
  const written = new WrittenProgress(call);
  const onDelta = (delta: TextDelta): void => written.add(delta);
  const options = { after: `${start.number}`, live: start, signal, onDelta };
  try {
    for await (const { event, data } of task.events(options)) {
      written.flush();
      call.progress(`${event}: ${data.description}`);
    }
  } catch {
    // The outcome reports the failure.
  } finally {
    written.close();
  }
}

async function eventsOf(task: Task, after: string | undefined): Promise<MailEvent[]> {
  const events: MailEvent[] = [];
  let size = 0;
  for await (const event of task.events(after === undefined ? {} : { after })) {
    events.push(event);
    size += JSON.stringify(event).length;
    if (events.length >= EVENTS_AT_ONCE || size >= SIZE_AT_ONCE) break;
  }
  return events;
}

async function nextEvent(task: Task, after: string | undefined, signal: AbortSignal): Promise<void> {
  for await (const _event of task.events({ ...(after !== undefined && { after }), live: true, signal }))
    return;
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}
