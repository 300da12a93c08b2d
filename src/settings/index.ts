/** The settings module: see README.md. */
export {
  type CatalogValues,
  explainSettings,
  type FlagRow,
  flagOf,
  type SettingsCatalog,
  settingFlags,
  settingRows,
} from "./catalog.js";
export { configurationDocs } from "./docs.js";
export { badConfig, type ConfigProblem, configProblemsOf, formatProblem } from "./errors.js";
export { type LoadedSettings, type LoadOptions, loadSettings } from "./load.js";
