import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { REQUIREMENTS } from "./index.js";
import { FINISHED } from "./requirement.js";

const ROOT = resolve(import.meta.dirname, "..");

function cited(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const folder of ["src", "test"]) {
    for (const name of readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })) {
      if (!name.endsWith(".test.ts")) continue;
      const text = readFileSync(join(ROOT, folder, name), "utf8");
      for (const [, ids = ""] of text.matchAll(/\[((?:[A-Z]+-[A-Z]+-\d+(?:, )?)+)\]/g)) {
        for (const id of ids.split(", ")) found.set(id, [...(found.get(id) ?? []), `${folder}/${name}`]);
      }
    }
  }
  return found;
}

describe("requirements", () => {
  const citations = cited();

  it("have unique ids", () => {
    const ids = REQUIREMENTS.map(({ id }) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  it("of finished parts are each cited by a test", () => {
    const finished = REQUIREMENTS.filter(({ part }) => FINISHED.includes(part));
    expect(finished.filter(({ id }) => !citations.has(id)).map(({ id, rule }) => `${id}: ${rule}`)).toEqual(
      [],
    );
  });

  it("that tests cite exist", () => {
    const known = new Set(REQUIREMENTS.map(({ id }) => id));
    const unknown = [...citations].filter(([id]) => !known.has(id));
    expect(unknown).toEqual([]);
  });
});
