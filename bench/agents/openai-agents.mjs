/** The OpenAI Agents SDK, which keeps a run in memory only. */
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, handoff, Runner, setTracingDisabled, tool, Usage } from "@openai/agents";

const QUESTION = "What is the weather in Tokyo?";
const FORECAST = "sunny, 21 °C";
const TOOLS = 6;
const TOOL_TIME = 500;
const TEXT = (name) => ({
  type: "object",
  properties: { [name]: { type: "string" } },
  required: [name],
  additionalProperties: false,
});

export async function open() {
  setTracingDisabled(true);
  let modelTime = 0;
  let calls = 0;

  const model = (answer) => ({
    async getResponse({ input }) {
      const start = performance.now();
      const output = answer(input).map(([name, args]) => ({
        type: "function_call",
        callId: `call_${++calls}`,
        name,
        status: "completed",
        arguments: JSON.stringify(args),
      }));
      modelTime += performance.now() - start;
      return {
        usage: new Usage({ requests: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 }),
        output,
      };
    },
    getStreamedResponse() {
      throw new Error("nothing is streamed");
    },
  });

  const finish = tool({
    name: "finish",
    description: "Ends the task.",
    parameters: TEXT("finish_message"),
    strict: true,
    execute: async ({ finish_message: text }) => text,
  });
  const supervisor = new Agent({
    name: "supervisor",
    instructions: "Ask weather, then finish.",
    tools: [finish],
    toolUseBehavior: { stopAtToolNames: ["finish"] },
    model: model((input) =>
      Array.isArray(input) && input.some(({ type }) => type === "function_call")
        ? [["finish", { finish_message: FORECAST }]]
        : [["ask_weather", { body: QUESTION }]],
    ),
  });
  const weather = new Agent({
    name: "weather",
    instructions: "Answer with the forecast.",
    handoffs: [
      handoff(supervisor, { toolNameOverride: "respond", inputType: TEXT("body"), onHandoff: () => {} }),
    ],
    model: model(() => [["respond", { body: FORECAST }]]),
  });
  supervisor.handoffs.push(
    handoff(weather, { toolNameOverride: "ask_weather", inputType: TEXT("body"), onHandoff: () => {} }),
  );
  const look = tool({
    name: "look",
    description: "Looks something up.",
    parameters: TEXT("what"),
    strict: true,
    execute: async ({ what }) => {
      await sleep(TOOL_TIME);
      return `found ${what}`;
    },
  });
  const researcher = new Agent({
    name: "researcher",
    instructions: "Look everything up, then finish.",
    tools: [look, finish],
    toolUseBehavior: { stopAtToolNames: ["finish"] },
    model: model((input) =>
      Array.isArray(input) && input.some(({ type }) => type === "function_call")
        ? [["finish", { finish_message: FORECAST }]]
        : Array.from({ length: TOOLS }, (_, n) => ["look", { what: `${n}` }]),
    ),
  });
  const runner = new Runner({ tracingDisabled: true });

  return {
    run: async () => (await runner.run(supervisor, QUESTION)).finalOutput,
    runTools: async () => (await runner.run(researcher, QUESTION)).finalOutput,
    modelTime: () => modelTime,
    close: async () => {},
  };
}
