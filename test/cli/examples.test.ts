/** Examples check themselves; here they only run. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

it.each(["ask-a-person", "conversation"])("%s", { timeout: 180_000 }, async (name) => {
  const args = ["--import", import.meta.resolve("tsx"), `examples/${name}/main.ts`, "--check"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  expect(stdout).not.toBe("");
});
