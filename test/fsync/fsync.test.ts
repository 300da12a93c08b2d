/**
 * fsync really happens before an acknowledgement is given (decision C6). Killing the process cannot show that (its
 * writes stay in the kernel's cache), so the test traces the system calls.
 *
 * Needs strace and the right to trace. Where these are missing the test is skipped with the reason, except in CI.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Durability } from "../../src/store/index.js";
import { type Call, judge, readTrace, type Verdict } from "./trace.js";

const COMMITS = 20 + 200 + 10 * 50;
const CALLS = "trace=write,writev,pwrite64,pwritev,fsync,fdatasync,rename";

const missing = whatIsMissing();

describe.skipIf(missing !== undefined && process.env.CI !== "true")(
  `fsync before the acknowledgement${missing === undefined ? "" : ` (${missing})`}`,
  () => {
    let root: string;
    beforeAll(() => {
      if (missing !== undefined) throw new Error(missing);
      root = realpathSync(mkdtempSync(join(tmpdir(), "mailroom-fsync-")));
    });
    afterAll(() => {
      if (root !== undefined) rmSync(root, { recursive: true });
    });

    it("has synced every write to the log when a commit resolves", () => {
      const verdict = traceWriter(root, "fsync");
      expect(verdict).toMatchObject({ acknowledged: COMMITS, tooEarly: 0 });
      // Each of the commits that were made one after another needed a sync of its own.
      expect(verdict.syncs).toBeGreaterThanOrEqual(220 + 10);
      expect(verdict.writtenBack).toBeGreaterThan(0);
    });

    it("would be noticed if it were not so: with `fast` commits resolve before the sync", () => {
      const verdict = traceWriter(root, "fast");
      expect(verdict.acknowledged).toBe(COMMITS);
      expect(verdict.tooEarly).toBeGreaterThan(COMMITS / 2);
    });

    it("has synced the registry of swarms before its new file takes the place of the old, and its folder then", () => {
      const folder = join(root, "registry");
      mkdirSync(folder);
      const registry = join(folder, "registry.json");
      const calls = trace(root, "registry", new URL("./registrar.ts", import.meta.url), [registry]);
      expect(JSON.parse(readFileSync(registry, "utf8")).endpoints).toHaveProperty("beta");
      const fate = calls
        .filter(({ file, result }) => file.startsWith(folder) && result >= 0)
        .map(({ name, file }) => `${name} ${file.replace(/\.\d+\.tmp$/, ".tmp")}`);
      const once = [
        `write ${registry}.tmp`,
        `fsync ${registry}.tmp`,
        `rename ${registry}.tmp`,
        `fsync ${folder}`,
      ];
      // Once for each swarm that was registered.
      expect(fate).toEqual([...once, ...once]);
    });
  },
);

function traceWriter(root: string, durability: Durability): Verdict {
  const marks = join(root, `${durability}.marks`);
  return judge(
    trace(root, durability, new URL("./writer.ts", import.meta.url), [
      join(root, durability),
      durability,
      marks,
    ]),
    marks,
  );
}

function trace(root: string, name: string, program: URL, args: readonly string[]): Call[] {
  const output = join(root, `${name}.trace`);
  const traced = [process.execPath, "--import", "tsx", fileURLToPath(program), ...args];
  const { status, stderr } = spawnSync(
    "strace",
    ["-f", "-y", "-s", "16", "-e", CALLS, "-o", output, ...traced],
    { encoding: "utf8" },
  );
  expect(status, stderr).toBe(0);
  return readTrace(readFileSync(output, "utf8"));
}

function whatIsMissing(): string | undefined {
  if (process.platform !== "linux") return "strace exists on Linux only";
  const works = () => spawnSync("strace", ["-f", "-o", "/dev/null", "true"], { encoding: "utf8" });
  let probe = works();
  const absent = probe.error !== undefined;
  if (absent && process.getuid?.() === 0) {
    spawnSync("apt-get", ["install", "--yes", "--no-install-recommends", "strace"], { timeout: 50_000 });
    probe = works();
  }
  if (probe.error !== undefined) return "strace is not installed";
  return probe.status === 0 ? undefined : `strace may not trace here: ${probe.stderr.trim()}`;
}
