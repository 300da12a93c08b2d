/** Options that several commands have, in the words of the command line. */
import { type Command, Option } from "commander";

export const json = () => new Option("--json", "print data for scripts");
export const config = () => new Option("-c, --config <file>", "configuration file (default: ./mail.toml)");
export const data = () => new Option("--data <dir>", "data directory (default: ./.mailroom/<swarm>)");
export const token = () => new Option("--token <token>", "token to call with (or MAILROOM_TOKEN)");

/** Which server is meant: one that is named, else the one on this machine. */
export const withServer = (command: Command): Command =>
  command.option("--url <url>", "a server elsewhere, instead of the one on this machine").addOption(token());

/** Which data directory is meant, and how the answer is to be printed. */
export const withPlace = (command: Command): Command =>
  command.addOption(data()).addOption(config()).addOption(json());
