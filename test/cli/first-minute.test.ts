/** What a newcomer does first. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { folder, run, serve } from "./cli.js";

describe("mailroom demo", { timeout: 180_000 }, () => {
  it("shows agents solving a task, and leaves when told to", async () => {
    await using here = await folder();
    const { code, stdout, stderr } = await run(["demo", "--once", "--port", "0"], { cwd: here.path });
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toContain("supervisor → weather  request");
    expect(stdout).toContain("supervisor → math  request");
    expect(stdout).toContain("math → supervisor  response");
    expect(stdout).toMatch(/✓ completed\n {4}.*= 84\./);
  });

  it("is not confused by a project in the same folder", async () => {
    await using here = await folder();
    await run(["init"], { cwd: here.path });
    const { code, stdout } = await run(["demo", "--once", "--port", "0", "-m", "What is 2 + 2?"], {
      cwd: here.path,
      env: { MAILROOM_SWARM_NAME: "desk" },
    });
    expect(code).toBe(0);
    expect(stdout).toContain("= 4");
  });
});

describe("mailroom init", { timeout: 180_000 }, () => {
  it("writes a project that is valid and works", async () => {
    await using here = await folder();
    expect((await run(["init", "shop", "--name", "shop"], { cwd: here.path })).code).toBe(0);
    const cwd = join(here.path, "shop");
    expect(await run(["validate", "swarms.json"], { cwd })).toMatchObject({ code: 0 });
    await using server = await serve(["--dev"], { cwd });
    const asked = await run(["client", server.url, "message", "Are you open on Sunday?", "--json"], { cwd });
    expect(JSON.parse(asked.stdout)).toMatchObject({ status: "completed", response: "On Sunday: closed" });
  });

  it("overwrites nothing unless told to", async () => {
    await using here = await folder();
    const cwd = here.path;
    await run(["init"], { cwd });
    const again = await run(["init", "--name", "other"], { cwd });
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("--force") });
    expect(await readFile(join(cwd, "swarms.json"), "utf8")).toContain('"desk"');
    expect((await run(["init", "--name", "other", "--force"], { cwd })).code).toBe(0);
    expect(await readFile(join(cwd, "swarms.json"), "utf8")).toContain('"other"');
    expect((await run(["init", "x", "--name", "a b"], { cwd })).code).toBe(2);
  });
});
