/** The prompt: reads lines, runs commands, survives their failures. */
import { readFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Caller, MailClient } from "../../client/index.js";
import { explain } from "../exit.js";
import type { Terminal } from "../terminal.js";
import { runCommand, type Session } from "./command.js";
import { complete, findCommand, helpLines, usageLines } from "./table.js";
import { splitWords } from "./words.js";

const HISTORY_SIZE = 1000;

export interface LoopOptions {
  readonly client: MailClient;
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly verbose: boolean;
  readonly caller: Caller | undefined;
  /** Where lines are remembered. Default: `.mailroom_history` in the home directory. */
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
      // As in a shell: what was typed so far is given up.
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
      const session: Session = {
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

/** A command that fails says so; the prompt comes back all the same. */
async function runLine(name: string, rest: readonly string[], session: Session): Promise<void> {
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
      terminal.note("interrupted; a task that was started goes on: 'tasks-get' lists it");
      return;
    }
    const { message, hint } = explain(error);
    terminal.note(`${terminal.colours.red("error:")} ${message}`);
    if (hint !== undefined) terminal.note(terminal.colours.dim(`  ${hint}`));
  }
}

function wordsOf(line: string, terminal: Terminal): string[] {
  try {
    return splitWords(line);
  } catch (error) {
    terminal.note(
      `${terminal.colours.red("error:")} ${error instanceof Error ? error.message : String(error)}`,
    );
    return [];
  }
}

/** `mail::user:ann@127.0.0.1:8000> ` */
export function promptFor(url: string, caller: Caller | undefined): string {
  const host = new URL(url).host;
  if (caller === undefined) return `mail::nobody@${host}> `;
  const { id } = caller;
  const short = id.length > 8 ? `${id.slice(0, 4)}...${id.slice(-4)}` : id;
  return `mail::${caller.role}:${short}@${host}> `;
}

async function readHistory(file: string): Promise<string[]> {
  // The newest line is the last of the file and the first of the list.
  const text = await readFile(file, "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .reverse();
}

/** A token that was typed is not remembered. */
async function writeHistory(file: string, lines: Interface): Promise<void> {
  const history = "history" in lines && Array.isArray(lines.history) ? lines.history : [];
  const kept = history
    .filter((line): line is string => typeof line === "string")
    .filter((line) => !/^\s*(login|l|swarm-register|swarm-r|sr|message-interswarm|msg-i|mi)\s/.test(line))
    .slice(0, HISTORY_SIZE)
    .reverse();
  if (kept.length > 0) await writeFile(file, `${kept.join("\n")}\n`, { mode: 0o600 }).catch(() => {});
}
