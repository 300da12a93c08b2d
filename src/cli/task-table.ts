/** Tasks as a list for people. */
import type { TaskSummary } from "../client/index.js";
import { harmless, type Terminal } from "./terminal.js";

/** Ids that we make are this long; a caller's own may be longer, and then its line stands out. */
const UUID_LENGTH = 36;

export function taskTable(tasks: readonly TaskSummary[], { colours }: Pick<Terminal, "colours">): string[] {
  if (tasks.length === 0) return ["no tasks"];
  const { dim, green, red, yellow, cyan } = colours;
  const paint = { running: cyan, paused: yellow, completed: green, failed: red, cancelled: dim } as const;
  const width = Math.min(UUID_LENGTH, Math.max(...tasks.map(({ task_id }) => task_id.length)));
  return tasks.map((task) => {
    const status = paint[task.status](task.status.padEnd(9));
    const started = task.start_time.slice(0, 19).replace("T", " ");
    const title = task.title === null || task.title === undefined ? "" : `  ${harmless(task.title)}`;
    return `${harmless(task.task_id).padEnd(width)}  ${status}  ${dim(started)}  ${harmless(task.task_owner)}${title}`;
  });
}
