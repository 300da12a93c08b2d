/** A new user's first commands. */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { command, folder, run, serve } from "./cli.js";

describe("mailroom demo", { timeout: 180_000 }, () => {
  it("shows agents solving a task, and exits on request", async () => {
    await using here = await folder();
    const { code, stdout, stderr } = await run(["demo", "--once", "--port", "0"], { cwd: here.path });
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toContain("supervisor → weather  request");
    expect(stdout).toContain("supervisor → math  request");
    expect(stdout).toContain("math → supervisor  response");
    expect(stdout).toMatch(/✓ completed\n {4}.*= 84\./);
  });

  it("ends without a terminal, also without a flag", async () => {
    await using here = await folder();
    const { code, stdout } = await run(["demo", "--port", "0"], { cwd: here.path });
    expect(code).toBe(0);
    expect(stdout).toContain("✓ completed");
    expect(stdout).not.toContain("Ctrl-C");
  });

  it("shows the console on a terminal, with a task that waits for an answer", async () => {
    await using here = await folder();
    // `script` gives the command a terminal. Without `exec` some shells stay, and Ctrl-C ends them with 130.
    const words = `exec ${(await command(["demo", "--port", "0"])).map((word) => `'${word}'`).join(" ")}`;
    const child = spawn("script", ["-qefc", words, "/dev/null"], { cwd: here.path });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    try {
      let said = "";
      const url = await new Promise<string>((resolve, reject) => {
        child.stdout.on("data", (text: Buffer) => {
          said += text.toString();
          const page = /(http:\/\/127\.0\.0\.1:\d+)\/console\//.exec(said)?.[1];
          if (page !== undefined && said.includes("Ctrl-C stops")) resolve(page);
        });
        child.once("close", () => reject(new Error(`the demonstration ended: ${said}`)));
      });
      // Every command that it suggests is indented, with the notes in one column.
      const commands = said.split(/\r?\n/).filter((line) => /^ *(?:npx|curl) /.test(line));
      expect(commands).toHaveLength(5);
      for (const line of commands) expect(line).toMatch(/^ {2}\S/);
      const notes = commands.map((line) => line.indexOf("  # ")).filter((column) => column >= 0);
      expect([notes.length, new Set(notes).size]).toEqual([3, 1]);
      const listed = await fetch(`${url}/approvals`);
      expect(await listed.json()).toMatchObject({
        approvals: [{ task_id: "picnic", calls: [{ name: "ask_person" }] }],
      });
      const counts = await fetch(`${url}/tasks/counts`);
      expect(await counts.json()).toMatchObject({ completed: 1, paused: 1 });
      child.stdin.write("\u0003");
      expect(await ended).toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("ignores a project in the same folder", async () => {
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
  it("creates a project that is valid and works", async () => {
    await using here = await folder();
    expect((await run(["init", "shop", "--name", "shop"], { cwd: here.path })).code).toBe(0);
    const cwd = join(here.path, "shop");
    expect(await run(["validate", "swarms.json"], { cwd })).toMatchObject({ code: 0 });
    await using server = await serve(["--dev"], { cwd });
    const asked = await run(["client", server.url, "message", "Are you open on Sunday?", "--json"], { cwd });
    expect(JSON.parse(asked.stdout)).toMatchObject({ status: "completed", response: "On Sunday: closed" });
  });

  it("overwrites nothing without --force", async () => {
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
