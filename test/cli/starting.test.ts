/** Commands on a data directory that a starting server has open. */
import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/base/index.js";
import { initMesh } from "../../src/mesh/index.js";
import { openStore } from "../../src/store/index.js";
import { folder, run, serve } from "./cli.js";

const HELLO = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "map/connect", params: { protocolVersion: 1 } })}\n`;

const COMMANDS: readonly { readonly args: readonly string[]; readonly input?: string }[] = [
  { args: ["tasks", "list"] },
  { args: ["token", "create", "--role", "user", "--id", "ann"] },
  { args: ["mesh", "status"] },
  { args: ["swarms", "list"] },
  { args: ["conversations", "list"] },
  { args: ["mcp"] },
  { args: ["map", "--stdio"], input: HELLO },
];

/** Runs a command until it says that it waits for `pid`; the caller awaits the rest. */
async function untilItWaits(
  { args, input = "" }: (typeof COMMANDS)[number],
  place: { readonly cwd: string; readonly data: string; readonly pid: number | undefined },
) {
  const { cwd, data, pid } = place;
  const waits = deferred<void>();
  const finished = run([...args, "--data", data], { cwd, input }, (line) => {
    if (line.includes(`process ${pid} `) && line.includes("waiting")) waits.resolve();
  });
  await Promise.race([waits.promise, finished]);
  return { finished };
}

describe("a command on a data directory that is in use", { timeout: 180_000 }, () => {
  // A server that reads its key from a pipe has its store open, and continues when the pipe is written.
  it.skipIf(process.platform === "win32").each(COMMANDS)(
    "mailroom $args.0 waits for a starting server and calls it (not on Windows, which has no such pipes)",
    async (command) => {
      await using here = await folder();
      const cwd = here.path;
      const data = join(cwd, "data");
      initMesh({ directory: data, agentId: "ann", endpoint: "https://ann.example.com/swarm" });
      const pipe = join(cwd, "key.pem");
      await promisify(execFile)("mkfifo", [pipe]);
      const starting = serve(["--data", data], {
        cwd,
        env: { MAILROOM_AUTH_MODE: "token,jwt", MAILROOM_AUTH_JWT_KEY_FILE: pipe },
      });
      const key = await Promise.race([open(pipe, "w"), starting.then(() => undefined)]);
      const holder = JSON.parse(await readFile(join(data, "lock.json"), "utf8"));
      const { finished } = await untilItWaits(command, { cwd, data, pid: holder.pid });
      await key?.writeFile(publicKey());
      await key?.close();
      await using server = await starting;
      expect(server.child.pid).toBe(holder.pid);
      expect(await finished).toMatchObject({ code: 0, stderr: expect.stringContaining("waiting") });
    },
  );

  it.each(COMMANDS.slice(0, 3))("mailroom $args.0 uses the store when it is free again", async (command) => {
    await using here = await folder();
    const cwd = here.path;
    const data = join(cwd, "data");
    initMesh({ directory: data, agentId: "ann", endpoint: "https://ann.example.com/swarm" });
    const store = await openStore({ directory: data });
    const { finished } = await untilItWaits(command, { cwd, data, pid: process.pid });
    await store.close();
    expect(await finished).toMatchObject({ code: 0, stderr: expect.stringContaining("waiting") });
  });

  it("fails after a while and names the process", async () => {
    await using here = await folder();
    const cwd = here.path;
    const data = join(cwd, "data");
    const store = await openStore({ directory: data });
    const [tasks, swarms] = await Promise.all([
      run(["tasks", "list", "--data", data], { cwd }),
      run(["swarms", "list", "--data", data], { cwd }),
    ]);
    expect(tasks).toMatchObject({ code: 1, stderr: expect.stringContaining("is held by process") });
    expect(swarms).toMatchObject({ code: 3, stderr: expect.stringContaining("no server answers on") });
    for (const { stderr } of [tasks, swarms]) {
      expect(stderr).toContain(`process ${process.pid} `);
      expect(stderr).not.toContain("    at ");
    }
    await store.close();
    const free = await run(["swarms", "list", "--data", data], { cwd });
    expect(free).toMatchObject({ code: 3, stderr: expect.stringContaining("no server runs on") });
    expect(free.stderr).not.toContain("waiting");
  });
});

function publicKey(): string {
  const { publicKey: key } = generateKeyPairSync("ed25519");
  return key.export({ type: "spki", format: "pem" }).toString();
}
