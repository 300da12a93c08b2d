/** Input and output of the command line. All output goes through it. */
import type { ReadStream } from "node:tty";
import pico from "picocolors";

export type Colors = ReturnType<typeof pico.createColors>;

export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadStream | ReadStream;
  readonly colors: Colors;
  /** Whether both ends are terminals. */
  readonly interactive: boolean;
  readonly columns: number;
  /** Writes a line to standard output: the command's result. */
  out(line?: string): void;
  /** Writes a part of a line to standard output. */
  write(text: string): void;
  /** Writes a line to standard error: everything else. */
  note(line?: string): void;
  /** Writes JSON for scripts, on one line. */
  json(value: unknown): void;
}

export function processTerminal(): Terminal {
  const { env, stdin, stdout, stderr } = process;
  // The reader (such as `head`) may close the pipe first; that is not an error.
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit();
    throw error;
  });
  const colors = pico.createColors(wantsColors(env, stdout.isTTY === true));
  return {
    env,
    stdin,
    colors,
    interactive: stdin.isTTY === true && stdout.isTTY === true,
    get columns() {
      // Some terminals say 0.
      return stdout.columns || 100;
    },
    out: (line = "") => void stdout.write(`${line}\n`),
    write: (text) => void stdout.write(text),
    note: (line = "") => void stderr.write(`${line}\n`),
    json: (value) => void stdout.write(`${JSON.stringify(value)}\n`),
  };
}

/** Colors only on a terminal, and never against NO_COLOR (no-color.org). */
export function wantsColors(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== "") return false;
  return isTerminal && env.TERM !== "dumb";
}

/**
 * Replaces control characters: an agent's text must not move the cursor, change colors or set the title of a
 * terminal. Keeps line breaks and tabs.
 */
export function escapeControlCharacters(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]|[\u202A-\u202E\u2066-\u2069]/gu, "\uFFFD");
}
