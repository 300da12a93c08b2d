/**
 * Behaves like the scripted swarm of the recordings: a supervisor asks a forecaster, and text in brackets changes
 * their behavior.
 */
import { defineAction } from "../../src/actions/define.js";
import type { Turn, TurnResult } from "../../src/engine/agent.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { MAILMessage } from "../../src/mail/message.js";
import { defineAgent } from "../../src/swarm/agent.js";
import { defineSwarm } from "../../src/swarm/define.js";

export interface SwarmHooks {
  /**
   * Awaited by the forecaster when the message contains `[hold]`, and by the supervisor when it contains `[think]`,
   * so that a test controls how long a task runs.
   */
  readonly hold?: (turn: Turn) => Promise<void>;
}

const forecast = defineAction({
  name: "get_weather_forecast",
  description: "Tells the weather.",
  parameters: {
    type: "object",
    properties: { location: { type: "string" }, days_ahead: { type: "number" }, metric: { type: "boolean" } },
    required: ["location"],
  },
  run: () => '{"location": "Tokyo", "condition": "sunny", "temperature": 21}',
});

const askHuman = defineAction({
  name: "ask_human",
  description: "Asks a person.",
  parameters: { type: "object", properties: { question: { type: "string" } } },
  run: () => "never runs: it is a breakpoint",
});

export function captureSwarm(hooks: SwarmHooks = {}): SwarmDefinition {
  return defineSwarm({
    name: "alpha",
    version: "1.3.5",
    description: "Scripted lab swarm alpha",
    keywords: ["lab", "weather"],
    public: true,
    breakpointTools: ["ask_human"],
    agents: [
      defineAgent({
        name: "supervisor",
        commTargets: ["weather"],
        enableEntrypoint: true,
        canCompleteTasks: true,
        run: async (turn) => {
          if (lastMessage(turn).message.body.includes("[think]")) await hooks.hold?.(turn);
          return supervisor(turn);
        },
      }),
      defineAgent({
        name: "weather",
        commTargets: ["supervisor"],
        actions: [forecast, askHuman],
        run: (turn) => weather(turn, hooks),
      }),
    ],
  });
}

let calls = 0;

function call(name: string, args: Record<string, unknown>): TurnResult["calls"][number] {
  calls++;
  return { id: `call_${calls}`, name, args };
}

function lastMessage({ messages }: Turn): MAILMessage {
  return messages.at(-1) ?? messages[0];
}

function supervisor(turn: Turn): TurnResult {
  const { sender, subject, body } = lastMessage(turn).message;
  const complete = (finish_message: string): TurnResult => ({
    calls: [call("task_complete", { finish_message })],
  });
  const ask = call("send_request", { target: "weather", subject: "Forecast", body });
  if (sender.address_type === "agent") {
    return body.includes("[loop]") ? { calls: [ask] } : complete(`Answer: ${body}`);
  }
  if (sender.address_type === "system") return complete(`[${subject}] ${body}`);
  if (body.includes("[raise]")) throw new Error("scripted supervisor failure");
  if (body.includes("[notools]")) return { calls: [] };
  if (body.includes("[direct]")) return complete(`direct: ${body}`);
  if (body.includes("[help]")) return { calls: [call("help", { get_summary: true })] };
  if (body.includes("[badtarget]")) {
    return { calls: [call("send_request", { target: "nobody", subject: "x", body: "y" })] };
  }
  if (body.includes("[broadcast]")) {
    return { calls: [call("send_broadcast", { subject: "Forecast", body, targets: ["all"] })] };
  }
  if (body.includes("[interrupt]")) {
    return { calls: [call("send_interrupt", { target: "weather", subject: "Stop", body })] };
  }
  if (body.includes("[await]")) {
    return { calls: [ask, call("await_message", { reason: "waiting for weather" })] };
  }
  return { calls: [ask] };
}

async function weather(turn: Turn, hooks: SwarmHooks): Promise<TurnResult> {
  const message = lastMessage(turn);
  const { sender, body } = message.message;
  const respond = (text: string): TurnResult => ({
    calls: [call("send_response", { target: "supervisor", subject: "Re: Forecast", body: text })],
  });
  const [result] = turn.results;
  if (result?.name === "get_weather_forecast")
    return respond(`SUCCESS: ${result.content.replace(/^SUCCESS: /, "")}`);
  if (result?.name === "ask_human") return respond(`human said: ${result.content}`);
  if (sender.address_type !== "agent") return { calls: [call("acknowledge_broadcast", {})] };
  if (body.includes("[weather-raise]")) throw new Error("scripted weather failure");
  if (body.includes("[hold]")) await hooks.hold?.(turn);
  if (body.includes("[talk]")) for (const word of ["sun", "ny"]) turn.emitDelta(word);
  if (body.includes("[action]")) {
    return { calls: [call("get_weather_forecast", { location: "Tokyo", days_ahead: 1, metric: true })] };
  }
  if (body.includes("[breakpoint]")) return { calls: [call("ask_human", { question: "umbrella?" })] };
  if (body.includes("[two]")) {
    return {
      calls: [call("ask_human", { question: "umbrella?" }), call("ask_human", { question: "boots?" })],
    };
  }
  if (body.includes("[loop]")) return respond(`${body}.`);
  return respond(message.msg_type === "broadcast" ? "broadcast seen" : "sunny, 21C");
}
