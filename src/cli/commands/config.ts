/** `mailroom config`: the effective settings and the source of each value. */

import { loadServerConfig } from "../../server/index.js";
import { explainSettings, formatProblem } from "../../settings/index.js";
import { flagsOf } from "../data-directory.js";
import { EXIT, type ExitCode } from "../exit.js";
import type { CommonOptions } from "../options.js";
import type { Terminal } from "../terminal.js";

export interface ConfigOptions extends CommonOptions {
  readonly config?: string;
  readonly changed?: boolean;
}

export async function runConfig(options: ConfigOptions, terminal: Terminal): Promise<ExitCode> {
  const config = await loadServerConfig({
    flags: flagsOf(options),
    env: terminal.env,
    directory: process.cwd(),
  });
  for (const warning of config.warnings) terminal.note(`warning: ${formatProblem(warning)}`);
  const all = explainSettings(config);
  const shown = options.changed === true ? all.filter(({ source }) => source !== "default") : all;
  if (options.json === true) {
    terminal.json({ file: config.file ?? null, settings: shown });
    return EXIT.ok;
  }
  const { dim } = terminal.colors;
  terminal.out(dim(config.file === undefined ? "# no configuration file" : `# ${config.file}`));
  const widest = (of: (row: (typeof shown)[number]) => string) =>
    shown.reduce((width, row) => Math.max(width, of(row).length), 0);
  const keys = widest(({ key }) => key);
  const values = Math.min(
    40,
    widest(({ value }) => value),
  );
  for (const { key, value, source } of shown) {
    const from = source === "default" ? dim(source) : source;
    terminal.out(`${key.padEnd(keys)}  ${(value === "" ? "-" : value).padEnd(values)}  ${from}`);
  }
  return EXIT.ok;
}
