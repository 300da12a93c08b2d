import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import { ConfigError, type ConfigProblem } from "./errors.js";
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
 * `--config`, then MAIL_CONFIG_PATH, then `./mail.toml`. A file that somebody named must be there; `mail.toml` need
 * not.
 * @throws ConfigError
 */
export function findConfigFile({ flag, env, directory }: FileSearch): ConfigFile | undefined {
  const variable = env.MAIL_CONFIG_PATH;
  if (flag !== undefined) return readConfigFile(resolve(directory, flag), "--config");
  if (variable !== undefined && variable !== "") {
    return readConfigFile(resolve(directory, variable), "MAIL_CONFIG_PATH");
  }
  return readConfigFile(resolve(directory, "mail.toml"), undefined);
}

/** `namedBy` is what named the file; without it the file may be missing. */
function readConfigFile(path: string, namedBy: string | undefined): ConfigFile | undefined {
  let document: string;
  try {
    document = readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    if (code === "ENOENT" && namedBy === undefined) return undefined;
    throw refuse({
      place: namedBy ?? path,
      message: code === "ENOENT" ? `there is no file ${path}` : `${path} cannot be read (${code})`,
    });
  }
  if (document.length > LARGEST_FILE) {
    throw refuse({ place: path, message: `the file has more than ${LARGEST_FILE} characters` });
  }
  try {
    const table = parse(document);
    return { path, table, lines: keyLines(document) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The first line of the text says what is wrong; what follows shows the document, perhaps with a secret in it.
    const reason = error.message.split("\n")[0]?.replace(/^Invalid TOML document: /, "");
    throw refuse({ place: `${path}:${error.line}:${error.column}`, message: `not TOML: ${reason}` });
  }
}

function refuse(problem: ConfigProblem): ConfigError {
  return new ConfigError([problem]);
}
