/** The prompt: reads lines and runs commands; a failed command does not end it. */

import { readFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { messageOf } from "../../base/index.js";
import type { MailClient, WhoAmI } from "../../client/index.js";
import { explain } from "../exit.js";
import type { Terminal } from "../terminal.js";
import { type ReplSession, runCommand } from "./command.js";
import { complete, findCommand, helpLines, usageLines } from "./table.js";
import { tokenize } from "./tokenize.js";

const HISTORY_SIZE = 1000;

export interface LoopOptions {
  readonly client: MailClient;
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly verbose: boolean;
  readonly caller: WhoAmI | undefined;
  /** File of the line history. Default: `.mailroom_history` in the home directory. */
  readonly historyFile?: string;
}

export async function runLoop(options: LoopOptions): Promise<void> {
  const { client, terminal } = options;
  const file = options.historyFile ?? join(homedir(), ".mailroom_history");
  let caller = options.caller;
  let running: AbortController | undefined;
  const lines = createInterface({
    input: terminal.stdin,
    output: terminal.interactive ? process.stdout : undefined,
    terminal: terminal.interactive,
    completer: complete,
    history: await readHistory(file),
    historySize: HISTORY_SIZE,
    removeHistoryDuplicates: true,
  });
  lines.on("SIGINT", () => {
    if (running !== undefined) running.abort(new Error("interrupted"));
    else {
      // Like a shell: drops the current input.
      terminal.out("^C  (Ctrl-D or 'exit' leaves)");
      lines.write(null, { ctrl: true, name: "u" });
      lines.prompt();
    }
  });
  const prompt = () => {
    lines.setPrompt(terminal.interactive ? promptFor(client.url, caller) : "");
    lines.prompt();
  };

  prompt();
  for await (const line of lines) {
    const words = wordsOf(line, terminal);
    const [name, ...rest] = words;
    if (name === "exit" || name === "quit") break;
    if (name !== undefined) {
      running = new AbortController();
      const session: ReplSession = {
        ...options,
        signal: running.signal,
        onCaller: (next) => {
          caller = next;
        },
      };
      await runLine(name, rest, session);
      running = undefined;
    }
    prompt();
  }
  lines.close();
  await writeHistory(file, lines);
}

/** Prints the error of a failed command; the prompt continues. */
async function runLine(name: string, rest: readonly string[], session: ReplSession): Promise<void> {
  const { terminal } = session;
  try {
    if (name === "help" || name === "?") {
      const [about] = rest;
      for (const line of about === undefined ? helpLines() : usageLines(about)) terminal.out(line);
      return;
    }
    await runCommand(findCommand(name, rest), rest, session);
  } catch (error) {
    if (session.signal.aborted) {
      terminal.note("interrupted; a started task continues: list it with 'tasks-get'");
      return;
    }
    const { message, hint } = explain(error);
    terminal.note(`${terminal.colors.red("error:")} ${message}`);
    if (hint !== undefined) terminal.note(terminal.colors.dim(`  ${hint}`));
  }
}

function wordsOf(line: string, terminal: Terminal): string[] {
  try {
    return tokenize(line);
  } catch (error) {
    terminal.note(`${terminal.colors.red("error:")} ${messageOf(error)}`);
    return [];
  }
}

/** `mail::user:ann@127.0.0.1:8000> ` */
export function promptFor(url: string, caller: WhoAmI | undefined): string {
  const host = new URL(url).host;
  if (caller === undefined) return `mail::nobody@${host}> `;
  const { id } = caller;
  const short = id.length > 8 ? `${id.slice(0, 4)}...${id.slice(-4)}` : id;
  return `mail::${caller.role}:${short}@${host}> `;
}

async function readHistory(file: string): Promise<string[]> {
  // The newest line is last in the file and first in the list.
  const text = await readFile(file, "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .reverse();
}

/** Lines with tokens are not stored. */
async function writeHistory(file: string, lines: Interface): Promise<void> {
  const history = "history" in lines && Array.isArray(lines.history) ? lines.history : [];
  const kept = history
    .filter((line): line is string => typeof line === "string")
    .filter((line) => !/^\s*(login|l|swarm-register|swarm-r|sr|message-interswarm|msg-i|mi)\s/.test(line))
    .slice(0, HISTORY_SIZE)
    .reverse();
  if (kept.length > 0) await writeFile(file, `${kept.join("\n")}\n`, { mode: 0o600 }).catch(() => {});
}
