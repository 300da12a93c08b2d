/** A swarm with model agents in a process that can be killed and restarted on the same data. */
import { appendFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { defineAction, defineAgent, defineSwarm, Mailroom, modelAgent } from "../../src/index.js";

export interface ChildOptions {
  readonly data: string;
  /** URL of the model server. */
  readonly env: Readonly<Record<string, string>>;
  readonly llm: string;
  readonly toolFormat: "completions" | "responses";
  /** The action that never ends in this process. */
  readonly hold?: string;
  /** The owner's limit. */
  readonly maxCalls?: number;
}

const options: ChildOptions = JSON.parse(process.argv[2] ?? "{}");

function action(name: string, idempotent: boolean) {
  return defineAction({
    name,
    description: name,
    parameters: { type: "object", properties: { item: { type: "string" } }, required: ["item"] },
    idempotent,
    // One after the other: a kill then meets exactly one of them.
    parallel: false,
    run: async ({ item }, { callId }) => {
      appendFileSync(join(options.data, "effects.log"), `${name} ${callId}\n`);
      if (options.hold === name) {
        writeSync(1, `HELD ${name}\n`);
        await new Promise(() => {});
      }
      return `${name} of ${String(item)}`;
    },
  });
}

const environment = { env: options.env, backoff: { base: 1, factor: 1, cap: 1, jitter: 0 } };
const mind = (system: string) =>
  modelAgent({ llm: options.llm, toolFormat: options.toolFormat, system }, environment);

const mailroom = await Mailroom.open({
  data: options.data,
  swarm: defineSwarm({
    name: "office",
    agents: [
      defineAgent({
        name: "head",
        enableEntrypoint: true,
        canCompleteTasks: true,
        commTargets: ["clerk"],
        run: mind("You lead the office."),
      }),
      defineAgent({
        name: "clerk",
        commTargets: ["head"],
        actions: [action("look_up", true), action("reserve", false)],
        run: mind("You keep the stock."),
      }),
    ],
  }),
});
const alive = setInterval(() => {}, 1_000);
const budget = options.maxCalls === undefined ? {} : { budget: { maxCalls: options.maxCalls } };
const ann = mailroom.user("ann");
const task = (await ann.task("t")) ?? (await ann.post("How are we?", { taskId: "t", ...budget })).task;
for await (const _event of task.events({ live: "round" }));
const journal = [];
for await (const { entry } of task.journal()) journal.push(entry);
writeSync(1, `DONE ${JSON.stringify(journal)}\n`);
await mailroom.close({ grace: 0 });
clearInterval(alive);
