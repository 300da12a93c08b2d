/** All commands of the client, and how to find one. */
import { didYouMean } from "../../mail/swarm-file/suggest.js";
import { CliError, EXIT } from "../exit.js";
import type { Command } from "./command.js";
import { MESSAGE_COMMANDS } from "./message-commands.js";
import { SERVER_COMMANDS } from "./server-commands.js";
import { TASK_COMMANDS } from "./task-commands.js";

export const COMMANDS: readonly Command[] = [...MESSAGE_COMMANDS, ...TASK_COMMANDS, ...SERVER_COMMANDS];

/**
 * @param rest the words that follow: a line of several that begins with no command is perhaps a message
 * @throws CliError that says what may have been meant
 */
export function findCommand(name: string, rest: readonly string[] = []): Command {
  const found = COMMANDS.find((command) => command.name === name || command.aliases.includes(name));
  if (found !== undefined) return found;
  const names = COMMANDS.flatMap((command) => [command.name, ...command.aliases]);
  const near = didYouMean(name, names);
  const command = near?.startsWith("did you mean") ? near : "'help' lists the commands";
  throw new CliError("unknown_command", `there is no command '${name}'`, {
    exit: EXIT.usage,
    hint: rest.length === 0 ? command : `to say it to the swarm: message "…" (${command})`,
  });
}

export function helpLines(): string[] {
  const rows = COMMANDS.map((command): readonly [string, string] => [
    `${command.name} (${command.aliases.join(", ")})`,
    command.summary,
  ]);
  const width = Math.max(...rows.map(([left]) => left.length));
  return [
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`),
    `  ${"help, ?".padEnd(width)}  this list; 'help COMMAND' says how to write one`,
    `  ${"exit, quit".padEnd(width)}  leave (Ctrl-D too); Ctrl-C ends what is running`,
  ];
}

export function usageLines(name: string): string[] {
  const command = findCommand(name);
  return [`${command.name} ${command.usage}`.trim(), `  ${command.summary}`];
}

/** What Tab offers. */
export function complete(line: string): [string[], string] {
  const names = [...COMMANDS.map(({ name }) => name), "help", "exit", "quit"];
  const fitting = names.filter((name) => name.startsWith(line));
  return [fitting.map((name) => `${name} `), line];
}
