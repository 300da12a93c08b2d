/** Summaries by a model, with a configured server and a fake model server that speaks OpenAI's protocol. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConversationClient, MailClient, type NewTurn } from "../../src/client/index.js";
import { ModelServer } from "../agents/kit/model-server.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { type Folder, folder, run, type Started, serve } from "../cli/cli.js";
import { until } from "./harness.js";

const MODEL = "openai/gpt-test";

let model: ModelServer;
let here: Folder;
let server: Started;
const clients: ConversationClient[] = [];

beforeEach(async () => {
  model = await ModelServer.start((_request, count) => ({ text: answer(`Lunch was discussed (${count}).`) }));
  here = await folder();
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await server?.[Symbol.asyncDispose]();
  await model.close();
  await here[Symbol.asyncDispose]();
  expect(model.complaints).toEqual([]);
});

function answer(summary: string): string {
  return JSON.stringify({
    summary,
    keyPoints: ["soup"],
    keyDecisions: ["Soup it is."],
    openQuestions: ["When?"],
  });
}

async function start(settings: string): Promise<void> {
  await writeFile(join(here.path, "swarms.json"), ASKING_SWARM);
  await writeFile(join(here.path, "mail.toml"), `[map]\n${settings}\n`);
  server = await serve(["--dev"], { cwd: here.path, env: model.env });
}

async function connect(token: string): Promise<ConversationClient> {
  const client = await ConversationClient.connect(server.url, { token });
  clients.push(client);
  return client;
}

/** All text that the model received. */
const told = (): string => JSON.stringify(model.requests.map(({ body }) => body));

describe("a configured summary model", { timeout: 60_000 }, () => {
  it("[MAP-METH-12] [MAP-OURS-26] writes one summary for all callers until a public turn is added", async () => {
    await start(`summary_model = "${MODEL}"`);
    const ann = await connect("user:ann");
    const bob = await connect("user:bob");
    const { id } = await ann.create({ subject: "Lunch", initialParticipants: [{ id: "user:bob" }] });
    await ann.say(id, "Soup or salad?");
    await bob.say(id, "Soup it is.");
    const say = (more: Omit<NewTurn, "contentType">) => ann.addTurn(id, { contentType: "text", ...more });
    await say({ content: { text: "the walrus is private" }, visibility: { type: "private" } });
    await say({ content: { text: "the walrus is internal" }, metadata: { internal: true } });

    const all = { keyPoints: true, keyDecisions: true, openQuestions: true };
    const asked = await Promise.all([ann, bob, ann, bob].map((who) => who.summary(id, { include: all })));
    for (const one of asked) {
      expect(one).toMatchObject({
        summary: "Lunch was discussed (1).",
        keyPoints: ["soup"],
        keyDecisions: ["Soup it is."],
        openQuestions: ["When?"],
        _meta: { summariser: MODEL },
      });
    }
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]?.newest).toContain("Soup it is.");
    expect(model.requests[0]?.headers.authorization).toBe("Bearer sk-openai-secret");

    expect(await bob.summary(id)).toMatchObject({ generated: false, _meta: { summariser: MODEL } });
    await say({ content: { text: "the walrus again" }, visibility: { type: "private" } });
    expect((await bob.summary(id)).generated).toBe(false);
    await bob.say(id, "At noon.");
    expect(await ann.summary(id)).toMatchObject({ generated: true, summary: "Lunch was discussed (2)." });
    expect(model.requests[1]?.newest).toContain("At noon.");
    expect((await ann.summary(id, { regenerate: true })).summary).toBe("Lunch was discussed (3).");
    expect(told()).not.toContain("walrus");

    // Summaries are stored in the journal: a restarted server does not ask the model.
    for (const client of clients.splice(0)) client.close();
    await server[Symbol.asyncDispose]();
    server = await serve(["--dev"], { cwd: here.path, env: model.env });
    expect(await (await connect("user:ann")).summary(id)).toMatchObject({
      generated: false,
      summary: "Lunch was discussed (3).",
    });
    expect(model.requests).toHaveLength(3);
  });

  it("[MAP-OURS-26] that fails or returns nonsense is replaced by a marked fallback, and asked again the next time", async () => {
    await start(`summary_model = "${MODEL}"`);
    const ann = await connect("user:ann");
    const { id } = await ann.create({ subject: "Lunch" });
    await ann.say(id, "We agreed on soup.");
    const standIn = {
      generated: true,
      summary: expect.stringContaining("We agreed on soup."),
      keyDecisions: ["We agreed on soup."],
      _meta: { summariser: "extractive", fallback: "model_failed" },
    };
    const ask = () => ann.summary(id, { include: { keyDecisions: true } });
    model.model = () => ({ status: 400, message: "no such model" });
    expect(await ask()).toMatchObject(standIn);
    model.model = () => ({ text: "Here is your summary: soup." });
    expect(await ask()).toMatchObject(standIn);
    model.model = () => ({ text: '{"summary": "", "keyPoints": "soup"}' });
    expect(await ask()).toMatchObject(standIn);
    model.model = () => ({ text: `\`\`\`json\n${answer("Soup.")}\n\`\`\`` });
    expect(await ask()).toMatchObject({ generated: true, summary: "Soup.", _meta: { summariser: MODEL } });
    expect(await ask()).toMatchObject({ generated: false, summary: "Soup." });
    for (const client of clients.splice(0)) client.close();
    server.child.kill("SIGTERM");
    const { stderr } = await server.ended;
    expect(stderr.split("\n").filter((line) => line.includes("returned no summary"))).toHaveLength(3);
    expect(stderr).not.toContain("soup");
    expect(stderr).not.toContain("sk-openai-secret");
  });

  it("[MAP-OURS-26] that keeps failing gets one fallback in the journal, which never replaces its own summary", async () => {
    await start(`summary_model = "${MODEL}"`);
    const ann = await connect("user:ann");
    const { id } = await ann.create({ subject: "Lunch" });
    await ann.say(id, "We agreed on soup.");
    const events = await ann.follow({ conversationId: id });
    const working = model.model;
    model.model = () => ({ status: 400, message: "no such model" });
    for (let n = 0; n < 3; n++) expect((await ann.summary(id))._meta?.fallback).toBe("model_failed");
    model.model = working;
    const { summary } = await ann.summary(id);
    model.model = () => ({ status: 400, message: "no such model" });
    expect((await ann.summary(id, { regenerate: true }))._meta?.fallback).toBe("model_failed");
    expect(await ann.summary(id)).toMatchObject({ generated: false, summary });
    await ann.say(id, "Enjoy.");
    const told: unknown[] = [];
    for await (const { type, data } of events) {
      if (type === "mail.summary.generated") told.push(data.summary);
      if (type === "mail.turn.added") break;
    }
    expect(told).toEqual([expect.stringContaining("We agreed on soup."), summary]);
  });

  it("[MAP-METH-05] [MAP-OURS-26] does not delay joins, which return its summary if there is one", async () => {
    await start(`summary_model = "${MODEL}"\nsummary_timeout = "10m"`);
    const ann = await connect("user:ann");
    const { id } = await ann.create({ subject: "Lunch" });
    await ann.say(id, "We agreed on soup.");
    const join = async (name: string) => {
      const newcomer = await connect(`user:${name}`);
      const catchUp = { includeSummary: true };
      return (await newcomer.request("mail/join", { conversationId: id, catchUp })).summary;
    };
    const working = model.model;
    model.model = () => ({ silent: true });
    expect(await join("bob")).toContain("We agreed on soup.");
    expect(model.requests).toHaveLength(0);
    model.model = working;
    const { summary } = await ann.summary(id);
    expect(summary).toContain("Lunch was discussed");
    model.model = () => ({ silent: true });
    expect(await join("cleo")).toBe(summary);
    expect(model.requests).toHaveLength(1);
  });

  it("[MAP-OURS-26] that never answers delays no other request, and is abandoned after its time limit", async () => {
    await start(`summary_model = "${MODEL}"\nsummary_timeout = "4s"`);
    model.model = () => ({ silent: true });
    const ann = await connect("user:ann");
    const { id } = await ann.create();
    await ann.say(id, "We agreed on soup.");
    let answered = 0;
    const pending = Array.from({ length: 12 }, async (_, n) => {
      const other = n === 0 ? id : (await ann.create({ subject: `${n}` })).id;
      const result = await ann.summary(other);
      answered++;
      return result._meta?.fallback;
    });
    await until(() => model.requests.length >= 8);
    // Requests beyond the eighth were answered immediately; the others wait, and the connection still works.
    await until(() => answered >= 4);
    expect((await ann.say(id, "And bread.")).participant).toBe("user:ann");
    const fallbacks = await Promise.all(pending);
    expect(fallbacks.filter((why) => why === "model_busy")).toHaveLength(4);
    expect(fallbacks.filter((why) => why === "model_failed")).toHaveLength(8);
  });

  it("[MAP-OURS-26] does not delay the server's shutdown", async () => {
    await start(`summary_model = "${MODEL}"\nsummary_timeout = "10m"`);
    model.model = () => ({ silent: true });
    const ann = await connect("user:ann");
    const { id } = await ann.create();
    const refused = expect(ann.summary(id)).rejects.toMatchObject({ code: "connection_lost" });
    await until(() => model.requests.length === 1);
    server.child.kill("SIGTERM");
    const { code, stderr } = await server.ended;
    await refused;
    expect({ code, stderr: stderr.includes("failed") }).toEqual({ code: 0, stderr: false });
  });

  it("[MAP-OURS-26] summarizes tasks for their owners, and no outdated summary is kept", async () => {
    await start(`summary_model = "${MODEL}"`);
    const mail = new MailClient(server.url, { token: "user:ann" });
    await mail.postMessage("hello");
    const ann = await connect("user:ann");
    const { value: task } = await ann.list().next();
    const id = task?.id ?? "";
    expect(await ann.summary(id)).toMatchObject({ summary: "Lunch was discussed (1).", generated: true });
    expect(await ann.summary(id)).toMatchObject({ summary: "Lunch was discussed (1).", generated: false });
    expect(model.requests[0]?.newest).toContain("You said: hello");
    const bob = await connect("user:bob");
    await expect(bob.summary(id)).rejects.toMatchObject({ number: 10000 });
    await ann.say(id, "again");
    expect((await ann.summary(id)).generated).toBe(true);
    expect(model.requests.at(-1)?.newest).toContain("again");
  });

  it("that does not exist stops the start with a reason", async () => {
    await writeFile(join(here.path, "mail.toml"), '[map]\nsummary_model = "gpt"\n');
    const { code, stderr } = await run(["server", "--dev", "--port", "0"], { cwd: here.path });
    expect(code).not.toBe(0);
    expect(stderr).toContain("map.summary_model: 'gpt' names no provider");
    await start("");
  });
});
