/** `mailroom conversations` and `mailroom map`, with a server in its own process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "./breakpoint-swarm.js";
import { command, folder, run, serve } from "./cli.js";

const HELLO =
  `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "map/connect", params: { protocolVersion: 1 } })}\n` +
  `${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "mail/create", params: { subject: "lunch" } })}\n`;

describe("conversations on the command line", { timeout: 180_000 }, () => {
  it("shows conversations of tasks and others, through the control socket and by URL", async () => {
    await using here = await folder();
    const cwd = here.path;
    await writeFile(join(cwd, "swarms.json"), ASKING_SWARM);
    await using server = await serve(["--dev"], { cwd });
    await new MailClient(server.url, { token: "user:ann" }).postMessage("wait", { wait: false });

    const stdio = await run(["map", "--stdio", "--as", "user:ann"], { cwd, input: HELLO });
    expect({ code: stdio.code, stderr: stdio.stderr }).toEqual({ code: 0, stderr: "" });
    const frames = stdio.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(frames[0].result.participantId).toBe("user:ann");
    expect(frames[1].result.conversation.subject).toBe("lunch");

    const listed = await run(["conversations", "list", "--json"], { cwd });
    const { conversations } = JSON.parse(listed.stdout);
    expect(conversations).toMatchObject([
      { type: "user-session", createdBy: "user:ann" },
      { subject: "lunch", createdBy: "user:ann" },
    ]);
    const [task] = conversations;
    const shown = await run(["conversations", "show", task.id], { cwd });
    expect(shown.stdout).toContain("user:ann: wait");
    const elsewhere = ["--url", server.url, "--token", "user:bob"];
    expect(
      JSON.parse((await run(["conversations", "list", "--json", ...elsewhere], { cwd })).stdout),
    ).toMatchObject({
      conversations: expect.not.arrayContaining([expect.objectContaining({ id: task.id })]),
    });
    // A hidden conversation looks like one that does not exist.
    for (const words of [
      ["show", task.id, ...elsewhere],
      ["show", "nope"],
      ["follow", "nope"],
    ]) {
      const unknown = await run(["conversations", ...words], { cwd });
      expect(unknown.code).toBe(1);
      expect(unknown.stderr).toContain(`unknown conversation '${words[1]}'`);
      expect(unknown.stderr).not.toContain("10000");
    }

    const [, lunch] = conversations;
    const manage = (...words: string[]) => run(["conversations", ...words], { cwd });
    expect(JSON.parse((await manage("export", lunch.id)).stdout)).toMatchObject({
      conversation: { subject: "lunch" },
      participants: [{ id: "user:ann" }],
    });
    expect((await manage("archive", lunch.id)).stdout).toBe(`archived ${lunch.id}\n`);
    expect((await manage("show", lunch.id)).stdout).toContain("archived");
    expect(await manage("delete", lunch.id)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--yes"),
    });
    expect((await manage("delete", lunch.id, "--yes")).stdout).toBe(`deleted ${lunch.id}\n`);
    expect((await manage("show", lunch.id)).code).toBe(1);
    expect((await manage("observers", "--grant", "user:bob")).stdout).toBe("user:bob\n");
    expect((await manage("observers", "--revoke", "user:bob")).stdout).toBe("");
  });

  it("reports a lost connection and the requests without an answer", async () => {
    await using here = await folder();
    const cwd = here.path;
    await writeFile(join(cwd, "swarms.json"), ASKING_SWARM);
    await using server = await serve(["--dev"], { cwd });
    const large = JSON.stringify({
      jsonrpc: "2.0",
      id: 3,
      method: "mail/create",
      params: { subject: "x".repeat(1_100_000) },
    });
    const long = await run(["map", "--stdio"], { cwd, input: `${HELLO}${large}\n` });
    expect(long.code).toBe(1);
    expect(long.stderr).toContain("a line exceeded the server's size limit; requests without an answer: ");

    const [program = "", ...args] = await command(["map", "--stdio"]);
    const child = spawn(program, args, { cwd, env: { PATH: process.env.PATH ?? "", HOME: cwd } });
    const stderr = text(child.stderr);
    const ended = once(child, "close");
    child.stdin.write(HELLO);
    await once(child.stdout, "data");
    server.child.kill("SIGKILL");
    expect((await ended)[0]).toBe(3);
    expect(await stderr).toContain("the connection ended with code 1006");
  });

  it("serves the data directory itself if no server does", async () => {
    await using here = await folder();
    const cwd = here.path;
    const first = await run(["map", "--stdio"], { cwd, input: HELLO });
    expect({ code: first.code, lines: first.stdout.trim().split("\n").length }).toEqual({
      code: 0,
      lines: 2,
    });
    const none = await run(["conversations", "list"], { cwd });
    expect(none.code).toBe(3);
    expect(none.stderr).toContain(`no server runs on ${join(cwd, ".mailroom", "demo")}`);
    const nowhere = await run(["conversations", "list", "--url", "http://127.0.0.1:9"], { cwd });
    expect(nowhere.code).toBe(3);
  });
});
