/** Usage and budgets on the command line, with a real server and real commands. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { folder, run, type Started, serve } from "./cli.js";

/** Each message causes two calls of a model, unless a limit stops the second. */
const AGENTS = `
export const desk = {
  async run(mail) {
    for (const calls of [1, 2]) {
      await mail.beginCall({ model: "own", inputTokens: 100, cost: 0.25 });
      mail.reportUsage({ model: "own", calls, inputTokens: calls * 100, outputTokens: calls * 10, cost: calls * 0.25 });
    }
    mail.complete("done");
  },
};
`;

const SWARM = [
  {
    name: "counting",
    version: "1.0.0",
    entrypoint: "desk",
    agents: [
      {
        name: "desk",
        factory: "module:./agents.mjs#desk",
        comm_targets: [],
        enable_entrypoint: true,
        can_complete_tasks: true,
      },
    ],
  },
];

let here: Awaited<ReturnType<typeof folder>>;
let server: Started;
let ann: MailClient;
beforeAll(async () => {
  here = await folder();
  const cwd = here.path;
  await writeFile(join(cwd, "swarms.json"), JSON.stringify(SWARM));
  await writeFile(join(cwd, "agents.mjs"), AGENTS);
  await writeFile(join(cwd, "mail.toml"), "[budgets]\ntask = { max_calls = 10 }\n");
  server = await serve(["--dev", "--port", "0"], { cwd });
  ann = new MailClient(server.url, { token: "user:ann" });
  const paused = await ann.postMessage("go", { taskId: "t", kwargs: { budget: { max_calls: 1 } } });
  expect(paused).toMatchObject({ status: "paused", reason: "budget" });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await here[Symbol.asyncDispose]();
});

const tasks = (...args: string[]) => run(["tasks", ...args], { cwd: here.path });

async function ok(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await tasks(...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

it("tasks list, show and budget have what a task used, and its limits", async () => {
  const limits = await ok("budget", "t");
  expect(limits).toContain("limits of the owner: max_calls 1");
  expect(limits).toContain("limits of the operator: max_calls 10");
  expect(await ok("list")).toMatch(/110|0\.25/);
  expect(await ok("show", "t")).toMatch(/1 (?:model )?call/);
});

it("tasks budget refuses wrong numbers and other owners, and changes nothing", async () => {
  const wrong = await tasks("budget", "t", "--max-calls", "-1", "--as", "user:ann");
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("--max-calls") });
  expect((await tasks("budget", "t", "--max-calls", "9", "--as", "user:bob")).code).not.toBe(0);
  expect((await ann.getTask("t")).status).toBe("paused");
});

it("[AGT-BUDGET-08] tasks budget raises a limit with the owner's token, and the task continues", async () => {
  const there = ["--url", server.url, "--token", "user:ann", "--json"];
  const raised = await ok("budget", "t", "--max-calls", "5", ...there);
  expect(JSON.parse(raised)).toMatchObject({ task_id: "t", budget: { owner: { max_calls: 5 } } });
  for await (const { data } of ann.taskEvents("t", { live: "round" })) if (data.status === "completed") break;
  const [task] = JSON.parse(await ok("list", ...there)).tasks;
  expect(task).toMatchObject({ task_id: "t", status: "completed", usage: { calls: 3 } });
});
