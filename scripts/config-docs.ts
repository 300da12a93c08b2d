/**
 * Writes `docs/configuration.md` from the settings that the modules declare.
 *
 *   npx tsx scripts/config-docs.ts
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { catalog } from "../src/server/catalog.js";
import { configurationDocs } from "../src/settings/index.js";

const file = new URL("../docs/configuration.md", import.meta.url);
mkdirSync(new URL(".", file), { recursive: true });
writeFileSync(file, configurationDocs(catalog));
console.log("docs/configuration.md written");
