/** The package as users install it: packed, unpacked beside its dependencies, checked and compiled against. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const CONSUMERS = join(ROOT, "test/consumers");
const run = promisify(execFile);

describe("package", () => {
  let folder: string;
  let tarball: string;
  let installed: string;

  beforeAll(async () => {
    // Below node_modules, so that the package finds its dependencies.
    const cache = join(ROOT, "node_modules", ".cache");
    mkdirSync(cache, { recursive: true });
    folder = mkdtempSync(join(cache, "package-"));
    await run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { cwd: ROOT });
    tarball = join(folder, readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "");
    installed = join(folder, "node_modules", "agent-mailroom");
    mkdirSync(installed, { recursive: true });
    await run("tar", ["-xzf", tarball, "--strip-components=1", "-C", installed]);
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("serves metrics as it is built", async () => {
    const data = join(folder, "data");
    const server = spawn(process.execPath, [
      join(installed, "bin", "mailroom.js"),
      ...["server", "--json", "--dev", "--port", "0", "--data", data],
    ]);
    try {
      const [line] = await once(createInterface({ input: server.stdout }), "line");
      const { url } = JSON.parse(String(line));
      const response = await fetch(`${url}/metrics`, { headers: { authorization: "Bearer admin:ann" } });
      expect([response.status, await response.text()]).toEqual([
        200,
        expect.stringContaining("mailroom_rounds_total"),
      ]);
    } finally {
      server.kill("SIGKILL");
    }
  });

  it("passes publint", async () => {
    const { messages, pkg } = await publint({ pkgDir: installed, pack: false, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  it("passes attw", async () => {
    const attw = join(ROOT, "node_modules", ".bin", "attw");
    // Its exit code says whether it found a problem.
    await run(attw, [tarball, "--profile", "esm-only"], { cwd: folder });
  });

  for (const resolution of ["node16", "nodenext", "bundler"]) {
    it(`types compile for a consumer with ${resolution} resolution and without skipLibCheck`, async () => {
      const consumers = join(folder, "consumers");
      cpSync(CONSUMERS, consumers, { recursive: true });
      const tsc = join(ROOT, "node_modules", ".bin", "tsc");
      const compiled = run(tsc, ["-p", join(consumers, resolution)], { cwd: folder });
      await expect(compiled.catch(({ stdout }) => Promise.reject(new Error(stdout)))).resolves.toMatchObject({
        stdout: "",
      });
    });
  }
});
