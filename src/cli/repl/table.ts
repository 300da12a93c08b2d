/** All client commands, and their lookup. */
import { didYouMean, MailroomError } from "../../base/index.js";
import type { ReplCommand } from "./command.js";
import { MESSAGE_COMMANDS } from "./message-commands.js";
import { SERVER_COMMANDS } from "./server-commands.js";
import { TASK_COMMANDS } from "./task-commands.js";

export const COMMANDS: readonly ReplCommand[] = [...MESSAGE_COMMANDS, ...TASK_COMMANDS, ...SERVER_COMMANDS];

/**
 *
 * @param rest the words after the name: an unknown command with several words may be a message
 * @throws MailroomError with suggestions
 */
export function findCommand(name: string, rest: readonly string[] = []): ReplCommand {
  const found = COMMANDS.find((command) => command.name === name || command.aliases.includes(name));
  if (found !== undefined) return found;
  const names = COMMANDS.flatMap((command) => [command.name, ...command.aliases]);
  const near = didYouMean(name, names);
  const command = near?.startsWith("did you mean") ? near : "'help' lists the commands";
  throw new MailroomError("unknown_command", `unknown command '${name}'`, {
    details: { hint: rest.length === 0 ? command : `to send it to the swarm: message "…" (${command})` },
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

/** Completions for Tab. */
export function complete(line: string): [string[], string] {
  const names = [...COMMANDS.map(({ name }) => name), "help", "exit", "quit"];
  const fitting = names.filter((name) => name.startsWith(line));
  return [fitting.map((name) => `${name} `), line];
}
