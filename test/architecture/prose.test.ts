import { resolve } from "node:path";
import { expect, it } from "vitest";
import { proseFindings } from "./prose.js";

const ROOT = resolve(import.meta.dirname, "../..");
const FOLDERS = ["src", "test", "docs", "examples", "conformance", "bench", "scripts"];

/** These list the phrases. */
const LISTS = ["docs/style.md", "test/architecture/prose.ts"];

it("no text uses a phrase that docs/style.md rules out", () => {
  const findings = proseFindings(ROOT, FOLDERS).filter(({ file }) => !LISTS.includes(file));
  expect(findings.map(({ file, line, phrase }) => `${file}:${line} ${phrase}`)).toEqual([]);
});
