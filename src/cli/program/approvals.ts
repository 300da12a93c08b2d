/** Declares `mailroom approvals` and `mailroom audit`. */
import type { Command } from "commander";
import type { ExitCode } from "../exit.js";
import { withDataDirectory, withServer } from "../options.js";
import type { Terminal } from "../terminal.js";

export function addApprovals(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const load = async () => await import("../commands/approvals.js");
  const approvals = program.command("approvals").description("answer for tasks that wait for a person");
  const add = (command: Command) => withDataDirectory(withServer(command));
  add(approvals.command("list").description("list what you may answer, newest first"))
    .option("--all", "every task that waits; for admins that act for owners")
    .action(async (options) => done(await (await load()).listApprovals(options, terminal)));
  add(approvals.command("answer").description("answer the open calls of a task"))
    .argument("<key>", "the task's key, as listed")
    .argument("<answer...>", "a text, or CALL_ID=text for each of several calls")
    .action(async (key, words, options) =>
      done(await (await load()).answerApproval(key, words, options, terminal)),
    );
  add(approvals.command("approve").description("let calls of a task run that wait for approval"))
    .argument("<key>", "the task's key, as listed")
    .argument("[calls...]", "ids of the calls; not needed if one waits")
    .option("--arguments <json>", "run the call with these arguments instead")
    .action(async (key, calls, options) =>
      done(await (await load()).decideApproval("approve", key, calls, options, terminal)),
    );
  add(approvals.command("reject").description("reject calls of a task that wait for approval"))
    .argument("<key>", "the task's key, as listed")
    .argument("[calls...]", "ids of the calls; not needed if one waits")
    .option("--reason <text>", "shown to the agent")
    .action(async (key, calls, options) =>
      done(await (await load()).decideApproval("reject", key, calls, options, terminal)),
    );
  add(approvals.command("name").description("name who may answer for you in a task"))
    .argument("<task>", "task id; at the local server also the internal key")
    .argument("[approvers...]", "user:<id>, admin:<id>, user or admin; none to take it back")
    .action(async (task, names, options) =>
      done(await (await load()).nameApprovers(task, names, options, terminal)),
    );
  add(program.command("audit").description("show who acted for whom, newest first"))
    .option("--actor <role:id>", "only what this principal did")
    .option("--task <key>", "only what was done to this task")
    .option("--limit <n>", "maximum number of records", "50")
    .action(async (options) => done(await (await load()).showAudit(options, terminal)));
}
