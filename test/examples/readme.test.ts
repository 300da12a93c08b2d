/** What the README prints is what works: its program runs, and its test command is the one that CI runs. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const README = readFileSync(join(ROOT, "README.md"), "utf8");

it("the README's program runs and says what it promises", async () => {
  const program = /```ts\n([\s\S]*?)```/.exec(README)?.[1] ?? "";
  // Beside node_modules, where imports are found; it writes its data into its working directory.
  const cache = join(ROOT, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, "readme-"));
  try {
    const library = JSON.stringify(join(ROOT, "src/index.js"));
    writeFileSync(join(directory, "main.mts"), program.replace('"mailroom"', library));
    const tsx = join(ROOT, "node_modules", ".bin", "tsx");
    const { stdout } = await promisify(execFile)(tsx, ["main.mts"], { cwd: directory });
    expect(stdout).toMatch(/^completed You rolled \d+\.$/m);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

it("CI runs the README's second command", () => {
  const command = /<!-- test-command -->\n```sh\n(.+)\n```/.exec(README)?.[1];
  expect(command).toBe("npm ci && npm test");
  expect(readFileSync(join(ROOT, ".ci/run"), "utf8")).toContain("<!-- test-command -->");
});
