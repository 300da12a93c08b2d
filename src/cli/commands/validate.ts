/** `mailroom validate`: detects swarm files and messages by content and checks them. */

import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { messageOf, systemClock } from "../../base/index.js";
import { withExamples } from "../../demo/index.js";
import { MeshActions } from "../../doors/mesh/index.js";
import {
  checkInterswarmMessage,
  checkMailMessage,
  type FormatProblem,
  formatProblem,
  readSwarmFile,
  swarmProblemsOf,
} from "../../mail/index.js";
import { defaultBuiltins, loadSwarmsFromText } from "../../swarm/index.js";
import { EXIT, type ExitCode } from "../exit.js";
import type { CommonOptions } from "../options.js";
import { escapeControlCharacters, type Terminal } from "../terminal.js";

export interface ValidateOptions extends CommonOptions {
  readonly strictIds?: boolean;
  /** Commander's form of `--no-references`. */
  readonly references: boolean;
}

type Kind = "swarm file" | "message" | "interswarm message" | "unknown";

interface Verdict {
  readonly file: string;
  readonly kind: Kind;
  readonly valid: boolean;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

export async function runValidate(
  files: readonly string[],
  options: ValidateOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const { red, green, yellow } = terminal.colors;
  let bad = 0;
  for (const file of files) {
    const verdict = await checkFile(file, options, terminal);
    if (!verdict.valid) bad += 1;
    if (options.json === true) terminal.json(verdict);
    else {
      terminal.out(`${verdict.valid ? green("ok") : red("bad")}  ${file}  ${verdict.kind}`);
      for (const problem of verdict.problems) terminal.out(`  ${escapeControlCharacters(problem)}`);
      for (const warning of verdict.warnings)
        terminal.out(`  ${yellow("warning")} ${escapeControlCharacters(warning)}`);
    }
  }
  return bad === 0 ? EXIT.ok : EXIT.failure;
}

async function checkFile(file: string, options: ValidateOptions, terminal: Terminal): Promise<Verdict> {
  let content: string;
  try {
    content = file === "-" ? await readAll(terminal.stdin) : await readFile(file, "utf8");
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const reason = missing ? "file not found" : messageOf(error);
    return {
      file,
      kind: "unknown",
      valid: false,
      problems: [`cannot read the file: ${reason}`],
      warnings: [],
    };
  }
  const value = parse(content);
  const kind = kindOf(value);
  switch (kind) {
    case "swarm file":
      return swarmFile(file, content, options);
    case "message": {
      const checked = checkMailMessage(value, { strictIds: options.strictIds === true });
      return verdictOn(file, kind, checked.ok ? [] : checked.errors);
    }
    case "interswarm message": {
      const checked = checkInterswarmMessage(value, { strictIds: options.strictIds === true });
      return verdictOn(file, kind, checked.ok ? [] : checked.errors);
    }
    case "unknown": {
      const problem = value === undefined ? notJson(content) : "neither a swarm file nor a MAIL message";
      return { file, kind, valid: false, problems: [problem], warnings: [] };
    }
    default:
      return kind satisfies never;
  }
}

/** Keys that only one kind has, so that an invalid file is checked as what it was meant to be. */
function kindOf(value: unknown): Kind {
  if (Array.isArray(value)) return "swarm file";
  if (typeof value !== "object" || value === null) return "unknown";
  if ("swarms" in value || "agents" in value) return "swarm file";
  if ("payload" in value || "source_swarm" in value || "target_swarm" in value) return "interswarm message";
  if ("message" in value || "msg_type" in value) return "message";
  return "unknown";
}

async function loadingWarnings(file: string, content: string) {
  const standard = withExamples(defaultBuiltins());
  const mesh = new MeshActions(systemClock);
  const builtins = { ...standard, actions: { ...standard.actions, ...mesh.byReference } };
  try {
    const place = { source: file, directory: dirname(resolve(file)) };
    const loaded = await loadSwarmsFromText(content, { ...place, builtins });
    return loaded.flatMap(({ warnings }) => warnings);
  } finally {
    await mesh.close();
  }
}

async function swarmFile(file: string, content: string, options: ValidateOptions): Promise<Verdict> {
  try {
    const warnings = options.references
      ? await loadingWarnings(file, content)
      : readSwarmFile(content, file).warnings;
    return { file, kind: "swarm file", valid: true, problems: [], warnings: warnings.map(formatProblem) };
  } catch (error) {
    const problems = swarmProblemsOf(error);
    if (problems === undefined) throw error;
    return {
      file,
      kind: "swarm file",
      valid: false,
      problems: problems.map(formatProblem),
      warnings: [],
    };
  }
}

function verdictOn(file: string, kind: Kind, errors: readonly FormatProblem[]): Verdict {
  const problems = errors.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  return { file, kind, valid: errors.length === 0, problems, warnings: [] };
}

function parse(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}

function notJson(content: string): string {
  try {
    readSwarmFile(content);
  } catch (error) {
    // The swarm file parser reports the position in the text.
    const [first] = swarmProblemsOf(error) ?? [];
    if (first !== undefined) return formatProblem(first);
  }
  return "invalid JSON";
}
