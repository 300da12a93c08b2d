/** `mailroom init`: a small project that runs immediately, with comments at the places to edit. */

import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { MailroomError } from "../../base/index.js";
import { makeDirectories } from "../../base/node.js";
import { checkSwarmName } from "../../mail/index.js";
import { EXIT, type ExitCode } from "../exit.js";
import type { CommonOptions } from "../options.js";
import { projectFiles } from "../templates.js";
import type { Terminal } from "../terminal.js";

export interface InitOptions extends CommonOptions {
  readonly name: string;
  readonly force?: boolean;
}

export async function runInit(target: string, options: InitOptions, terminal: Terminal): Promise<ExitCode> {
  const problem = checkSwarmName(options.name);
  if (problem !== undefined) throw new MailroomError("usage", `--name: ${problem}`);
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

/** Existing files are overwritten only on request. */
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
    const done = before.length === 0 ? "no file was written" : `written so far: ${before.join(", ")}`;
    throw new MailroomError("file_exists", `${path} already exists; ${done}`, {
      details: { hint: "choose another directory, or overwrite it with --force" },
      cause: error,
    });
  }
}
