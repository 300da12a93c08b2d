/** The settings module: see README.md. */
export {
  type CatalogValues,
  type ExplainedSetting,
  explainSettings,
  type FlagRow,
  flagOf,
  type SettingRow,
  type SettingsCatalog,
  settingFlags,
  settingRows,
} from "./catalog.js";
export { configurationDocs } from "./docs.js";
export { badConfig, type ConfigProblem, configProblemsOf, formatProblem } from "./errors.js";
export { type LoadedSettings, type LoadOptions, loadSettings } from "./load.js";
export { attributeOf } from "./names.js";
export type { Source } from "./source.js";
