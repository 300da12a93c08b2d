import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { configurationDocs } from "./docs.js";
import { describeSettings } from "./load.js";

it("docs/configuration.md is current (if not: npx tsx scripts/config-docs.ts)", () => {
  const file = new URL("../../docs/configuration.md", import.meta.url);
  expect(readFileSync(file, "utf8")).toBe(configurationDocs());
});

it("the documentation names every setting, its variables and flags", () => {
  const docs = configurationDocs();
  for (const { key, env, flag } of describeSettings().rows) {
    const [name] = key.split(".").slice(-1);
    for (const word of [name, ...env, ...(flag?.names ?? [])]) expect(docs).toContain(`\`${word}\``);
  }
});
