import type { Command, Flag, SettingRow } from "./declare.js";
import type { Config } from "./load.js";
import { describeSettings } from "./load.js";
import { formatSource } from "./source.js";

export interface ExplainedSetting {
  readonly key: string;
  /** As people read it; secrets are masked, and what is not set is empty. */
  readonly value: string;
  /** `--port`, `MAILROOM_PORT`, `/srv/mail.toml:3` or `default`. */
  readonly source: string;
}

/** What is in force and where each value came from, for `mailroom config`. */
export function explainConfig(config: Pick<Config, "rows">): ExplainedSetting[] {
  return config.rows.map(({ key, value, source }) => ({
    key,
    value: value ?? "",
    source: formatSource(source),
  }));
}

export interface FlagRow extends Flag {
  readonly key: string;
  readonly doc: string;
  readonly default: string | undefined;
}

/** The flags that a command has by the table of settings, for its command line parser. */
export function settingFlags(command: Command): FlagRow[] {
  return describeSettings().rows.flatMap(({ key, doc, default: standard, flag }: SettingRow) =>
    flag?.commands.includes(command) ? [{ ...flag, key, doc, default: standard }] : [],
  );
}
