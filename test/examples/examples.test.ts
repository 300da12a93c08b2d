/** Every example is a program that checks itself; here each one is run as a user would run it. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const EXAMPLES = join(ROOT, "examples");
const directory = mkdtempSync(join(tmpdir(), "mailroom-examples-"));

afterAll(() => rmSync(directory, { recursive: true, force: true }));

const names = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

describe("examples", () => {
  it("each have a program", () => {
    expect(names.filter((name) => !existsSync(join(EXAMPLES, name, "main.ts")))).toEqual([]);
  });

  for (const name of names) {
    it(`${name} runs`, async () => {
      const tsx = join(ROOT, "node_modules", ".bin", "tsx");
      // Away from the clone, so that an example that needs its working directory is noticed.
      const child = spawn(tsx, [join(EXAMPLES, name, "main.ts")], {
        cwd: directory,
        // With scripts: what a model says cannot be checked.
        env: { ...process.env, NO_COLOR: "1", OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "", LLM: "" },
      });
      let output = "";
      child.stdout.on("data", (chunk) => {
        output += chunk;
      });
      child.stderr.on("data", (chunk) => {
        output += chunk;
      });
      child.stdin.end();
      const code = await new Promise((done) => child.on("close", done));
      expect({ code, output }).toMatchObject({ code: 0 });
    });
  }
});
