/** `mailroom approvals` and `mailroom audit`: questions of tasks to people, and who answered them. */
import type { ApprovalDecision, MailClient } from "../../client/index.js";
import { requireLocalServer } from "../../server/control.js";
import { loadConfig } from "../../server/index.js";
import { parseAnswer } from "../breakpoint-answer.js";
import { clientFor, parseAddress } from "../connect.js";
import { dataDirectoryOf, flagsOf } from "../data-directory.js";
import { type DecisionOptions, decideCalls } from "../decisions.js";
import { EXIT, type ExitCode } from "../exit.js";
import { type DataOptions, wholeNumber } from "../options.js";
import { findIn, take } from "../tasks/source.js";
import { escapeControlCharacters, type Terminal } from "../terminal.js";

export interface ApprovalOptions extends DataOptions {
  readonly url?: string;
  readonly token?: string;
}

/** A client of the given server, or of the local one, where the caller is its administrator. */
interface Connection {
  readonly client: MailClient;
  readonly local: boolean;
}

export async function listApprovals(
  options: ApprovalOptions & { readonly all?: boolean },
  terminal: Terminal,
): Promise<ExitCode> {
  return connected(options, terminal, async ({ client }) => {
    const approvals = [];
    for await (const approval of client.approvals({ scope: options.all === true ? "all" : "mine" })) {
      approvals.push(approval);
    }
    if (options.json === true) terminal.json({ approvals });
    else if (approvals.length === 0) terminal.note("nothing waits for you");
    for (const { key, task_owner, since, calls } of options.json === true ? [] : approvals) {
      const when = since.slice(0, 19).replace("T", " ");
      terminal.out(escapeControlCharacters(`${key}  ${when}  ${task_owner}`));
      for (const { agent, call_id, name, arguments: args, kind, expires } of calls) {
        const what = kind === "approval" ? "needs approval of" : "calls";
        const until = expires === undefined ? "" : `, until ${expires.slice(0, 19).replace("T", " ")}`;
        terminal.out(escapeControlCharacters(`  ${agent} ${what} ${name} (${call_id}${until}): ${args}`));
      }
    }
    return EXIT.ok;
  });
}

export async function answerApproval(
  key: string,
  words: readonly string[],
  options: ApprovalOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const answer = parseAnswer(words);
  return connected(options, terminal, async ({ client }) => {
    await client.answerApproval(key, answer);
    if (options.json === true) terminal.json({ key, status: "answered" });
    else terminal.out("answered");
    return EXIT.ok;
  });
}

export async function decideApproval(
  decision: ApprovalDecision["decision"],
  key: string,
  calls: readonly string[],
  options: ApprovalOptions & DecisionOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  return connected(options, terminal, async ({ client }) => {
    const decided = await decideCalls(client, key, decision, calls, options);
    if (options.json === true) terminal.json({ key, decision, calls: decided });
    else terminal.out(decision === "approve" ? "approved" : "rejected");
    return EXIT.ok;
  });
}

export async function nameApprovers(
  task: string,
  approvers: readonly string[],
  options: ApprovalOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  return connected(options, terminal, async ({ client, local }) => {
    if (local) {
      const { key = task } = await findIn(client.admin.listTasks({ limit: 500 }), task);
      await client.admin.nameApprovers(key, approvers);
    } else await client.nameApprovers(task, approvers);
    if (options.json === true) terminal.json({ task, approvers });
    else terminal.out(approvers.length === 0 ? "only the owner may answer" : "named");
    return EXIT.ok;
  });
}

export async function showAudit(
  options: ApprovalOptions & { readonly actor?: string; readonly task?: string; readonly limit: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const limit = wholeNumber(options.limit, "--limit", 1, 100_000);
  return connected(options, terminal, async ({ client }) => {
    const { actor, task } = options;
    const query = { ...(actor !== undefined && { actor }), ...(task !== undefined && { key: task }) };
    const records = await take(client.audit({ ...query, limit: Math.min(limit, 1_000) }), limit);
    if (options.json === true) terminal.json({ records });
    else if (records.length === 0) terminal.note("no records");
    for (const { time, actor: who, action, right, owner, key, details } of options.json === true
      ? []
      : records) {
      const when = time.slice(0, 19).replace("T", " ");
      const facts = Object.keys(details).length === 0 ? "" : `  ${JSON.stringify(details)}`;
      terminal.out(
        escapeControlCharacters(`${when}  ${who} (${right})  ${action}  ${key} of ${owner}${facts}`),
      );
    }
    return EXIT.ok;
  });
}

async function connected(
  options: ApprovalOptions,
  terminal: Terminal,
  work: (connection: Connection) => Promise<ExitCode>,
): Promise<ExitCode> {
  const directory = process.cwd();
  const { settings, rows } = loadConfig({ flags: flagsOf(options), env: terminal.env, directory });
  if (rows.some(({ key, source }) => key === "client.url" && source.from !== "default")) {
    const client = clientFor(parseAddress(settings.client.url, settings.client.token));
    return work({ client, local: false });
  }
  const server = await requireLocalServer(await dataDirectoryOf(settings, directory), (line) =>
    terminal.note(line),
  );
  try {
    return await work({ client: server.client(), local: true });
  } finally {
    await server.close();
  }
}
