/**
 * The demonstration swarm: a supervisor, a weather and a math agent, and a planner that asks a person. It requires no key,
 * model or network.
 */
import type { SwarmDefinition } from "../engine/index.js";
import { defineSwarm } from "../swarm/index.js";
import { type ExampleClock, exampleAgent } from "./agents/agents.js";
import { ASK_PERSON, plannerAgent } from "./agents/planner.js";

export function demoSwarm(options: ExampleClock & { readonly name?: string } = {}): SwarmDefinition {
  return defineSwarm({
    name: options.name ?? "demo",
    version: "1.0.0",
    description: "Answers questions about the weather (simulated) and arithmetic, by a script.",
    keywords: ["demo", "weather", "arithmetic"],
    agents: [
      exampleAgent("supervisor", { ...options, name: "supervisor", commTargets: ["weather", "math"] }),
      exampleAgent("weather", { ...options, name: "weather", commTargets: ["supervisor", "planner"] }),
      exampleAgent("math", { ...options, name: "math", commTargets: ["supervisor"] }),
      plannerAgent(),
    ],
    entrypoint: "supervisor",
    breakpointTools: [ASK_PERSON],
  });
}
