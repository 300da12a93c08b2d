/** Mailroom: two model agents, with a model of the AI SDK that is given in code. */

import { setTimeout as sleep } from "node:timers/promises";
import type { LanguageModel } from "ai";
import { defineAction, defineAgent, defineSwarm, Mailroom, modelAgent } from "../../src/index.js";
import { type Contender, FORECAST, QUESTION, type Surroundings, TOOL_TIME, TOOLS } from "./contender.js";

type Model = Extract<LanguageModel, { readonly specificationVersion: "v3" }>;
type ToolCall = readonly [tool: string, args: object];
type Prompt = Parameters<Model["doGenerate"]>[0]["prompt"];

const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

export async function open({ directory, fsync }: Surroundings): Promise<Contender> {
  let modelTime = 0;
  let calls = 0;
  const model = (answer: (prompt: Prompt) => readonly ToolCall[]): Model => ({
    specificationVersion: "v3",
    provider: "instant",
    modelId: "instant",
    supportedUrls: {},
    doStream: () => Promise.reject(new Error("nothing is streamed")),
    doGenerate: async ({ prompt }) => {
      const start = performance.now();
      const content = answer(prompt).map(([toolName, args]) => ({
        type: "tool-call" as const,
        toolCallId: `call_${++calls}`,
        toolName,
        input: JSON.stringify(args),
      }));
      modelTime += performance.now() - start;
      return {
        content,
        finishReason: { unified: "tool-calls", raw: "tool_calls" },
        usage: USAGE,
        warnings: [],
      };
    },
  });
  const look = defineAction({
    name: "look",
    description: "Looks something up.",
    parameters: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
    run: async ({ what }) => {
      await sleep(TOOL_TIME);
      return `found ${String(what)}`;
    },
  });
  const mailroom = await Mailroom.open({
    data: directory,
    durability: fsync ? "fsync" : "fast",
    swarm: defineSwarm({
      name: "bench",
      entrypoint: "supervisor",
      agents: [
        defineAgent({
          name: "supervisor",
          enableEntrypoint: true,
          canCompleteTasks: true,
          commTargets: ["weather"],
          run: modelAgent({
            system: "Ask weather, then finish.",
            llm: model((prompt) =>
              prompt.some(({ role }) => role === "assistant")
                ? [["task_complete", { finish_message: FORECAST }]]
                : [["send_request", { target: "weather", subject: "Forecast", body: QUESTION }]],
            ),
          }),
        }),
        defineAgent({
          name: "weather",
          commTargets: ["supervisor"],
          run: modelAgent({
            system: "Answer with the forecast.",
            llm: model(() => [
              ["send_response", { target: "supervisor", subject: "Re: Forecast", body: FORECAST }],
            ]),
          }),
        }),
        defineAgent({
          name: "researcher",
          enableEntrypoint: true,
          canCompleteTasks: true,
          actions: [look],
          run: modelAgent({
            system: "Look everything up, then finish.",
            llm: model((prompt) =>
              prompt.some(({ role }) => role === "assistant")
                ? [["task_complete", { finish_message: FORECAST }]]
                : Array.from({ length: TOOLS }, (_, n): ToolCall => ["look", { what: `${n}` }]),
            ),
          }),
        }),
      ],
    }),
  });
  return {
    run: async (caller) => (await mailroom.user(`user-${caller}`).ask(QUESTION)).response,
    runTools: async () =>
      (await mailroom.user("researching").ask(QUESTION, { entrypoint: "researcher" })).response,
    modelTime: () => modelTime,
    close: async () => void (await mailroom.close()),
  };
}
