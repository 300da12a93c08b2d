/** The config room: see README.md. */
export { isLoopback } from "./check.js";
export type { Command, Flag, Section, SettingRow, SettingSpec } from "./declare.js";
export { ConfigError, type ConfigProblem } from "./errors.js";
export { type ExplainedSetting, explainConfig, type FlagRow, settingFlags } from "./explain.js";
export * as kinds from "./kinds.js";
export { type Config, type LoadOptions, loadConfig } from "./load.js";
export type { Settings } from "./settings/index.js";
export type { Source } from "./source.js";
