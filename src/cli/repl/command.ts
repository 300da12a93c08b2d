/** A client command: a row of the command table. */

import { type ParseArgsConfig, parseArgs } from "node:util";
import { MailroomError, messageOf } from "../../base/index.js";
import type { MailClient, WhoAmI } from "../../client/index.js";
import type { ExitCode } from "../exit.js";
import type { Terminal } from "../terminal.js";

export interface ReplSession {
  readonly client: MailClient;
  readonly terminal: Terminal;
  /** Print JSON for scripts. */
  readonly json: boolean;
  readonly verbose: boolean;
  /** Aborts the command (Ctrl-C). */
  readonly signal: AbortSignal;
  /** Called when the caller's identity changes. */
  readonly onCaller?: (caller: WhoAmI | undefined) => void;
}

export interface ParsedArguments {
  readonly arguments: readonly string[];
  text(option: string): string | undefined;
  flag(option: string): boolean;
  /** The argument at this index; the table guarantees that it exists. */
  argument(index: number): string;
}

export interface ReplCommand {
  readonly name: string;
  readonly aliases: readonly string[];
  /** `BODY [-s SUBJECT]` */
  readonly usage: string;
  readonly summary: string;
  readonly minimum: number;
  readonly maximum: number;
  /** The last argument is a text that users may write without quotes: further words belong to it. */
  readonly endsInText?: boolean;
  readonly options?: NonNullable<ParseArgsConfig["options"]>;
  /** Flags of the reference with one dash and several letters, which parsers do not support. */
  readonly oldFlags?: Readonly<Record<string, string>>;
  readonly run: (session: ReplSession, given: ParsedArguments) => Promise<ExitCode>;
}

const COMMON = {
  json: { type: "boolean" },
  verbose: { type: "boolean", short: "v" },
} as const satisfies ParseArgsConfig["options"];

/** @throws MailroomError `usage` */
export async function runCommand(
  command: ReplCommand,
  words: readonly string[],
  session: ReplSession,
): Promise<ExitCode> {
  const given = parse(command, words);
  const changed: ReplSession = {
    ...session,
    json: session.json || given.flag("json"),
    verbose: session.verbose || given.flag("verbose"),
  };
  return command.run(changed, given);
}

function parse(command: ReplCommand, words: readonly string[]): ParsedArguments {
  const args = words.map((word) => command.oldFlags?.[word] ?? word);
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args, options: { ...COMMON, ...command.options }, allowPositionals: true });
  } catch (error) {
    throw usageError(command, messageOf(error));
  }
  const { values } = parsed;
  const positionals =
    command.endsInText === true ? joinText(parsed.positionals, command.maximum) : parsed.positionals;
  if (positionals.length < command.minimum) throw usageError(command, "missing argument");
  if (positionals.length > command.maximum) {
    throw usageError(command, `'${positionals[command.maximum]}' is too much: put quotes around texts`);
  }
  return {
    arguments: positionals,
    text: (option) => (typeof values[option] === "string" ? values[option] : undefined),
    flag: (option) => values[option] === true,
    argument: (index) => positionals[index] ?? "",
  };
}

/** Joins all words from the last of `count` arguments on. */
function joinText(words: readonly string[], count: number): string[] {
  if (words.length <= count) return [...words];
  return [...words.slice(0, count - 1), words.slice(count - 1).join(" ")];
}

export function usageError(command: ReplCommand, message: string): MailroomError {
  return new MailroomError("usage", `${command.name}: ${message}`, {
    details: { hint: `usage: ${command.name} ${command.usage}`.trim() },
  });
}

/** Prints a result as JSON or as lines. */
export function show(
  session: Pick<ReplSession, "json" | "terminal">,
  data: unknown,
  lines: readonly string[],
): void {
  if (session.json) session.terminal.json(data);
  else for (const line of lines) session.terminal.out(line);
}
