/** A server in its own process, and the commands that reach it. */
import { stat, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/base/index.js";
import { MailClient } from "../../src/client/index.js";
import { openStore } from "../../src/store/index.js";
import { ASKING_SWARM } from "./breakpoint-swarm.js";
import { folder, run, serve } from "./cli.js";

describe("mailroom server", { timeout: 180_000 }, () => {
  it("creates an admin token at its first start, stores nothing readable by others, and stops cleanly", async () => {
    await using here = await folder();
    const cwd = here.path;
    await using first = await serve([], { cwd });
    expect(first.facts.data).toBe(join(cwd, ".mailroom", "demo"));
    const token = first.facts.admin_token ?? "";
    expect(token).toMatch(/^mr_/);
    const admin = new MailClient(first.url, { token });
    expect(await admin.whoami()).toEqual({ role: "admin", id: "root" });
    await expect(new MailClient(first.url).whoami()).rejects.toMatchObject({ status: 401 });
    expect((await stat(first.facts.data)).mode & 0o777).toBe(0o700);
    expect((await stat(join(first.facts.data, "control.sock"))).mode & 0o777).toBe(0o600);

    first.child.kill("SIGTERM");
    expect(await first.ended).toMatchObject({ code: 0 });

    await using second = await serve([], { cwd });
    expect(second.facts.admin_token).toBeUndefined();
    expect(await new MailClient(second.url, { token }).whoami()).toMatchObject({ role: "admin" });
  });

  it("creates its admin token at the first successful start", async () => {
    await using here = await folder();
    const cwd = here.path;
    await using other = await serve(["--dev", "--data", join(cwd, "other")], { cwd });
    const failed = await run(["server", "--port", new URL(other.url).port], { cwd });
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("in use") });
    await using server = await serve([], { cwd });
    const token = server.facts.admin_token ?? "";
    expect(await new MailClient(server.url, { token }).whoami()).toMatchObject({ role: "admin" });
  });

  it("a first start with an unusable swarm file leaves no data directory behind", async () => {
    await using here = await folder();
    const cwd = here.path;
    const agents = [
      { name: "desk", factory: "module:./missing.js#agent", comm_targets: [], enable_entrypoint: true },
    ];
    await writeFile(
      join(cwd, "swarms.json"),
      JSON.stringify([{ name: "desk", version: "1.2.0", entrypoint: "desk", agents }]),
    );
    const failed = await run(["server", "--dev", "--port", "0", "--swarm-source", "swarms.json"], { cwd });
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("missing.js") });
    await expect(stat(join(cwd, ".mailroom"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("waits for a command that has the data open, and says so, but not for another server", async () => {
    await using here = await folder();
    const cwd = here.path;
    const data = join(cwd, "data");
    // Like a command that reads the store.
    const store = await openStore({ directory: data });
    const waiting = deferred<void>();
    const starting = serve(["--dev", "--data", data], { cwd }, (line) => {
      if (line.includes(`process ${process.pid} `) && line.includes("waiting")) waiting.resolve();
    });
    await Promise.race([waiting.promise, starting]);
    await store.close();
    await using server = await starting;
    expect(await new MailClient(server.url).ping()).toMatchObject({ status: "running" });

    const second = await run(["server", "--dev", "--port", "0", "--data", data], { cwd });
    expect(second).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`is held by process ${server.child.pid} `),
    });
    expect(second.stderr).not.toContain("waiting");
  });

  it("recovers running tasks after a kill", async () => {
    await using here = await folder();
    const cwd = here.path;
    await writeFile(join(cwd, "swarms.json"), ASKING_SWARM);
    const first = await serve(["--dev"], { cwd });
    const posted = await new MailClient(first.url).postMessage("wait", { wait: false });
    expect(posted.status).toBe("running");
    await first[Symbol.asyncDispose]();
    await using second = await serve(["--dev"], { cwd });
    expect(second.facts.recovered).toBe(1);
  });

  it("reports the reason when it cannot start", async () => {
    await using here = await folder();
    const cwd = here.path;
    await using running = await serve(["--dev"], { cwd });
    const locked = await run(["server", "--dev", "--port", "0"], { cwd });
    expect(locked.code).toBe(1);
    expect(locked.stderr).toContain(`process ${running.child.pid} `);

    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve));
    const { port } = blocker.address() as AddressInfo;
    const args = ["server", "--dev", "--data", join(cwd, "other"), "--port", String(port)];
    const taken = await run(args, { cwd });
    blocker.close();
    expect(taken.code).toBe(1);
    expect(taken.stderr).toContain(`port ${port} on 127.0.0.1 is in use`);
    expect(taken.stderr).toContain("--port 0");

    await writeFile(join(cwd, "bad.json"), '[{ "name": "x" }]');
    const bad = await run(["server", "--swarm", "bad.json"], { cwd });
    expect(bad.code).toBe(1);
    expect(bad.stderr).toContain("bad.json is not a valid swarm file");

    const open = await run(["server", "--dev", "--host", "0.0.0.0"], { cwd });
    expect(open.code).toBe(2);
    expect(open.stderr).toContain("this machine only");
    for (const { stderr } of [locked, taken, bad, open]) expect(stderr).not.toContain("    at ");
  });

  it.skipIf(process.platform !== "linux")(
    "fails at once where no directory can be created (Linux only: needs /proc)",
    async () => {
      await using here = await folder();
      const cwd = here.path;
      const data = "/proc/mailroom/data";
      const agent = ["--agent-id", "ann", "--endpoint", "https://ann.example.com/swarm"];
      for (const args of [
        ["server", "--port", "0", "--data", data],
        ["token", "create", "--role", "user", "--id", "ann", "--data", data],
        ["mesh", "init", ...agent, "--data", data],
        ["init", data],
      ]) {
        const refused = await run(args, { cwd });
        expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("/proc/mailroom") });
        expect(refused.stderr).toContain("ENOENT");
        expect(refused.stderr).not.toContain("    at ");
      }
    },
  );

  it("stops immediately at the second signal", async () => {
    await using here = await folder();
    const cwd = here.path;
    const agent = { name: "a", factory: "module:./a.mjs#a", comm_targets: [] };
    const rights = { enable_entrypoint: true, can_complete_tasks: true };
    const swarm = { name: "stuck", version: "1", entrypoint: "a", agents: [{ ...agent, ...rights }] };
    await writeFile(join(cwd, "swarms.json"), JSON.stringify([swarm]));
    await writeFile(join(cwd, "a.mjs"), "export const a = { run: () => new Promise(() => {}) };\n");
    await using server = await serve(["--dev"], { cwd });
    await new MailClient(server.url).postMessage("never answered", { wait: false });
    const stopping = new Promise<void>((resolve) => {
      server.child.stderr.on("data", (chunk) => {
        if (String(chunk).includes("Ctrl-C again")) resolve();
      });
    });
    server.child.kill("SIGINT");
    await stopping;
    server.child.kill("SIGINT");
    expect(await server.ended).toMatchObject({ code: 130 });
  });

  it("reloads a changed swarm file with --reload, and reports failures", async () => {
    await using here = await folder();
    const cwd = here.path;
    const file = join(cwd, "swarms.json");
    await writeFile(file, ASKING_SWARM);
    await using server = await serve(["--dev", "--reload"], { cwd });
    const client = new MailClient(server.url);
    const said = (text: string) =>
      new Promise<void>((resolve) => {
        server.child.stderr.on("data", (chunk) => {
          if (String(chunk).includes(text)) resolve();
        });
      });
    expect(await client.postMessage("hello")).toMatchObject({ response: "You said: hello" });
    const reloaded = said("reloaded");
    await writeFile(file, ASKING_SWARM.replace("You said:", "I heard:"));
    await reloaded;
    expect(await client.postMessage("hello")).toMatchObject({ response: "I heard: hello" });
    const refused = said("not reloaded");
    await writeFile(file, "[]");
    await refused;
    expect(await client.postMessage("hello")).toMatchObject({ response: "I heard: hello" });
  });
});

describe("mailroom token", { timeout: 180_000 }, () => {
  it("works through a running server, and a revoked token is rejected at once", async () => {
    await using here = await folder();
    const cwd = here.path;
    await using server = await serve([], { cwd });
    const made = await run(["token", "create", "--role", "user", "--id", "ann", "--label", "laptop"], {
      cwd,
    });
    expect(made.code).toBe(0);
    const token = made.stdout.trim();
    const env = { MAILROOM_TOKEN: token };
    const whoami = await run(["client", server.url, "whoami", "--json"], { cwd, env });
    expect(JSON.parse(whoami.stdout)).toEqual({ role: "user", id: "ann" });

    const listed = await run(["token", "list", "--json"], { cwd });
    const { tokens } = JSON.parse(listed.stdout);
    expect(tokens).toContainEqual(expect.objectContaining({ role: "user", id: "ann", label: "laptop" }));
    expect(listed.stdout).not.toContain(token);

    expect((await run(["token", "revoke", token], { cwd })).code).toBe(0);
    const refused = await run(["client", server.url, "whoami"], { cwd, env });
    expect(refused.code).toBe(4);
    expect(refused.stderr).toContain("token");
    expect(refused.stderr).not.toContain(token);
    const unknown = await run(["token", "revoke", "nonsense"], { cwd });
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("no such token") });
  });

  it("works on the store without a server, and reading creates nothing", async () => {
    await using here = await folder();
    const cwd = here.path;
    const nothing = await run(["token", "list"], { cwd });
    expect(nothing).toMatchObject({ code: 1, stderr: expect.stringContaining("no data in") });
    await expect(stat(join(cwd, ".mailroom"))).rejects.toThrow();
    const made = await run(["token", "create", "--role", "admin", "--id", "ops", "--json"], { cwd });
    const { token } = JSON.parse(made.stdout);
    await using server = await serve([], { cwd });
    // The first admin token is created only without other tokens.
    expect(server.facts.admin_token).toBeUndefined();
    expect(await new MailClient(server.url, { token }).whoami()).toEqual({ role: "admin", id: "ops" });
  });
});

describe("mailroom tasks", { timeout: 180_000 }, () => {
  it("lists, shows, follows, answers and cancels on a running server, and reads the store after it has stopped", async () => {
    await using here = await folder();
    const cwd = here.path;
    await writeFile(join(cwd, "swarms.json"), ASKING_SWARM);
    await using server = await serve(["--dev"], { cwd });
    const ann = new MailClient(server.url, { token: "user:ann" });
    await ann.postMessage("hello", { taskId: "done" });
    await ann.postMessage("please ask", { taskId: "asks" });
    await ann.postMessage("wait", { taskId: "slow", wait: false });

    const listed = await run(["tasks", "list", "--json"], { cwd });
    const { tasks } = JSON.parse(listed.stdout);
    expect(tasks.map(({ task_id, status }: Record<string, string>) => [task_id, status])).toEqual([
      ["slow", "running"],
      ["asks", "paused"],
      ["done", "completed"],
    ]);
    const running = await run(["tasks", "list", "--status", "paused"], { cwd });
    expect(running.stdout.trim().split("\n")).toHaveLength(1);

    const shown = await run(["tasks", "show", "done"], { cwd });
    expect(shown.stdout).toContain("ann → desk  request");
    expect(shown.stdout).toContain("✓ completed\n    You said: hello");

    const stranger = await run(["tasks", "answer", "asks", "yes"], { cwd });
    expect(stranger).toMatchObject({ code: 1, stderr: expect.stringContaining("--as user:ann") });
    const answered = await run(["tasks", "answer", "asks", "take one", "--as", "user:ann"], { cwd });
    expect(answered).toMatchObject({ code: 0, stdout: expect.stringContaining("They said: take one") });

    const following = run(["tasks", "follow", "slow", "--json"], { cwd });
    expect((await run(["tasks", "cancel", "slow"], { cwd })).code).toBe(0);
    const followed = await following;
    expect(followed.code).toBe(5);
    const ids = followed.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).id);
    expect(new Set(ids).size).toBe(ids.length);
    expect((await run(["tasks", "cancel", "slow"], { cwd })).stderr).toContain("409");
    expect((await run(["tasks", "show", "nowhere"], { cwd })).stderr).toContain("unknown task 'nowhere'");

    server.child.kill("SIGINT");
    expect(await server.ended).toMatchObject({ code: 0 });
    const later = await run(["tasks", "show", "slow", "--json"], { cwd });
    expect(JSON.parse(later.stdout).events.map(({ id }: { id: string }) => id)).toEqual(ids);
    for (const late of [
      await run(["tasks", "cancel", "done"], { cwd }),
      await run(["tasks", "answer", "done", "yes"], { cwd }),
    ]) {
      expect(late).toMatchObject({
        code: 3,
        stderr: expect.stringContaining("a running server is required"),
      });
    }
  });

  it("shows a remote caller only its own tasks", async () => {
    await using here = await folder();
    const cwd = here.path;
    await using server = await serve(["--dev"], { cwd });
    await new MailClient(server.url, { token: "user:ann" }).postMessage("What is 1 + 1?", { taskId: "mine" });
    const list = (token: string) =>
      run(["tasks", "list", "--url", server.url, "--token", token, "--json"], { cwd });
    expect(JSON.parse((await list("user:ann")).stdout).tasks).toHaveLength(1);
    expect(JSON.parse((await list("user:bob")).stdout).tasks).toEqual([]);
  });
});
