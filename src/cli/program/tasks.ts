/** Declares `mailroom tasks`. */
import type { Command } from "commander";
import type { ExitCode } from "../exit.js";
import { withDataDirectory, withServer } from "../options.js";
import type { Terminal } from "../terminal.js";

export function addTasks(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const tasks = program.command("tasks").description("manage the tasks of a running or stopped server");
  const load = async () => await import("../commands/tasks.js");
  const add = (name: string, description: string) =>
    withDataDirectory(withServer(tasks.command(name).description(description)));
  add("list", "list tasks, newest first")
    .option("--status <status>", "running, paused, completed, failed or cancelled")
    .option("--limit <n>", "maximum number of tasks", "50")
    .action(async (options) => done(await (await load()).listTasks(options, terminal)));
  add("show", "show a task with all its events")
    .argument("<task>", "task id or internal key")
    .option("-v, --verbose", "show full messages and every event")
    .action(async (task, options) => done(await (await load()).showTask(task, options, terminal)));
  add("follow", "show a task and follow its events")
    .argument("<task>", "task id or internal key")
    .option("-v, --verbose", "show full messages and every event")
    .option("--after <id>", "start after this event")
    .action(async (task, options) => done(await (await load()).followTask(task, options, terminal)));
  add("cancel", "cancel a task")
    .argument("<task>", "task id or internal key")
    .action(async (task, options) => done(await (await load()).cancelTask(task, options, terminal)));
  add("budget", "show or change the limits on what a task's model calls use")
    .argument("<task>", "task id or internal key")
    .option("--max-cost <n>", "cost in the currency of the prices, or 'none'")
    .option("--max-tokens <n>", "input and output tokens together, or 'none'")
    .option("--max-calls <n>", "model calls including failed ones, or 'none'")
    .option("--agent <name>", "the limits are those of this agent in the task; for admins")
    .option("--as <role:id>", "the task's owner, to change limits that the owner set")
    .action(async (task, options) => done(await (await load()).budgetTask(task, options, terminal)));
  add("answer", "answer the open breakpoint of a paused task")
    .argument("<task>", "task id")
    .argument("<answer...>", "a text, or CALL_ID=text for each of several calls")
    .option("--as <role:id>", "the task's owner; only the owner can write to a task")
    .action(async (task, words, options) =>
      done(await (await load()).answerTask(task, words, options, terminal)),
    );
  add("approve", "let calls of a paused task run that wait for approval")
    .argument("<task>", "task id")
    .argument("[calls...]", "ids of the calls; not needed if one waits")
    .option("--arguments <json>", "run the call with these arguments instead")
    .option("--as <role:id>", "the task's owner, or a principal that the owner named")
    .action(async (task, calls, options) =>
      done(await (await load()).decideTask("approve", task, calls, options, terminal)),
    );
  add("reject", "reject calls of a paused task that wait for approval")
    .argument("<task>", "task id")
    .argument("[calls...]", "ids of the calls; not needed if one waits")
    .option("--reason <text>", "shown to the agent")
    .option("--as <role:id>", "the task's owner, or a principal that the owner named")
    .action(async (task, calls, options) =>
      done(await (await load()).decideTask("reject", task, calls, options, terminal)),
    );
}
