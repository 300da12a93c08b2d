/**
 * Writes `docs/configuration.md` from the table of settings in `src/config/settings`.
 *
 *   npx tsx scripts/config-docs.ts
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { configurationDocs } from "../src/config/docs.js";

const file = new URL("../docs/configuration.md", import.meta.url);
mkdirSync(new URL(".", file), { recursive: true });
writeFileSync(file, configurationDocs());
console.log("docs/configuration.md written");
