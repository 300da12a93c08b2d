/** Swarms of function agents that answer at once, so that only the system around them is measured. */
import type { AgentFunction, SwarmDefinition, TurnResult } from "../src/index.js";
import type { Library } from "./builds.js";

export const QUESTION = "What is the weather in Tokyo?";

let calls = 0;
const call = (name: string, args: Record<string, unknown>): TurnResult => ({
  calls: [{ id: `c${++calls}`, name, args }],
});
const complete = (text: string): TurnResult => call("task_complete", { finish_message: text });

function agent(name: string, commTargets: string[], canCompleteTasks: boolean, run: AgentFunction) {
  return {
    name,
    commTargets,
    canCompleteTasks,
    enableEntrypoint: canCompleteTasks,
    enableInterswarm: false,
    toolFormat: "responses" as const,
    actions: [],
    excludeTools: [],
    implementation: { kind: "local" as const, run },
    // Its name in builds before the rename, for `--against`.
    mind: { kind: "local" as const, run },
  };
}

/** Two agents that count, each hop a message; the body is the number, so that all messages differ. */
export function pingPong({ defineSwarm }: Library, hops: number): SwarmDefinition {
  const player =
    (other: string, tool: string): AgentFunction =>
    ({ messages: [{ message }] }) => {
      const count = Number(message.body);
      if (tool === "send_request" && count >= hops) return complete(message.body);
      return call(tool, { target: other, subject: "count", body: String(count + 1) });
    };
  return defineSwarm({
    name: "pingpong",
    agents: [
      agent("ping", ["pong"], true, player("pong", "send_request")),
      agent("pong", ["ping"], false, player("ping", "send_response")),
    ],
  });
}

/** supervisor → weather → supervisor → complete. */
export function threeHops({ defineSwarm }: Library): SwarmDefinition {
  return defineSwarm({
    name: "threehops",
    agents: [
      agent("supervisor", ["weather"], true, ({ messages: [{ msg_type, message }] }) =>
        msg_type === "response"
          ? complete(message.body)
          : call("send_request", { target: "weather", subject: "Forecast", body: message.body }),
      ),
      agent("weather", ["supervisor"], false, () =>
        call("send_response", { target: "supervisor", subject: "Re: Forecast", body: "sunny, 21 °C" }),
      ),
    ],
  });
}

/** One agent that completes the task with the body of the message. */
export function echo({ defineSwarm }: Library, told: () => void = () => {}): SwarmDefinition {
  return defineSwarm({
    name: "echo",
    agents: [
      agent("clerk", [], true, ({ messages: [{ message }] }) => {
        told();
        return complete(message.body);
      }),
    ],
  });
}

/** One agent that never answers, with the name of the one that does. */
export function silence({ defineSwarm }: Library): SwarmDefinition {
  const never: AgentFunction = () => new Promise(() => {});
  return defineSwarm({ name: "echo", agents: [agent("clerk", [], true, never)] });
}
