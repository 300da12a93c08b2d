/** `mailroom tasks`: what a server does and did. */
import { loadConfig } from "../../config/index.js";
import { TASK_STATUSES } from "../../engine/ports.js";
import { parseAnswer } from "../breakpoint-answer.js";
import { clientFor, interruptible, parseAddress } from "../connect.js";
import { atServerOr } from "../control/patience.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { type PlaceOptions, wholeNumber } from "../options.js";
import { dataDirectoryOf, flagsOf } from "../place.js";
import { renderEvents, showAnswer, type Viewer } from "../repl/message-commands.js";
import { localDesk, ownDesk, type TaskDesk } from "../task-desk.js";
import { taskTable } from "../task-table.js";
import { harmless, type Terminal } from "../terminal.js";

export interface TaskOptions extends PlaceOptions {
  readonly url?: string;
  readonly token?: string;
}

export async function listTasks(
  options: TaskOptions & { readonly status?: string; readonly limit: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const limit = wholeNumber(options.limit, "--limit", 1, 100_000);
  const status = TASK_STATUSES.find((one) => one === options.status);
  if (options.status !== undefined && status === undefined) {
    throw new CliError("usage", `--status '${options.status}' is none of ${TASK_STATUSES.join(", ")}`, {
      exit: EXIT.usage,
    });
  }
  return atDesk(options, terminal, async (desk) => {
    const tasks = await desk.list({ status, limit });
    if (options.json === true) terminal.json({ tasks });
    else for (const line of taskTable(tasks, terminal)) terminal.out(line);
    return EXIT.ok;
  });
}

export async function showTask(
  wanted: string,
  options: TaskOptions & { readonly verbose?: boolean },
  terminal: Terminal,
): Promise<ExitCode> {
  return atDesk(options, terminal, async (desk, signal) => {
    const task = await desk.find(wanted);
    const events = desk.events(task, { follow: false, signal });
    if (options.json === true) {
      const all = [];
      for await (const event of events) all.push(event);
      terminal.json({ ...task, events: all });
      return EXIT.ok;
    }
    const head = `task ${task.task_id}  ${task.status}  ${task.task_owner}`;
    terminal.out(terminal.colours.bold(harmless(head)));
    await renderEvents(viewer(options, terminal), events);
    return EXIT.ok;
  });
}

export async function followTask(
  wanted: string,
  options: TaskOptions & { readonly verbose?: boolean; readonly after?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return atDesk(options, terminal, async (desk, signal) => {
    const task = await desk.find(wanted);
    const { after } = options;
    const events = desk.events(task, { follow: true, signal, ...(after !== undefined && { after }) });
    return renderEvents(viewer(options, terminal), events);
  });
}

export async function cancelTask(
  wanted: string,
  options: TaskOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  return atDesk(options, terminal, async (desk) => {
    const task = await desk.find(wanted);
    await desk.cancel(task);
    if (options.json === true) terminal.json({ task_id: task.task_id, status: "cancelled" });
    else terminal.out("cancelled");
    return EXIT.ok;
  });
}

export async function answerTask(
  wanted: string,
  words: readonly string[],
  options: TaskOptions & { readonly as?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const answer = parseAnswer(words);
  return atDesk(options, terminal, async (desk, signal) => {
    const task = await desk.find(wanted);
    return showAnswer(viewer(options, terminal), await desk.answer(task, answer, { as: options.as, signal }));
  });
}

/** A server that was named, else the one that runs here, else what it left. */
async function atDesk(
  options: TaskOptions,
  terminal: Terminal,
  work: (desk: TaskDesk, signal: AbortSignal) => Promise<ExitCode>,
): Promise<ExitCode> {
  const desk = await openDesk(options, terminal);
  const { signal, release } = interruptible();
  try {
    return await work(desk, signal);
  } finally {
    release();
    await desk.close();
  }
}

async function openDesk(options: TaskOptions, terminal: Terminal): Promise<TaskDesk> {
  const directory = process.cwd();
  const { settings, rows } = loadConfig({ flags: flagsOf(options), env: terminal.env, directory });
  const elsewhere = rows.some(({ key, source }) => key === "client.url" && source.from !== "default");
  if (elsewhere) return ownDesk(clientFor(parseAddress(settings.client.url, settings.client.token)));
  const data = await dataDirectoryOf(settings, directory);
  const say = (line: string) => terminal.note(line);
  return atServerOr(data, say, localDesk, async () => {
    // The store is loaded only where it is needed.
    const { storeDesk } = await import("../store-desk.js");
    return storeDesk(data);
  });
}

function viewer(options: TaskOptions & { readonly verbose?: boolean }, terminal: Terminal): Viewer {
  return { terminal, json: options.json === true, verbose: options.verbose === true };
}
