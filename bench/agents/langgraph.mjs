/**
 * LangGraph.js with its SQLite checkpointer. An agent is one node that asks its model and carries out the tool call
 * itself: the graph with the fewest steps, and so the fewest checkpoints, that does this task.
 */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import Database from "better-sqlite3";

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

export async function open({ directory, fsync }) {
  let modelTime = 0;
  let calls = 0;

  class InstantModel extends SimpleChatModel {
    constructor(answer) {
      super({});
      this.answer = answer;
    }
    _llmType() {
      return "instant";
    }
    bindTools(tools) {
      return this.withConfig({ tools });
    }
    async _generate(messages) {
      const start = performance.now();
      const tool_calls = this.answer(messages).map(([name, args]) => ({
        name,
        args,
        id: `call_${++calls}`,
        type: "tool_call",
      }));
      modelTime += performance.now() - start;
      const message = new AIMessage({
        content: "",
        tool_calls,
        usage_metadata: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
      });
      return { generations: [{ text: "", message }] };
    }
  }

  const ask = tool(async ({ body }) => `asked: ${body}`, {
    name: "ask_weather",
    description: "Asks the weather agent.",
    schema: TEXT("body"),
  });
  const respond = tool(async ({ body }) => body, {
    name: "respond",
    description: "Answers the supervisor.",
    schema: TEXT("body"),
  });
  const finish = tool(async ({ finish_message: text }) => text, {
    name: "finish",
    description: "Ends the task.",
    schema: TEXT("finish_message"),
  });
  const next = new Map([
    [ask, "weather"],
    [respond, "supervisor"],
    [finish, END],
  ]);

  const agent = (system, tools, answer) => {
    const model = new InstantModel(answer).bindTools(tools);
    const byName = new Map(tools.map((each) => [each.name, each]));
    return async ({ messages }) => {
      const said = await model.invoke([{ role: "system", content: system }, ...messages]);
      const [call] = said.tool_calls;
      const chosen = byName.get(call.name);
      return new Command({ goto: next.get(chosen), update: { messages: [said, await chosen.invoke(call)] } });
    };
  };

  const database = new Database(join(directory, "checkpoints.db"));
  if (fsync) database.pragma("synchronous = FULL");
  const graph = new StateGraph(MessagesAnnotation)
    .addNode(
      "supervisor",
      agent("Ask weather, then finish.", [ask, finish], (messages) =>
        messages.some((message) => message.type === "ai")
          ? [["finish", { finish_message: FORECAST }]]
          : [["ask_weather", { body: QUESTION }]],
      ),
      { ends: ["weather", END] },
    )
    .addNode(
      "weather",
      agent("Answer with the forecast.", [respond], () => [["respond", { body: FORECAST }]]),
      { ends: ["supervisor"] },
    )
    .addEdge(START, "supervisor")
    .compile({ checkpointer: new SqliteSaver(database) });

  const look = tool(
    async ({ what }) => {
      await sleep(TOOL_TIME);
      return `found ${what}`;
    },
    { name: "look", description: "Looks something up.", schema: TEXT("what") },
  );
  const researcher = new InstantModel((messages) =>
    messages.some((message) => message.type === "ai")
      ? [["finish", { finish_message: FORECAST }]]
      : Array.from({ length: TOOLS }, (_, n) => ["look", { what: `${n}` }]),
  ).bindTools([look, finish]);
  const research = new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }) => ({ messages: [await researcher.invoke(messages)] }))
    .addNode("tools", new ToolNode([look, finish]))
    .addEdge(START, "model")
    .addEdge("model", "tools")
    .addConditionalEdges("tools", ({ messages }) => (messages.at(-1).name === "finish" ? END : "model"))
    .compile({ checkpointer: new SqliteSaver(database) });

  return {
    runTools: async () => {
      const { messages } = await research.invoke(
        { messages: [new HumanMessage(QUESTION)] },
        { configurable: { thread_id: randomUUID() }, ...(fsync && { durability: "sync" }) },
      );
      return messages.at(-1).content;
    },
    run: async () => {
      const { messages } = await graph.invoke(
        { messages: [new HumanMessage(QUESTION)] },
        // "sync": a step begins when the one before it is kept, as in Mailroom.
        { configurable: { thread_id: randomUUID() }, ...(fsync && { durability: "sync" }) },
      );
      return messages.at(-1).content;
    },
    modelTime: () => modelTime,
    close: async () => database.close(),
  };
}
