import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import { badConfig } from "./errors.js";
import { keyLines } from "./toml-lines.js";

/** A configuration file that was read. */
export interface ConfigFile {
  readonly path: string;
  readonly table: Readonly<Record<string, unknown>>;
  readonly lines: ReadonlyMap<string, number>;
}

export interface FileSearch {
  /** From `--config`. */
  readonly flag?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
}

const LARGEST_FILE = 1024 * 1024;

/**
 * `--config`, then MAIL_CONFIG_PATH, then `./mail.toml`. A named file must exist; `mail.toml` is
 * optional.
 * @throws MailroomError `bad_config`
 */
export function findConfigFile({ flag, env, directory }: FileSearch): ConfigFile | undefined {
  const variable = env.MAIL_CONFIG_PATH;
  if (flag !== undefined) return readConfigFile(resolve(directory, flag), "--config");
  if (variable !== undefined && variable !== "") {
    return readConfigFile(resolve(directory, variable), "MAIL_CONFIG_PATH");
  }
  return readConfigFile(resolve(directory, "mail.toml"), undefined);
}

/** `namedBy` is the flag or variable that named the file; without it the file is optional. */
function readConfigFile(path: string, namedBy: string | undefined): ConfigFile | undefined {
  let document: string;
  try {
    document = readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    if (code === "ENOENT" && namedBy === undefined) return undefined;
    const message = code === "ENOENT" ? `file ${path} does not exist` : `${path} cannot be read (${code})`;
    throw badConfig([{ place: namedBy ?? path, message }]);
  }
  if (document.length > LARGEST_FILE) {
    throw badConfig([{ place: path, message: `the file has more than ${LARGEST_FILE} characters` }]);
  }
  try {
    const table = parse(document);
    return { path, table, lines: keyLines(document) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The first line names the problem; the rest quotes the document, which may contain a secret.
    const reason = error.message.split("\n")[0]?.replace(/^Invalid TOML document: /, "");
    throw badConfig([{ place: `${path}:${error.line}:${error.column}`, message: `invalid TOML: ${reason}` }]);
  }
}
