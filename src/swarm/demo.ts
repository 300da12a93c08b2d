/** The demonstration swarm: a supervisor, a weather and a math agent. It needs no key, no model and no network. */
import type { SwarmDefinition } from "../engine/definition.js";
import { type ExampleClock, exampleAgent } from "./bundled/agents.js";
import { defineSwarm } from "./define.js";

export function demoSwarm(options: ExampleClock & { readonly name?: string } = {}): SwarmDefinition {
  return defineSwarm({
    name: options.name ?? "demo",
    version: "1.0.0",
    description: "Answers questions about the weather (simulated) and arithmetic, by a script.",
    keywords: ["demo", "weather", "arithmetic"],
    agents: [
      exampleAgent("supervisor", { ...options, name: "supervisor", commTargets: ["weather", "math"] }),
      exampleAgent("weather", { ...options, name: "weather", commTargets: ["supervisor"] }),
      exampleAgent("math", { ...options, name: "math", commTargets: ["supervisor"] }),
    ],
  });
}
