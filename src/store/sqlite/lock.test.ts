import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { acquireLock } from "./lock.js";
import { openSqliteStore } from "./open.js";

/** Opens the store in a process of its own, prints the result in one line, and holds it until told to stop. */
const CHILD = `
  const { openSqliteStore } = await import(process.argv[1]);
  try {
    const store = await openSqliteStore({ directory: process.argv[2] });
    console.log(JSON.stringify({ held: true }));
    process.stdin.once("data", () => store.close().then(() => process.exit(0)));
  } catch (error) {
    console.log(JSON.stringify({ held: false, code: error.code, message: error.message }));
    process.exit(0);
  }
`;

describe("the lock of a data directory", () => {
  let directory: string;
  const children: ChildProcess[] = [];
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "mailroom-lock-"));
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
    rmSync(directory, { recursive: true });
  });

  async function openInChild() {
    const module = new URL("./open.ts", import.meta.url).href;
    const child = spawn(
      process.execPath,
      ["--import", "tsx", "--input-type=module", "-e", CHILD, "--", module, directory],
      { stdio: ["pipe", "pipe", "inherit"] },
    );
    children.push(child);
    const [line] = await once(createInterface({ input: child.stdout }), "line");
    const answer: { held: boolean; code?: string; message?: string } = JSON.parse(String(line));
    return { child, answer };
  }

  it("rejects a second process at once and names the holder", async () => {
    const { child, answer } = await openInChild();
    expect(answer).toEqual({ held: true });
    const refused = openSqliteStore({ directory });
    await expect(refused).rejects.toMatchObject({
      code: "store_locked",
      details: {
        holder: { pid: child.pid, host: hostname(), started: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) },
      },
    });
    await expect(refused).rejects.toThrow(
      new RegExp(`held by process ${child.pid} on ${hostname()}, started 2`),
    );
  });

  it("is free as soon as its holder is killed", async () => {
    const { child } = await openInChild();
    child.kill("SIGKILL");
    await once(child, "exit");
    const store = await openSqliteStore({ directory });
    await store.close();
  });

  it("is free after its holder closed the store", async () => {
    const { child } = await openInChild();
    child.stdin?.write("stop\n");
    await once(child, "exit");
    const store = await openSqliteStore({ directory });
    await store.close();
  });

  it("rejects a second store in the same process, and still excludes other processes", async () => {
    const store = await openSqliteStore({ directory });
    const refused = openSqliteStore({ directory });
    await expect(refused).rejects.toMatchObject({
      code: "store_locked",
      details: { holder: { pid: process.pid } },
    });
    // On Unix, closing another descriptor of the file would have dropped the process's lock by now.
    expect((await openInChild()).answer).toMatchObject({
      held: false,
      code: "store_locked",
      message: expect.stringContaining(`process ${process.pid} on`),
    });
    await store.close();
    expect((await openInChild()).answer).toEqual({ held: true });
  });

  it("can be held by the caller instead", async () => {
    const lock = acquireLock(join(directory, "lock"));
    await expect(openSqliteStore({ directory })).rejects.toMatchObject({ code: "store_locked" });
    const store = await openSqliteStore({ directory, lock: false });
    await store.close();
    lock.release();
    lock.release();
    await (await openSqliteStore({ directory })).close();
  });
});
