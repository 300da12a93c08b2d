/** The public names, by entry point. A new one is a promise to users: record it deliberately. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseSync } from "oxc-parser";
import { expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const ENTRIES = {
  "agent-mailroom": "index.ts",
  "agent-mailroom/server": "server/index.ts",
  "agent-mailroom/client": "client/index.ts",
  "agent-mailroom/mail": "mail/public.ts",
  "agent-mailroom/testing": "testing/index.ts",
} as const;

function exportedNames(file: string): string[] {
  const path = join(ROOT, "src", file);
  const { module } = parseSync(path, readFileSync(path, "utf8"));
  return module.staticExports
    .flatMap(({ entries }) => entries)
    .map(({ exportName }) => exportName.name ?? "*")
    .sort();
}

it("the entry points export exactly the recorded names", async () => {
  const lines = Object.entries(ENTRIES).flatMap(([entry, file]) => [
    `# ${entry}`,
    ...new Set(exportedNames(file)),
    "",
  ]);
  await expect(lines.join("\n")).toMatchFileSnapshot("public-names.txt");
});
