/** Options that several commands have. */
import { CliError, EXIT } from "./exit.js";

export interface CommonOptions {
  readonly json?: boolean;
}

/** What decides which data directory is meant. */
export interface PlaceOptions extends CommonOptions {
  readonly data?: string;
  readonly config?: string;
}

export const EXIT_HELP = `
Exit codes: 0 done, 1 failed, 2 wrong use, 3 no connection, 4 refused, 5 the task failed or was cancelled,
6 the task waits for an answer, 74 the store failed, 75 stopped with results unwritten, 130 interrupted.

Start here: mailroom demo`;

/** @throws CliError when it is not a number of seconds */
export function millisecondsOf(seconds: string, option = "--timeout"): number {
  const value = Number(seconds);
  if (seconds.trim() !== "" && Number.isFinite(value) && value > 0) return value * 1000;
  throw new CliError("usage", `${option} '${seconds}' is not a number of seconds`, { exit: EXIT.usage });
}

/** @throws CliError when it is not a whole number within the limits */
export function wholeNumber(text: string, option: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new CliError("usage", `${option} '${text}' is not a whole number from ${min} to ${max}`, {
    exit: EXIT.usage,
  });
}
