/**
 * Writes the published JSON Schemas from their sources, `src/mail/message.ts` and `src/mail/swarm-file/schema.ts`.
 *
 *   npx tsx scripts/schemas.ts           write them
 *   npx tsx scripts/schemas.ts --check   fail if the files are outdated
 */
import { readFileSync, writeFileSync } from "node:fs";
import { mailCoreSchema, mailInterswarmSchema } from "../src/mail/schema.js";
import { swarmFileJsonSchema } from "../src/mail/swarm-file/schema.js";

const schemas = {
  "MAIL-core.schema.json": mailCoreSchema(),
  "MAIL-interswarm.schema.json": mailInterswarmSchema(),
  "swarms.schema.json": swarmFileJsonSchema(),
};
const check = process.argv.includes("--check");

for (const [name, schema] of Object.entries(schemas)) {
  const file = new URL(`../schemas/${name}`, import.meta.url);
  const text = `${JSON.stringify(schema, null, 2)}\n`;
  if (!check) {
    writeFileSync(file, text);
    console.log(`schemas/${name} written`);
  } else if (readIfThere(file) !== text) {
    console.error(`schemas/${name} is outdated: run npx tsx scripts/schemas.ts`);
    process.exitCode = 1;
  }
}

function readIfThere(file: URL): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
