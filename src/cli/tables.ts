/** Tasks and other swarms as tables. */
import type { RemoteSwarm, TaskSummary, Usage } from "../client/index.js";
import { escapeControlCharacters, type Terminal } from "./terminal.js";

/** Length of generated ids. A caller's own id may be longer; its line then exceeds the column. */
const UUID_LENGTH = 36;

export function taskTable(tasks: readonly TaskSummary[], { colors }: Pick<Terminal, "colors">): string[] {
  if (tasks.length === 0) return ["no tasks"];
  const { dim, green, red, yellow, cyan } = colors;
  const paint = { running: cyan, paused: yellow, completed: green, failed: red, cancelled: dim } as const;
  const width = Math.min(UUID_LENGTH, Math.max(...tasks.map(({ task_id }) => task_id.length)));
  return tasks.map((task) => {
    const status = paint[task.status](task.status.padEnd(9));
    const started = task.start_time.slice(0, 19).replace("T", " ");
    const title =
      task.title === null || task.title === undefined ? "" : `  ${escapeControlCharacters(task.title)}`;
    const used = task.usage === undefined ? "" : dim(`  ${usageText(task.usage)}`);
    return `${escapeControlCharacters(task.task_id).padEnd(width)}  ${status}  ${dim(started)}  ${escapeControlCharacters(task.task_owner)}${title}${used}`;
  });
}

/** `3 model calls (1 failed), 5,210 tokens, cost 0.0123`. */
export function usageText({ calls, failed_calls: failed, tokens, cost }: Usage): string {
  const count = `${calls} model ${calls === 1 ? "call" : "calls"}${failed > 0 ? ` (${failed} failed)` : ""}`;
  const total = Math.round(tokens.input + tokens.output).toLocaleString("en-US");
  return `${count}, ${total} tokens${cost === null ? "" : `, cost ${Number(cost.toFixed(6))}`}`;
}

export function swarmTable(swarms: readonly RemoteSwarm[], { colors }: Pick<Terminal, "colors">): string[] {
  const rows = swarms.map((swarm) => ({
    name: escapeControlCharacters(swarm.swarm_name),
    state: swarm.is_active === true ? "active" : "inactive",
    latency: typeof swarm.latency === "number" ? `${Math.round(swarm.latency * 1000)} ms` : "-",
    url: escapeControlCharacters(swarm.base_url ?? "-"),
    notes: escapeControlCharacters(notesOn(swarm)),
  }));
  const widest = (pick: (row: (typeof rows)[number]) => string) =>
    Math.max(0, ...rows.map((row) => pick(row).length));
  const name = widest((row) => row.name);
  const latency = widest((row) => row.latency);
  const url = widest((row) => row.url);
  return rows.map((row) => {
    const state = row.state.padEnd("inactive".length);
    const shown = row.state === "active" ? colors.green(state) : colors.red(state);
    const line = `${row.name.padEnd(name)}  ${shown}  ${row.latency.padStart(latency)}  ${row.url.padEnd(url)}`;
    return row.notes === "" ? line.trimEnd() : `${line}  ${row.notes}`;
  });
}

function notesOn(swarm: RemoteSwarm): string {
  const seen = swarm.last_seen ?? undefined;
  const reference = swarm.auth_ref ?? undefined;
  const notes = [
    swarm.is_active === true ? undefined : seen === undefined ? "never seen" : `last seen ${seen}`,
    swarm.auth_state === "needs token" ? `needs token ${reference ?? ""}`.trimEnd() : undefined,
    swarm.auth_state === "none" ? "no token" : undefined,
    swarm.volatile === true ? "volatile" : undefined,
  ];
  return notes.filter((note) => note !== undefined).join(", ");
}
