/** Where the command line reads and writes. Everything that it prints goes through here. */
import type { ReadStream } from "node:tty";
import pico from "picocolors";

export type Colours = ReturnType<typeof pico.createColors>;

export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadStream | ReadStream;
  readonly colours: Colours;
  /** Whether a person sits at both ends. */
  readonly interactive: boolean;
  readonly columns: number;
  /** A line on standard output: what the command is for. */
  out(line?: string): void;
  /** A line on standard error: everything said beside it. */
  note(line?: string): void;
  /** Data for scripts, on one line. */
  json(value: unknown): void;
}

export function processTerminal(): Terminal {
  const { env, stdin, stdout, stderr } = process;
  // Whoever reads us (`head`, say) may stop before we do. That is their right and no failure of ours.
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit();
    throw error;
  });
  const colours = pico.createColors(wantsColours(env, stdout.isTTY === true));
  return {
    env,
    stdin,
    colours,
    interactive: stdin.isTTY === true && stdout.isTTY === true,
    get columns() {
      return stdout.columns ?? 100;
    },
    out: (line = "") => void stdout.write(`${line}\n`),
    note: (line = "") => void stderr.write(`${line}\n`),
    json: (value) => void stdout.write(`${JSON.stringify(value)}\n`),
  };
}

/** Only on a terminal, and never against the reader's wish (no-color.org). */
export function wantsColours(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== "") return false;
  return isTerminal && env.TERM !== "dumb";
}

/**
 * Text from others is data: an agent's words must not move the cursor, change colours or set the title of a terminal.
 * Line breaks and tabs stay.
 */
export function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]|[\u202A-\u202E\u2066-\u2069]/gu, "\uFFFD");
}
