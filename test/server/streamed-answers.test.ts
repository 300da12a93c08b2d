/** Answers that are shown while a model writes them, through the protocols of a server. */
import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endsRound, MailClient, type TaskEvent, tokenOf, WrittenTexts } from "../../src/client/index.js";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { ModelServer } from "../agents/kit/model-server.js";
import { reply } from "../agents/kit/swarm.js";
import { startServer } from "../http/harness.js";
import { type Served, served } from "../kit/served.js";

const TEXT = "The first half of the answer, and then the second half of it.";

let model: ModelServer;
let server: Served;
/** Lets the model write the second half of its answer. */
let continueWriting: () => void;

beforeEach(async () => {
  const told = new Promise<void>((resolve) => {
    continueWriting = resolve;
  });
  model = await ModelServer.start(() => ({ ...reply.finish(TEXT), pauseAfter: 3, until: told }));
  const desk = {
    name: "desk",
    factory: "mail:supervisor",
    comm_targets: [],
    enable_entrypoint: true,
    can_complete_tasks: true,
    agent_params: {
      llm: "vllm/some-model",
      base_url: model.url,
      use_proxy: false,
      stream_tokens: true,
      system: "You answer.",
    },
  };
  server = await served(
    JSON.stringify([{ name: "desk", version: "1.0.0", entrypoint: "desk", agents: [desk] }]),
  );
});

afterEach(async () => {
  continueWriting();
  await server[Symbol.asyncDispose]();
  await model.close();
});

describe("a stream of events", () => {
  it("[AGT-STREAM-01] has the answer while it is written, for its owner and for admins", async () => {
    const client = new MailClient(server.url, { token: "user:ann" });
    const admin = new MailClient(server.url, { token: "admin:root" });
    const texts = new WrittenTexts();
    const events: TaskEvent[] = [];
    let halves = 0;
    for await (const event of client.postMessageStream("?", { taskId: "t" })) {
      events.push(event);
      const token = tokenOf(event);
      if (token === undefined) continue;
      expect(event.id).toBeUndefined();
      expect(texts.add(token)).toMatchObject({ agent: "desk", tool: "task_complete" });
      halves++;
      if (halves === 1) {
        // A reader that comes later sees it from the beginning; other users see nothing.
        const { key } = await client.observe.getJournal("t");
        for await (const late of admin.admin.taskEvents(key, { live: true })) {
          const seen = tokenOf(late);
          if (seen === undefined) continue;
          expect(seen).toMatchObject({ offset: 0, attempt: 1 });
          expect(TEXT.startsWith(seen.delta)).toBe(true);
          break;
        }
        const bob = new MailClient(server.url, { token: "user:bob" });
        await expect(bob.taskEvents("t", { live: true }).next()).rejects.toMatchObject({ status: 404 });
        continueWriting();
      }
    }
    expect(texts.all.map(({ text }) => text)).toEqual([TEXT]);
    const last = events.at(-1) ?? expect.fail("there are no events");
    expect(endsRound(last)).toBe(true);
    expect(last.data.response).toBe(TEXT);
    // The journal has no pieces.
    expect((await client.getTask("t")).events).toEqual(events.filter(({ id }) => id !== undefined));
  });
});

it("[AGT-STREAM-07] an MCP client that asks for progress sees the answer grow", async () => {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), {
      requestInit: { headers: { authorization: "Bearer user:ann" } },
    }),
  );
  const heard: string[] = [];
  const result = await client.callTool(
    { name: "post_task", arguments: { message: "?" } },
    {
      onprogress: ({ message = "" }) => {
        heard.push(message);
        if (message.startsWith("desk writes: The first")) continueWriting();
      },
    },
  );
  expect(result.structuredContent).toMatchObject({ status: "completed", response: TEXT });
  const written = heard.filter((message) => message.startsWith("desk writes: "));
  expect(TEXT.startsWith((written[0] ?? "none").slice("desk writes: ".length))).toBe(true);
  await client.close();
});

it("[AGT-STREAM-07] an A2A client sees the answer grow as one artifact", async () => {
  const message = { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "?" }] };
  const response = await fetch(`${server.url}/a2a`, {
    method: "POST",
    headers: {
      authorization: "Bearer user:ann",
      "content-type": "application/json",
      "a2a-version": "1.0",
      accept: "text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendStreamingMessage", params: { message } }),
  });
  const updates: { append: boolean; lastChunk: boolean; id: string; text: string }[] = [];
  let rest = "";
  for await (const chunk of response.body ?? []) {
    const lines = (rest + Buffer.from(chunk).toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      const update = JSON.parse(line.slice("data: ".length)).result?.artifactUpdate;
      if (update === undefined) continue;
      const { artifact, append = false, lastChunk = false } = update;
      updates.push({ append, lastChunk, id: artifact.artifactId, text: artifact.parts[0].text });
      continueWriting();
    }
  }
  expect(updates[0]).toMatchObject({ append: false, lastChunk: false });
  expect(TEXT.startsWith(updates[0]?.text ?? "none")).toBe(true);
  expect(updates.at(-1)).toMatchObject({ append: false, lastChunk: true, text: TEXT });
  expect(new Set(updates.map(({ id }) => id)).size).toBe(1);
  const grown = updates.slice(0, -1).reduce((text, next) => (next.append ? text : "") + next.text, "");
  expect(TEXT.startsWith(grown)).toBe(true);
});

describe("a reader that reads nothing for a while", () => {
  const TURNS = 60;
  const PIECE = "x".repeat(100_000);

  it("[AGT-STREAM-05] loses streamed text at most, and gets every event", async () => {
    const chatty = defineAgent({
      name: "chatty",
      enableEntrypoint: true,
      canCompleteTasks: true,
      commTargets: ["quiet"],
      run: (mail) => {
        mail.emit(PIECE);
        const count = mail.fromType === "agent" ? Number(mail.body) : 0;
        if (count < TURNS) mail.request("quiet", "Next", String(count));
        else mail.complete("done");
      },
    });
    const quiet = defineAgent({
      name: "quiet",
      commTargets: ["chatty"],
      run: (mail) => mail.reply(String(Number(mail.body) + 1)),
    });
    const swarm = defineSwarm({ name: "talk", agents: [chatty, quiet] });
    const limits = { speculation: false, repetition: 0, taskMessages: 0 };
    const harness = await startServer({ room: { swarm, limits } });
    try {
      const text = await new Promise<string>((resolve, reject) => {
        const call = request(
          `${harness.url}/message`,
          {
            method: "POST",
            agent: false,
            headers: { authorization: "Bearer user-token", "content-type": "application/json" },
          },
          (response) => {
            // Reads nothing until the task has ended.
            const alice = harness.mailroom.user("alice");
            const read = async () => {
              const task = await alice.requireTask("t");
              for await (const _ of task.events({ live: "round" }));
              let all = "";
              for await (const chunk of response) all += String(chunk);
              return all;
            };
            read().then(resolve, reject);
          },
        );
        call.on("error", reject);
        call.end(JSON.stringify({ body: "go", task_id: "t", stream: true }));
      });
      const ids = [...text.matchAll(/^id: (\S+)/gm)].map(([, id]) => id);
      const page = await harness.call("/tasks/t", { token: "user-token" });
      const { events } = JSON.parse(page.text);
      expect(ids).toEqual(events.map(({ id }: { id: string }) => id));
      expect(text).toMatch(/event: task_complete\r\n.*\r\ndata: .*"response":"done"/);
      expect(text.length).toBeLessThan(TURNS * PIECE.length);
    } finally {
      await harness.close();
    }
  });
});
