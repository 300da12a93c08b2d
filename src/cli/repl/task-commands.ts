/** Commands for the caller's own tasks. */

import type { TaskRecord, TaskSummary } from "../../client/index.js";
import { parseAnswer } from "../breakpoint-answer.js";
import { EXIT } from "../exit.js";
import { createRenderer } from "../render.js";
import { taskTable } from "../tables.js";
import { type ReplCommand, type ReplSession, show } from "./command.js";
import { renderEvents, showAnswer } from "./message-commands.js";

const one = { usage: "TASK_ID", minimum: 1, maximum: 1 } as const;

export const TASK_COMMANDS: readonly ReplCommand[] = [
  {
    name: "tasks-get",
    aliases: ["tsg", "tasks-g", "tasks"],
    usage: "",
    minimum: 0,
    maximum: 0,
    summary: "list your tasks, newest first",
    run: async (session) => {
      if (session.json) {
        session.terminal.json(await session.client.getTasks({ signal: session.signal }));
        return EXIT.ok;
      }
      const tasks = await newest(session);
      show(session, tasks, taskTable(tasks, session.terminal));
      return EXIT.ok;
    },
  },
  {
    ...one,
    name: "task-get",
    aliases: ["tg", "task-g"],
    summary: "show a task",
    run: async (session, given) => {
      const task = await session.client.getTask(given.argument(0), { signal: session.signal });
      show(session, task, taskLines(session, task));
      return EXIT.ok;
    },
  },
  {
    ...one,
    name: "task-follow",
    aliases: ["tf"],
    summary: "follow a task from its beginning until it is idle",
    run: (session, given) =>
      renderEvents(session, session.client.taskEvents(given.argument(0), { signal: session.signal })),
  },
  {
    ...one,
    name: "task-cancel",
    aliases: ["tc"],
    summary: "cancel a task",
    run: async (session, given) => {
      await session.client.cancelTask(given.argument(0), { signal: session.signal });
      show(session, { task_id: given.argument(0), status: "cancelled" }, ["cancelled"]);
      return EXIT.ok;
    },
  },
  {
    name: "task-answer",
    aliases: ["ta"],
    usage: "TASK_ID ANSWER (text, or CALL_ID=text for each of several calls)",
    minimum: 2,
    maximum: 50,
    summary: "answer the open breakpoint of a paused task",
    run: async (session, given) => {
      const answer = parseAnswer(given.arguments.slice(1));
      return showAnswer(
        session,
        await session.client.answerBreakpoint(given.argument(0), answer, { signal: session.signal }),
      );
    },
  },
];

function taskLines({ terminal, verbose }: ReplSession, task: TaskRecord): string[] {
  const render = createRenderer({ colors: terminal.colors, columns: terminal.columns, verbose });
  const head = `task ${task.task_id}  ${task.status}  ${task.task_owner}`;
  return [terminal.colors.bold(head), ...task.events.flatMap(render)];
}

/** A server of the reference returns all tasks at once, without summaries. */
async function newest({ client, signal }: ReplSession): Promise<readonly TaskSummary[]> {
  const tasks = await client.getTasks({ signal });
  return Object.values(tasks)
    .map((task) => ({ ...task, start_time: task.start_time ?? "", title: task.title ?? null }))
    .sort((a, b) => b.start_time.localeCompare(a.start_time));
}
