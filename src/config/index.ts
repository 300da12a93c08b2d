/** The config room: see README.md. */
export { isLoopback } from "./check.js";
export type { Command, Flag, Section, SettingRow, SettingSpec } from "./declare.js";
export { ConfigError, type ConfigProblem, formatProblem } from "./errors.js";
export { type ExplainedSetting, explainConfig, type FlagRow, settingFlags } from "./explain.js";
export * as kinds from "./kinds.js";
export { type Config, describeSettings, type LoadOptions, loadConfig } from "./load.js";
export { RESERVED_TABLES, type Settings } from "./settings/index.js";
export { formatSource, type Source } from "./source.js";
