/** Commander options made from settings, and options that several commands share. */

import { type Command, Option } from "commander";
import type { FlagCommand, Setting } from "../base/index.js";
import { MailroomError } from "../base/index.js";
import { clientSettings } from "../client/settings.js";
import { catalog } from "../server/index.js";
import { serverSettings } from "../server/settings.js";
import { type FlagRow, flagOf, settingFlags } from "../settings/index.js";

const { data: dataSetting } = serverSettings.declarations;
const { url: urlSetting, token: tokenSetting } = clientSettings.declarations;

/** Adds the options of all settings with a flag for this command. Alternative names are hidden. */
export function withSettings(command: Command, name: FlagCommand): Command {
  for (const row of settingFlags(catalog, name)) {
    const [, ...others] = row.names;
    command.addOption(optionOf(row));
    for (const other of others) {
      command.addOption(new Option(valued(other, row), `alternative name of ${row.names[0]}`).hideHelp());
    }
  }
  return command;
}

/** Returns the option of one setting. */
export function optionFor(setting: Setting<unknown>, help?: string): Option {
  const row = flagOf(setting);
  if (row === undefined) throw new TypeError(`${setting.key} has no flag`);
  return optionOf(row, help);
}

function optionOf(row: FlagRow, help = helpOf(row)): Option {
  const { names, short = "" } = row;
  // Commander parses a short flag of several letters as several flags: see argv.ts.
  const letter = short.length === 2 ? `${short}, ` : "";
  const option = new Option(`${letter}${valued(names[0], row)}`, help);
  return row.repeatable === true ? option.argParser(asList) : option;
}

/** A list is written with commas, as in a variable. */
function asList(value: string, before: string | undefined): string {
  return before === undefined ? value : `${before},${value}`;
}

function valued(name: string, { value }: FlagRow): string {
  return value === undefined ? name : `${name} ${value}`;
}

/** Returns the first sentence of the documentation as help text. */
function helpOf({ doc, default: standard = "", short = "" }: FlagRow): string {
  const [sentence = ""] = doc.split(/\. |; |\.$/);
  const text = `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`;
  const notes = [
    ...(standard === "" || standard === "false" ? [] : [`default: ${standard}`]),
    ...(short.length > 2 ? [short] : []),
  ];
  return `${text}${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`.replaceAll("`", "");
}

export const json = () => new Option("--json", "print JSON for scripts");
export const config = () => new Option("-c, --config <file>", "configuration file (default: ./mail.toml)");
export const data = () => optionFor(dataSetting);

/** Adds the options that select a server: the given one, otherwise the local one. */
export const withServer = (command: Command): Command =>
  command
    .addOption(optionFor(urlSetting, "URL of another server instead of the local one"))
    .addOption(optionFor(tokenSetting, "token for the server (or MAILROOM_TOKEN)"));

/** Adds the options that select the data directory and the output format. */
export const withDataDirectory = (command: Command): Command =>
  command.addOption(data()).addOption(config()).addOption(json());

export interface CommonOptions {
  readonly json?: boolean;
}

/** Options that determine the data directory. */
export interface DataOptions extends CommonOptions {
  readonly data?: string;
  readonly config?: string;
}

export const EXIT_HELP = `
Exit codes: 0 success, 1 failure, 2 invalid usage, 3 no connection, 4 refused, 5 task failed or cancelled,
6 task waits for an answer, 74 store failed, 75 stopped with unwritten results, 130 interrupted.

Start here: mailroom demo`;

/**
 *
 * @throws MailroomError for anything but a positive number
 */
export function millisecondsOf(seconds: string, option = "--timeout"): number {
  const value = Number(seconds);
  if (seconds.trim() !== "" && Number.isFinite(value) && value > 0) return value * 1000;
  throw new MailroomError("usage", `${option} '${seconds}' is not a number of seconds`);
}

/**
 *
 * @throws MailroomError for anything but a whole number within the limits
 */
export function wholeNumber(text: string, option: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new MailroomError("usage", `${option} '${text}' is not a whole number from ${min} to ${max}`);
}
