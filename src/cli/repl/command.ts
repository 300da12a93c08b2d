/** What a command of the client is: a row of a table, run by its words. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import type { Caller, MailClient } from "../../client/index.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import type { Terminal } from "../terminal.js";

export interface Session {
  readonly client: MailClient;
  readonly terminal: Terminal;
  /** Data for scripts instead of words for people. */
  readonly json: boolean;
  readonly verbose: boolean;
  /** Fires when the command shall end: Ctrl-C. */
  readonly signal: AbortSignal;
  /** Told who is calling from now on. */
  readonly onCaller?: (caller: Caller | undefined) => void;
}

export interface Given {
  readonly arguments: readonly string[];
  text(option: string): string | undefined;
  flag(option: string): boolean;
  /** The argument at this place, which the table says is there. */
  argument(index: number): string;
}

export interface Command {
  readonly name: string;
  readonly aliases: readonly string[];
  /** `BODY [-s SUBJECT]` */
  readonly usage: string;
  readonly summary: string;
  readonly minimum: number;
  readonly maximum: number;
  /** The last argument is a text that people write without quotes too: further words belong to it. */
  readonly endsInText?: boolean;
  readonly options?: NonNullable<ParseArgsConfig["options"]>;
  /** Flags of the reference with one dash and several letters, which no parser understands. */
  readonly oldFlags?: Readonly<Record<string, string>>;
  readonly run: (session: Session, given: Given) => Promise<ExitCode>;
}

const COMMON = {
  json: { type: "boolean" },
  verbose: { type: "boolean", short: "v" },
} as const satisfies ParseArgsConfig["options"];

/** @throws CliError `usage` */
export async function runCommand(
  command: Command,
  words: readonly string[],
  session: Session,
): Promise<ExitCode> {
  const given = parse(command, words);
  const changed: Session = {
    ...session,
    json: session.json || given.flag("json"),
    verbose: session.verbose || given.flag("verbose"),
  };
  return command.run(changed, given);
}

function parse(command: Command, words: readonly string[]): Given {
  const args = words.map((word) => command.oldFlags?.[word] ?? word);
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args, options: { ...COMMON, ...command.options }, allowPositionals: true });
  } catch (error) {
    throw wrongUse(command, error instanceof Error ? error.message : String(error));
  }
  const { values } = parsed;
  const positionals =
    command.endsInText === true ? joinText(parsed.positionals, command.maximum) : parsed.positionals;
  if (positionals.length < command.minimum) throw wrongUse(command, "something is missing");
  if (positionals.length > command.maximum) {
    throw wrongUse(command, `'${positionals[command.maximum]}' is too much: put quotes around texts`);
  }
  return {
    arguments: positionals,
    text: (option) => (typeof values[option] === "string" ? values[option] : undefined),
    flag: (option) => values[option] === true,
    argument: (index) => positionals[index] ?? "",
  };
}

/** The last of `count` arguments takes in all that follow it. */
function joinText(words: readonly string[], count: number): string[] {
  if (words.length <= count) return [...words];
  return [...words.slice(0, count - 1), words.slice(count - 1).join(" ")];
}

export function wrongUse(command: Command, message: string): CliError {
  return new CliError("usage", `${command.name}: ${message}`, {
    exit: EXIT.usage,
    hint: `usage: ${command.name} ${command.usage}`.trim(),
  });
}

/** The one way to show a result: as data, or as lines. */
export function show(
  session: Pick<Session, "json" | "terminal">,
  data: unknown,
  lines: readonly string[],
): void {
  if (session.json) session.terminal.json(data);
  else for (const line of lines) session.terminal.out(line);
}
