/** A server that is killed while a model writes an answer. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { MailClient, type TaskEvent, tokenOf, WrittenTexts } from "../../src/client/index.js";
import { ModelServer } from "../agents/kit/model-server.js";
import { reply } from "../agents/kit/swarm.js";
import { freePort } from "../kit/free-port.js";
import { folder, type Started, serve } from "./cli.js";

const OLD = "Some old answer that is never finished.";
const NEW = "Another answer, which is the right one.";

it("[AGT-STREAM-06] the answer arrives once, and nothing of the unfinished one is left", {
  timeout: 180_000,
}, async () => {
  let seeAgain = (): void => {};
  const seenAgain = new Promise<void>((resolve) => {
    seeAgain = resolve;
  });
  // The first answer is never finished, and the second one when its beginning was seen.
  const model = await ModelServer.start((_, count) => ({
    ...reply.finish(count === 1 ? OLD : NEW),
    pauseAfter: 3,
    until: count === 1 ? new Promise(() => {}) : seenAgain,
  }));
  await using here = await folder();
  const cwd = here.path;
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
  const swarm = [{ name: "desk", version: "1.0.0", entrypoint: "desk", agents: [desk] }];
  await writeFile(join(cwd, "swarms.json"), JSON.stringify(swarm));
  const port = String(await freePort());
  const start = () => serve(["--dev", "--port", port], { cwd });
  let server: Started = await start();
  const client = new MailClient(server.url, {
    token: "user:ann",
    reconnects: 200,
    retries: 200,
    retryPause: 20,
  });
  const texts = new WrittenTexts();
  const seen: TaskEvent[] = [];
  const grown: string[] = [];
  let restarted: Promise<void> | undefined;
  try {
    for await (const event of client.postMessageStream("?", { taskId: "t" })) {
      const token = tokenOf(event);
      if (token === undefined) {
        seen.push(event);
        continue;
      }
      const { text = "" } = texts.add(token) ?? {};
      grown.push(text);
      if (text !== "" && NEW.startsWith(text)) seeAgain();
      restarted ??= (async () => {
        await server[Symbol.asyncDispose]();
        server = await start();
      })();
    }
    await restarted;
    expect(restarted).toBeDefined();
    expect(OLD.startsWith(grown[0] ?? "none")).toBe(true);
    expect(texts.all).toMatchObject([{ tool: "task_complete", text: NEW }]);
    const answers = seen.filter(({ data }) => data.response !== undefined);
    expect(answers.map(({ data }) => data.response)).toEqual([NEW]);
    expect(seen).toEqual((await client.getTask("t")).events);
  } finally {
    seeAgain();
    await restarted?.catch(() => {});
    await server[Symbol.asyncDispose]();
    await model.close();
  }
});
