/** `mailroom init`: a small project that runs at once, with remarks where one would change it. */
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { makeDirectories } from "../../files/directories.js";
import { checkSwarmName } from "../../mail/index.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import type { CommonOptions } from "../options.js";
import { projectFiles } from "../project.js";
import type { Terminal } from "../terminal.js";

export interface InitOptions extends CommonOptions {
  readonly name: string;
  readonly force?: boolean;
}

export async function runInit(target: string, options: InitOptions, terminal: Terminal): Promise<ExitCode> {
  const problem = checkSwarmName(options.name);
  if (problem !== undefined) throw new CliError("usage", `--name: ${problem}`, { exit: EXIT.usage });
  const directory = resolve(target);
  const files = projectFiles(options.name);
  makeDirectories(directory);
  const written: string[] = [];
  for (const [name, content] of Object.entries(files)) {
    await write(join(directory, name), content, options.force === true, written);
    written.push(name);
  }
  if (options.json === true) terminal.json({ directory, files: written });
  else {
    for (const name of written) terminal.out(`wrote ${join(target, name)}`);
    terminal.out("");
    terminal.out("Next:");
    if (target !== ".") terminal.out(`  cd ${target}`);
    terminal.out("  npx mailroom validate swarms.json");
    terminal.out("  npx mailroom server --dev");
    terminal.out('  npx mailroom client http://127.0.0.1:8000 message "When are you open on Sunday?"');
  }
  return EXIT.ok;
}

/** What is there is somebody's work: it is overwritten only on request. */
async function write(
  path: string,
  content: string,
  force: boolean,
  before: readonly string[],
): Promise<void> {
  try {
    await writeFile(path, content, { flag: force ? "w" : "wx" });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    const done = before.length === 0 ? "nothing was written" : `written so far: ${before.join(", ")}`;
    throw new CliError("file_exists", `${path} is there already; ${done}`, {
      hint: "choose another directory, or overwrite it with --force",
      cause: error,
    });
  }
}
