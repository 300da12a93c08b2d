/** `mailroom tasks`: the tasks of a running or stopped server. */

import { MailroomError } from "../../base/index.js";
import type { ApprovalDecision, Budget, BudgetChange } from "../../client/index.js";
import { TASK_STATUSES } from "../../engine/index.js";
import { atServerOr } from "../../server/control.js";
import { loadConfig } from "../../server/index.js";
import { parseAnswer } from "../breakpoint-answer.js";
import { clientFor, interruptible, parseAddress } from "../connect.js";
import { dataDirectoryOf, flagsOf } from "../data-directory.js";
import { type DecisionOptions, decideCalls } from "../decisions.js";
import { EXIT, type ExitCode } from "../exit.js";
import { type DataOptions, wholeNumber } from "../options.js";
import { type EventPrinter, renderEvents, showAnswer } from "../repl/message-commands.js";
import { taskTable, usageText } from "../tables.js";
import { localTasks, ownTasks, type TaskSource } from "../tasks/source.js";
import { escapeControlCharacters, type Terminal } from "../terminal.js";

export interface TaskOptions extends DataOptions {
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
    throw new MailroomError(
      "usage",
      `--status '${options.status}' must be one of ${TASK_STATUSES.join(", ")}`,
    );
  }
  return withSource(options, terminal, async (source) => {
    const tasks = await source.list({ status, limit });
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
  return withSource(options, terminal, async (source, signal) => {
    const task = await source.find(wanted);
    const events = source.events(task, { follow: false, signal });
    const waits = task.status === "running" ? await source.waits(task) : [];
    if (options.json === true) {
      const all = [];
      for await (const event of events) all.push(event);
      terminal.json({ ...task, ...(waits.length > 0 && { waiting_for: waits }), events: all });
      return EXIT.ok;
    }
    const head = `task ${task.task_id}  ${task.status}  ${task.task_owner}`;
    terminal.out(terminal.colors.bold(escapeControlCharacters(head)));
    const { usage } = await source.budget(task);
    if (usage !== undefined) terminal.out(terminal.colors.dim(usageText(usage)));
    for (const { from, to, since, until } of waits) {
      const end = until === null ? "" : ` until ${until}`;
      const state = since === null ? "is sending to" : "waits for";
      terminal.out(terminal.colors.dim(escapeControlCharacters(`${from} ${state} ${to}${end}`)));
    }
    await renderEvents(printer(options, terminal), events);
    return EXIT.ok;
  });
}

export async function followTask(
  wanted: string,
  options: TaskOptions & { readonly verbose?: boolean; readonly after?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withSource(options, terminal, async (source, signal) => {
    const task = await source.find(wanted);
    const { after } = options;
    const events = source.events(task, { follow: true, signal, ...(after !== undefined && { after }) });
    return renderEvents(printer(options, terminal), events);
  });
}

export async function cancelTask(
  wanted: string,
  options: TaskOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  return withSource(options, terminal, async (source) => {
    const task = await source.find(wanted);
    await source.cancel(task);
    if (options.json === true) terminal.json({ task_id: task.task_id, status: "cancelled" });
    else terminal.out("cancelled");
    return EXIT.ok;
  });
}

export interface BudgetOptions extends TaskOptions {
  readonly maxCost?: string;
  readonly maxTokens?: string;
  readonly maxCalls?: string;
  readonly agent?: string;
  readonly as?: string;
}

export async function budgetTask(
  wanted: string,
  options: BudgetOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const change: BudgetChange = {
    ...limit("max_cost", "--max-cost", options.maxCost),
    ...limit("max_tokens", "--max-tokens", options.maxTokens),
    ...limit("max_calls", "--max-calls", options.maxCalls),
  };
  return withSource(options, terminal, async (source) => {
    const task = await source.find(wanted);
    const { as, agent } = options;
    const isChange = Object.keys(change).length > 0;
    const shown = isChange
      ? await source.setBudget(task, change, { as, agent })
      : { status: task.status, ...(await source.budget(task)) };
    const { status, budget, usage } = shown;
    if (options.json === true) {
      terminal.json({ task_id: task.task_id, status, budget: budget ?? null, usage: usage ?? null });
      return EXIT.ok;
    }
    terminal.out(`${status}${usage === undefined ? "" : `, ${usageText(usage)}`}`);
    terminal.out(`limits of the owner: ${limitsText(budget?.owner)}`);
    terminal.out(`limits of the operator: ${limitsText(budget?.configured)}`);
    return EXIT.ok;
  });
}

function limit(key: keyof BudgetChange, flag: string, text: string | undefined): BudgetChange {
  if (text === undefined) return {};
  if (text === "none") return { [key]: null };
  const value = Number(text);
  const isWhole = key === "max_cost" || Number.isSafeInteger(value);
  if (/^[0-9]+(\.[0-9]+)?$/.test(text) && isWhole) return { [key]: value };
  const kind = key === "max_cost" ? "a number" : "a whole number";
  throw new MailroomError("usage", `${flag} '${text}' must be ${kind} from 0, or 'none'`);
}

function limitsText({ max_cost, max_tokens, max_calls }: Budget = {}): string {
  const texts = Object.entries({ max_cost, max_tokens, max_calls }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} ${value}`],
  );
  return texts.length === 0 ? "none" : texts.join(", ");
}

export async function answerTask(
  wanted: string,
  words: readonly string[],
  options: TaskOptions & { readonly as?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const answer = parseAnswer(words);
  return withSource(options, terminal, async (source, signal) => {
    const task = await source.find(wanted);
    return showAnswer(
      printer(options, terminal),
      await source.answer(task, answer, { as: options.as, signal }),
    );
  });
}

export async function decideTask(
  decision: ApprovalDecision["decision"],
  wanted: string,
  calls: readonly string[],
  options: TaskOptions & DecisionOptions & { readonly as?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withSource(options, terminal, async (source) => {
    const task = await source.find(wanted);
    const decided = await decideCalls(source.as(task, options.as), task.key ?? "", decision, calls, options);
    if (options.json === true) terminal.json({ task: task.task_id, decision, calls: decided });
    else terminal.out(decision === "approve" ? "approved" : "rejected");
    return EXIT.ok;
  });
}

/** Uses the given server, else the local one, else its store. */
async function withSource(
  options: TaskOptions,
  terminal: Terminal,
  work: (source: TaskSource, signal: AbortSignal) => Promise<ExitCode>,
): Promise<ExitCode> {
  const source = await openSource(options, terminal);
  const { signal, release } = interruptible();
  try {
    return await work(source, signal);
  } finally {
    release();
    await source.close();
  }
}

async function openSource(options: TaskOptions, terminal: Terminal): Promise<TaskSource> {
  const directory = process.cwd();
  const { settings, rows } = loadConfig({ flags: flagsOf(options), env: terminal.env, directory });
  const elsewhere = rows.some(({ key, source }) => key === "client.url" && source.from !== "default");
  if (elsewhere) return ownTasks(clientFor(parseAddress(settings.client.url, settings.client.token)));
  const data = await dataDirectoryOf(settings, directory);
  const notify = (line: string) => terminal.note(line);
  return atServerOr(data, notify, localTasks, async () => {
    // The store is loaded only when needed.
    const { offlineTasks } = await import("../tasks/offline.js");
    return offlineTasks(data);
  });
}

function printer(options: TaskOptions & { readonly verbose?: boolean }, terminal: Terminal): EventPrinter {
  return { terminal, json: options.json === true, verbose: options.verbose === true };
}
