/** Commands without a server: help, versions, files, usage errors. */

import { execFile } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { catalog } from "../../src/server/catalog.js";
import { settingFlags } from "../../src/settings/index.js";
import { folder, run } from "./cli.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const examples = join(root, "schemas", "examples");

describe("mailroom", { timeout: 180_000 }, () => {
  it("without a command shows the help", async () => {
    await using here = await folder();
    const { code, stdout } = await run([], { cwd: here.path });
    expect(code).toBe(0);
    for (const word of [
      "demo",
      "server",
      "client",
      "tasks",
      "swarms",
      "token",
      "validate",
      "init",
      "config",
    ]) {
      expect(stdout).toContain(`\n  ${word}`);
    }
    expect(stdout).toContain("Exit codes");
  });

  it.each([
    [["sevrer"], "sevrer"],
    [["server", "--prot", "80"], "--prot"],
    [["ping"], "url"],
    [["token", "create", "--role", "user"], "--id"],
    [["token", "create", "--role", "king", "--id", "ann"], "unknown role 'king'"],
    [["tasks", "list", "--status", "lost"], "must be one of running"],
    [["ping", "ftp://example.com"], "not an http(s) URL"],
    [["ping", "http://127.0.0.1:1", "--timeout", "soon"], "not a number of seconds"],
  ])("%j is invalid usage: exit code 2 with a reason", async (args, reason) => {
    await using here = await folder();
    const { code, stderr } = await run(args, { cwd: here.path });
    expect(code).toBe(2);
    expect(stderr).toContain(reason);
    expect(stderr).not.toContain("    at ");
  });

  it("shows its version and the protocol's", async () => {
    await using here = await folder();
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    for (const word of ["version", "--version"]) {
      const { stdout } = await run([word, "--json"], { cwd: here.path });
      expect(JSON.parse(stdout)).toMatchObject({ mailroom: version, protocol: "1.2" });
      expect((await run([word], { cwd: here.path })).stdout).toContain(`mailroom ${version} (MAIL 1.2`);
    }
  });

  it("has a flag for every setting that declares one, old spellings included", async () => {
    await using here = await folder();
    for (const command of ["server", "client"] as const) {
      const { stdout } = await run([command, "--help"], { cwd: here.path });
      for (const { names, short } of settingFlags(catalog, command)) {
        // The client's URL is its argument.
        if (names[0] !== "--url") expect(stdout).toContain(names[0]);
        if (short !== undefined && short.length === 2) expect(stdout).toContain(`${short}, `);
      }
    }
  });

  it("an unbuilt checkout explains how to build it", async () => {
    await using here = await folder();
    await mkdir(join(here.path, "bin"));
    await cp(join(root, "bin", "mailroom.js"), join(here.path, "bin", "mailroom.mjs"));
    const failure = await promisify(execFile)(process.execPath, [
      join(here.path, "bin", "mailroom.mjs"),
    ]).catch((error) => error);
    expect(failure).toMatchObject({ code: 1 });
    expect(failure.stderr).toContain("npm run build");
  });
});

describe("mailroom validate", { timeout: 180_000 }, () => {
  it("detects swarm files and both kinds of messages by content", async () => {
    await using here = await folder();
    const good = ["core-request.json", "core-broadcast.json", "interswarm-request.json"];
    const files = good.map((name) => join(examples, "good", name));
    const { code, stdout } = await run(["validate", "--json", ...files], { cwd: here.path });
    expect(code).toBe(0);
    const verdicts = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(verdicts.map(({ kind }) => kind)).toEqual(["message", "message", "interswarm message"]);
    expect(verdicts.every(({ valid }) => valid)).toBe(true);
  });

  it("lists all problems with their positions, and fails", async () => {
    await using here = await folder();
    const swarms = [
      {
        name: "s",
        version: "1",
        entrypoint: "a",
        agents: [{ name: "a", comm_target: [], factory: "mail:scriptd" }],
      },
    ];
    await writeFile(join(here.path, "swarms.json"), JSON.stringify(swarms, undefined, 1));
    await writeFile(join(here.path, "broken.json"), '{ "swarms": [');
    await writeFile(join(here.path, "other.json"), '{ "a": 1 }');
    const bad = join(examples, "bad", "core-envelope-without-id.json");
    const { code, stdout } = await run(
      ["validate", "swarms.json", "broken.json", "other.json", "missing.json", bad],
      { cwd: here.path },
    );
    expect(code).toBe(1);
    expect(stdout).toContain("comm_target");
    expect(stdout).toMatch(/broken\.json {2}unknown\n {2}1:\d+/);
    expect(stdout).toContain("neither a swarm file nor a MAIL message");
    expect(stdout).toContain("cannot read the file");
    expect(stdout.match(/^bad /gm)).toHaveLength(5);
  });

  it("reads standard input", async () => {
    await using here = await folder();
    const input = await readFile(join(examples, "good", "core-response.json"), "utf8");
    const { code, stdout } = await run(["validate", "-"], { cwd: here.path, input });
    expect(stdout).toContain("ok");
    expect(code).toBe(0);
  });
});

describe("mailroom config", { timeout: 180_000 }, () => {
  it("shows the effective settings and their sources, without secrets", async () => {
    await using here = await folder();
    await writeFile(join(here.path, "mail.toml"), "[server]\nport = 9001\n");
    const env = { MAILROOM_HOST: "::1", OPENAI_API_KEY: "sk-very-secret" };
    const { code, stdout } = await run(["config", "--json", "--changed"], { cwd: here.path, env });
    expect(code).toBe(0);
    const { settings } = JSON.parse(stdout);
    expect(settings).toContainEqual({ key: "server.host", value: "::1", source: "MAILROOM_HOST" });
    expect(settings).toContainEqual(
      expect.objectContaining({
        key: "server.port",
        value: "9001",
        source: expect.stringMatching(/mail\.toml:2$/),
      }),
    );
    expect(stdout).not.toContain("sk-very-secret");
  });

  it("rejects a mistyped key and suggests the right one", async () => {
    await using here = await folder();
    await writeFile(join(here.path, "mail.toml"), "[server]\nprot = 9001\n");
    const { code, stderr } = await run(["config"], { cwd: here.path });
    expect(code).toBe(1);
    expect(stderr).toContain("port");
  });
});
