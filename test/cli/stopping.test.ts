/** A server that is stopped while its store is not writable, and one whose store fails. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { EXIT, explain } from "../../src/cli/exit.js";
import { MailClient } from "../../src/client/index.js";
import { until } from "../federation/until.js";
import { served } from "../kit/served.js";
import { ASKING_SWARM } from "./breakpoint-swarm.js";
import { serve } from "./cli.js";

function data(): string {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-stopping-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

describe("stopping a server", { timeout: 120_000 }, () => {
  it("with a store that is not writable reports the loss, with its own exit code", async () => {
    const directory = data();
    const { running, url } = await served(ASKING_SWARM, "", directory);
    const ann = new MailClient(url, { token: "user:ann", retries: 0 });
    await ann.postMessage("wait", { taskId: "t", wait: false });
    const other = new Database(join(running.dataDirectory ?? "", "mailroom.db"));
    other.exec("BEGIN IMMEDIATE");
    const cancelling = ann.cancelTask("t").catch(() => "cut");
    await until(async () => (await ann.getHealth()).status === "degraded");
    const error = await running.close(0).catch((cause: unknown) => cause);
    other.exec("ROLLBACK");
    other.close();
    expect(explain(error)).toMatchObject({ exit: EXIT.unwritten, code: "unwritten" });
    expect(explain(error).message).toMatch(/locked.*: \d+ results are lost/);
    expect(await cancelling).toBe("cut");

    // No acknowledged data is lost.
    await using again = await served(ASKING_SWARM, "", directory);
    const task = await new MailClient(again.url, { token: "user:ann" }).getTask("t");
    expect(task.status).toBe("running");
  });

  it("is not necessary after its data directory is removed: it reports the loss and exits", async () => {
    const cwd = data();
    await using server = await serve(["--dev", "--data", join(cwd, "data")], { cwd });
    rmSync(join(cwd, "data"), { recursive: true });
    const ann = new MailClient(server.url, { retries: 0 });
    let over = false;
    const ended = server.ended.finally(() => {
      over = true;
    });
    await until(async () => {
      await ann.postMessage("hello").catch(() => {});
      return over;
    });
    const { code, stderr } = await ended;
    expect(code).toBe(EXIT.storeFailed);
    expect(stderr.match(/the store failed/g)).toHaveLength(1);
    expect(stderr).toContain("Restore a backup");
  });
});
