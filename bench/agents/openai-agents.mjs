/** The OpenAI Agents SDK, which keeps a run in memory only. */
import { Agent, handoff, Runner, setTracingDisabled, tool, Usage } from "@openai/agents";

const QUESTION = "What is the weather in Tokyo?";
const FORECAST = "sunny, 21 °C";
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
      const [name, args] = answer(input);
      const callId = `call_${++calls}`;
      modelTime += performance.now() - start;
      return {
        usage: new Usage({ requests: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 }),
        output: [
          { type: "function_call", callId, name, status: "completed", arguments: JSON.stringify(args) },
        ],
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
        ? ["finish", { finish_message: FORECAST }]
        : ["ask_weather", { body: QUESTION }],
    ),
  });
  const weather = new Agent({
    name: "weather",
    instructions: "Answer with the forecast.",
    handoffs: [
      handoff(supervisor, { toolNameOverride: "respond", inputType: TEXT("body"), onHandoff: () => {} }),
    ],
    model: model(() => ["respond", { body: FORECAST }]),
  });
  supervisor.handoffs.push(
    handoff(weather, { toolNameOverride: "ask_weather", inputType: TEXT("body"), onHandoff: () => {} }),
  );
  const runner = new Runner({ tracingDisabled: true });

  return {
    run: async () => (await runner.run(supervisor, QUESTION)).finalOutput,
    modelTime: () => modelTime,
    close: async () => {},
  };
}
