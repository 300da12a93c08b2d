/** `mailroom conversations follow` in its own process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { ConversationClient, type ConversationEvent, MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { command, folder, serve } from "../cli/cli.js";

interface Following extends AsyncDisposable {
  /** The next line of output. */
  line(): Promise<string>;
  /** Sends the signal of Ctrl-C. */
  interrupt(): Promise<{ readonly code: number | null; readonly stderr: string }>;
}

async function follow(cwd: string, args: readonly string[]): Promise<Following> {
  const [program = "", ...rest] = await command(["conversations", "follow", ...args]);
  const child = spawn(program, rest, { cwd, env: { PATH: process.env.PATH ?? "", HOME: cwd } });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += String(chunk);
  });
  const closed = once(child, "close");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    line: async () => {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`the command exited: ${stderr}`);
      return value;
    },
    interrupt: async () => {
      child.kill("SIGINT");
      const [code] = await closed;
      return { code, stderr };
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await closed;
    },
  };
}

async function nextEvent(following: Following): Promise<ConversationEvent> {
  return JSON.parse(await following.line());
}

it("mailroom conversations follow prints events as they happen, continues after any event, and exits on request", async () => {
  await using here = await folder();
  const cwd = here.path;
  await writeFile(join(cwd, "swarms.json"), ASKING_SWARM);
  await using server = await serve(["--dev"], { cwd });
  const ann = await ConversationClient.connect(server.url, { token: "user:ann" });
  const lunch = await ann.create({ subject: "lunch" });
  const dinner = await ann.create({ subject: "dinner" });
  const first = await ann.say(lunch.id, "Soup?");
  const created = await firstEvent(ann, lunch.id);

  // From the beginning of one conversation only. Having read this far, the command is live.
  await using one = await follow(cwd, [lunch.id, "--json", "--after", created]);
  const told: ConversationEvent[] = [];
  while (told.at(-1)?.type !== "mail.turn.added") told.push(await nextEvent(one));
  expect(told.at(-1)?.data).toMatchObject({ turn: { id: first.id } });
  await ann.say(dinner.id, "Fish?");
  const second = await ann.say(lunch.id, "Salad?");
  const next = await nextEvent(one);
  expect(next).toMatchObject({ type: "mail.turn.added", data: { turn: { id: second.id } } });
  await ann.closeConversation(lunch.id);
  expect(await nextEvent(one)).toMatchObject({ type: "mail.closed", source: "user:ann" });
  expect(await one.interrupt()).toEqual({ code: 0, stderr: "" });

  // All conversations as text after an event: includes tasks, and repeats nothing.
  await new MailClient(server.url, { token: "user:ann" }).postMessage("hello");
  await using all = await follow(cwd, ["--after", next.id]);
  const lines: string[] = [];
  while (!lines.includes("desk: You said: hello")) lines.push(await all.line());
  expect(lines[0]).toContain(`mail.closed  ${lunch.id}`);
  expect(lines).toContain("user:ann: hello");
  expect(lines.join("\n")).not.toMatch(/Soup|Fish|Salad/);

  // The command reports that the server is gone.
  server.child.kill("SIGKILL");
  await expect(
    (async () => {
      for (;;) await all.line();
    })(),
  ).rejects.toThrow("the connection is lost");
  ann.close();
}, 60_000);

/** The id of a conversation's first event. */
async function firstEvent(client: ConversationClient, conversationId: string): Promise<string> {
  const { events } = await client.request("map/replay", { filter: { mail: { conversationId } }, limit: 1 });
  return events[0]?.eventId ?? "";
}
