import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { errorsDocs } from "../../scripts/errors-docs.js";
import { ERRORS, type ErrorRow, PUBLIC_ERRORS } from "../../src/base/index.js";
import { filesBelow } from "./prose.js";

const ROOT = join(import.meta.dirname, "..", "..");

it("docs/errors.md is current (if not: npx tsx scripts/errors-docs.ts)", () => {
  expect(readFileSync(join(ROOT, "docs", "errors.md"), "utf8")).toBe(errorsDocs());
});

it("every code that is thrown has a row in the table", () => {
  const thrown = sources().flatMap(({ text }) =>
    [...text.matchAll(/\bnew MailroomError(?:<[^>]*>)?\(\s*"(\w+)"/g)].flatMap(([, code]) => code ?? []),
  );
  expect(thrown.filter((code) => !Object.hasOwn(ERRORS, code))).toEqual([]);
});

it("every row of the table is used", () => {
  const used = sources()
    .filter(({ file }) => !file.endsWith("error-table.ts"))
    .map(({ text }) => text)
    .join("\n");
  expect(Object.keys(ERRORS).filter((code) => !used.includes(`"${code}"`))).toEqual([]);
});

it("a server says for every temporary failure when to retry", () => {
  const rows: [string, ErrorRow][] = Object.entries(PUBLIC_ERRORS);
  const wrong = rows.filter(
    ([, { kind, retryAfter }]) =>
      (kind === "unavailable" || kind === "limited") !== (retryAfter !== undefined),
  );
  expect(wrong).toEqual([]);
});

it("meanings and remedies are sentences", () => {
  const rows: [string, ErrorRow][] = Object.entries(ERRORS);
  for (const [code, { meaning, remedy }] of rows) {
    for (const text of [meaning, remedy]) expect(text, code).toMatch(/^[A-Z`].*\.$/);
  }
});

function sources(): { file: string; text: string }[] {
  return [...filesBelow(join(ROOT, "src"), /(?<!\.test)\.ts$/)].map((file) => ({
    file,
    text: readFileSync(file, "utf8"),
  }));
}
