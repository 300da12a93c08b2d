/** What the configuration lets actions and models do, in a server as users start it. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { ModelServer } from "../agents/kit/model-server.js";
import { reply } from "../agents/kit/swarm.js";
import { served } from "../kit/served.js";

const clerk = {
  name: "clerk",
  comm_targets: [],
  enable_entrypoint: true,
  can_complete_tasks: true,
};

const reader = JSON.stringify([
  {
    name: "files",
    version: "1.0.0",
    entrypoint: "clerk",
    agents: [
      {
        ...clerk,
        factory: "mail:scripted",
        actions: ["read_file"],
        agent_params: {
          rules: [
            { when: { result: "read_file" }, do: [{ task_complete: "{{result}}" }] },
            { do: [{ act: { name: "read_file", args: { path: "{{body}}" } } }] },
          ],
        },
      },
    ],
    action_imports: ["mail:fs/read_file"],
  },
]);

it("[AGT-ACT-09] file actions have the roots of the configuration, and none without", async () => {
  const root = await mkdtemp(join(tmpdir(), "mailroom-root-"));
  const file = join(root, "note.txt");
  await writeFile(file, "remember the milk");
  {
    await using server = await served(reader, `[actions]\nfile_roots = ["${root}"]\n`);
    const ann = new MailClient(server.url, { token: "user:ann" });
    expect((await ann.postMessage(file)).response).toContain("remember the milk");
  }
  await using server = await served(reader);
  const ann = new MailClient(server.url, { token: "user:ann" });
  expect((await ann.postMessage(file)).response).not.toContain("remember the milk");
  await rm(root, { recursive: true });
});

it("[AGT-MODEL-19] turns cost what the configuration says", async () => {
  const models = await ModelServer.start(() => ({
    ...reply.finish("done"),
    usage: { input: 1_500, output: 50 },
  }));
  const params = { llm: "vllm/test", base_url: models.url, system: "" };
  const swarm = [
    {
      name: "thinking",
      version: "1.0.0",
      entrypoint: "clerk",
      agents: [{ ...clerk, factory: "mail:agent", agent_params: params }],
    },
  ];
  {
    const prices = '[models.prices]\n"vllm/test" = { input = 2000, output = 10000 }\n';
    await using server = await served(JSON.stringify(swarm), prices);
    const answer = await server.running.mailroom.user("ann").ask("hello", { taskId: "t" });
    expect(answer.response).toBe("done");
    const task = await server.running.mailroom.user("ann").requireTask("t");
    const costs: (number | undefined)[] = [];
    for await (const { entry } of task.journal()) if (entry.t === "turn") costs.push(entry.usage?.cost);
    expect(costs).toEqual([3.5]);
  }
  await models.close();
});
