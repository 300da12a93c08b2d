/** The client's commands, one at a time and at the prompt. */
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { runCommand } from "../../src/cli/repl/command.js";
import { promptFor } from "../../src/cli/repl/loop.js";
import { findCommand } from "../../src/cli/repl/table.js";
import { processTerminal } from "../../src/cli/terminal.js";
import { MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "./breakpoint-swarm.js";
import { type Folder, folder, run, type Started, serve } from "./cli.js";

let here: Folder;
let server: Started;

beforeAll(async () => {
  here = await folder();
  await writeFile(join(here.path, "swarms.json"), ASKING_SWARM);
  server = await serve(["--dev"], { cwd: here.path });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await here[Symbol.asyncDispose]();
});

const client = (words: readonly string[], input?: string) =>
  run(["client", server.url, ...words], { cwd: here.path, ...(input !== undefined && { input }) });

describe("one command", { timeout: 180_000 }, () => {
  it("message prints the answer as JSON for scripts", async () => {
    const { code, stdout } = await client(["message", "hello", "--task-id", "t-json", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      response: "You said: hello",
      status: "completed",
      task_id: "t-json",
    });
  });

  it("message shows the events, without colors in a pipe", async () => {
    const { stdout } = await client(["m", "hello there", "-s", "Greeting"]);
    expect(stdout).toBe(
      'dev → desk  request  "Greeting"  hello there\n✓ completed\n    You said: hello there\n',
    );
  });

  it("a text needs no quotes, wherever the flags are", async () => {
    for (const name of ["message", "message-stream"]) {
      const { stdout } = await client([name, "hello", "-s", "Greeting", "out", "there"]);
      expect(stdout).toContain("You said: hello out there\n");
    }
  });

  it("message-stream prints one event per line", async () => {
    const { stdout } = await client(["ms", "hello", "--json"]);
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events[0].event).toBe("new_message");
    expect(events.at(-1)).toMatchObject({
      event: "task_complete",
      data: { status: "completed", response: "You said: hello" },
    });
    expect(events.every(({ id }) => typeof id === "string")).toBe(true);
  });

  it("the old flags of the reference still work", async () => {
    const { stdout } = await client(["message", "hello", "-tid", "t-old", "-se", "--json"]);
    const answer = JSON.parse(stdout);
    expect(answer.task_id).toBe("t-old");
    expect(answer.events.length).toBeGreaterThan(0);
    const named = await run(["client", "-ak", "user:zoe", server.url, "whoami"], { cwd: here.path });
    expect(named.stdout).toBe("user:zoe\n");
  });

  it("exit codes show how a task ended", async () => {
    expect((await client(["message", "please fail", "--json"])).code).toBe(5);
    const paused = await client(["message", "please ask", "--task-id", "t-ask"]);
    expect(paused.code).toBe(6);
    expect(paused.stdout).toContain('? desk asks ask_human(question: "Umbrella?")');
    expect(paused.stdout).toContain("task-answer t-ask");
    const answered = await client(["task-answer", "t-ask", "yes"]);
    expect(answered).toMatchObject({ code: 0, stdout: expect.stringContaining("They said: yes") });
  });

  it.each([
    [["mesage", "hi"], "did you mean 'message'?"],
    [["message"], "usage: message BODY"],
    [["message-interswarm", "two", "words", "ann@beta", "token"], "put quotes around texts"],
    [["hello", "there"], 'to send it to the swarm: message "…"'],
    [["message", "hi", "-k", "nonsense"], "is not a JSON object"],
    [["message", "hi", "-t", "letter"], "must be one of request, broadcast, interrupt"],
    [["message", "hi", "--colour"], "--colour"],
  ])("%j is invalid usage", async (words, reason) => {
    const { code, stderr } = await client(words);
    expect(code).toBe(2);
    expect(stderr).toContain(reason);
  });

  it("a token of the wrong role: the hint names the role", async () => {
    const { code, stderr } = await client(["--token", "user:ann", "swarm-dump"]);
    expect(code).toBe(4);
    expect(stderr).toContain("needs a token of another role (admin)");
    expect(stderr).not.toContain("give a token");
  });

  it("a server of another kind is reported without its pages", async () => {
    const page = "<!DOCTYPE html>\n<html><body>Nothing here</body></html>";
    const other = createServer((_, response) => {
      response.writeHead(404, { "content-type": "text/html" }).end(page);
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void other.close());
    const address = other.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    for (const words of [[], ["message", "hi"]]) {
      const { code, stdout, stderr } = await run(["client", `http://127.0.0.1:${address.port}`, ...words], {
        cwd: here.path,
      });
      expect(code).toBe(3);
      expect(stderr).toContain("this does not look like a MAIL server");
      expect(stdout + stderr).not.toContain("<");
    }
  });

  it("errors are JSON with --json", async () => {
    const { code, stderr } = await client(["task-get", "nowhere", "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "unknown_task" } });
  });

  it("no server: exit code 3", async () => {
    const { code, stderr } = await run(["client", "http://127.0.0.1:9", "ping"], { cwd: here.path });
    expect(code).toBe(3);
    expect(stderr).toContain("check that the server at http://127.0.0.1:9 is running");
    expect((await run(["ping", "127.0.0.1:9"], { cwd: here.path })).code).toBe(3);
  });

  it("ping reports the server's health", async () => {
    const { code, stdout } = await run(["ping", server.url], { cwd: here.path });
    expect(code).toBe(0);
    expect(stdout).toContain("healthy: swarm asking");
  });
});

describe("the prompt", { timeout: 180_000 }, () => {
  it("runs line after line, survives errors, and stores no tokens", async () => {
    const lines = [
      "",
      "whoami",
      'message "never closed',
      "nonsense",
      "hello there",
      'm "hello" --task-id t-repl',
      "message hello to all of you",
      "tg t-repl",
      "login user:ann",
      "me",
      "tasks",
      "help message",
      "quit",
      "whoami",
    ];
    const { code, stdout, stderr } = await client([], `${lines.join("\n")}\n`);
    expect(code).toBe(0);
    expect(stdout).toContain("user:dev");
    expect(stdout).toContain("You said: hello");
    expect(stdout).toContain("You said: hello to all of you");
    expect(stdout).toContain("task t-repl  completed  user:dev@asking");
    expect(stdout).toContain("you are user:ann\nuser:ann\nno tasks\n");
    expect(stdout).toContain("message BODY");
    expect(stderr).toMatch(/^swarm asking at .*'message TEXT'.*'help'/);
    expect(stderr).toContain("unclosed quote");
    expect(stderr).toContain('to send it to the swarm: message "…"');
    expect(stderr).toContain("unknown command 'nonsense'");
    const history = await readFile(join(here.path, ".mailroom_history"), "utf8").catch(() => "");
    expect(history).not.toContain("login");
  });

  it("shows the caller's identity, also after a rejected or dropped token", async () => {
    const shown: string[] = [];
    const caller = new MailClient(server.url, { token: "user:ann" });
    const type = (name: string, ...words: readonly string[]) =>
      runCommand(findCommand(name, words), words, {
        client: caller,
        terminal: { ...processTerminal(), out: () => {} },
        json: false,
        verbose: false,
        signal: new AbortController().signal,
        onCaller: (who) => void shown.push(promptFor(server.url, who)),
      });
    const { host } = new URL(server.url);
    await expect(type("login", "nonsense")).rejects.toMatchObject({ status: 401 });
    await type("login", "admin:root");
    await type("logout");
    expect(shown).toEqual([
      `mail::user:dev@${host}> `,
      `mail::admin:root@${host}> `,
      `mail::user:dev@${host}> `,
    ]);
    // The identity of callers without a token.
    expect(await caller.whoami()).toEqual({ role: "user", id: "dev" });
  });
});
